# torch==2.15.0 transformers==5.23.0 safetensors==0.8.0
"""Reads the same prompts with transformers and with this crate, in turn, on the CPU, and prints a table.

    cargo build --release -p judge
    python scripts/bench/cpu.py [--models qwen3-0.6b,qwen3-1.7b,llama-3.1-8b:4] [--work FOLDER] [--data FOLDER] [--only a,b,c,d,e,f,g,h,i] [--their-dtype f32] [--every N] [--results FILE]

The models have the published shapes and random weights (make_model.py); `:4` means four blocks of them. Both sides hold bf16 weights and
see the same tokens; with --their-dtype f32 the other side holds f32, which is faster for it on processors without bf16. Transformers runs sdpa attention, asks for the hidden states of all layers and never forms the vocabulary-wide
head, except in (d), where the reference protocol does; its best batch size counts. Each side runs twice, in turn, and its better run
counts; loading, and transformers' first batch, are not timed. With --results the rows replace those of the same kind in a file of
results/, from which scripts/docs/generate makes the table of docs/benchmarks.md.

a  equal lengths: 512 tokens
b  judge prompts of many lengths that share nothing
c  judge prompts that share: one rubric, five aspects to a response
d  the LAGER reference protocol (left-padded to 2,048, ten tokens written, every layer through the head) against the direct
   condition here (label logits of every layer at the prompt's end)
e  a probe at the middle layer, against (a) at full depth here
f  writing 64 tokens after one prompt of 64, greedily: tokens written per second
g  writing 64 tokens after each of eight such prompts, all at once
h  two prompts of 2,048 tokens
i  one prompt of 8,192 tokens

Lengths and sharing of b and c are those of real judge prompts where --data names the folder of the public data sets (one word is one token);
elsewhere they are drawn. `agree` is the largest difference between both sides' states of the first prompt's last token, over all
layers, relative to the layer's largest value. `floor` is the time of the weights' products alone at the rate that packed products reach in
the same run (of the last block, the queries, keys and values: only the tokens that are read go on; attention, which is much of h and i, is not part of it); in f and g it is the time of reading the weights from memory once for each token of a text, at the rate that memory has in the same run.
"""

import argparse
import json
import math
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import time

from results import BINARY, ROOT, keep, of_results

VERSIONS = {"torch": "2.15.0", "transformers": "5.23.0"}
ABOUT = {"command": "python scripts/bench/cpu.py --models MODEL --only WORKLOAD --every EVERY --their-dtype THEIR_DTYPE", "versions": VERSIONS}
ASPECTS = 5
NEW_TOKENS = 64
TEXT = ["--read", "text", "--max-new-tokens", str(NEW_TOKENS)]


def words(text, first=10, size=120000):
    """One token to a word: the same word is the same token, everywhere."""
    return [first + hash_word(word) % size for word in text.split()]


def hash_word(word):
    value = 2166136261
    for byte in word.encode():
        value = (value ^ byte) * 16777619 % 2**32
    return value


def judged_texts(data, count):
    """Instruction and response of real rows, or drawn texts of like lengths."""
    if data:
        rows = json.loads((pathlib.Path(data) / "prometheus_eval/mt_bench_eval.json").read_text())
        # One row's `instruction` holds the whole prompt of another judge; its sections are headed by ###.
        sections = [re.split(r"^###.*:\s*$", row["instruction"], flags=re.MULTILINE) for row in rows]
        texts = [(part[2], part[3]) for part in sections if len(part) > 3]
        return texts[:: max(1, len(texts) // count)][:count]
    draw = random.Random(3)
    text = lambda low, high: " ".join(str(draw.randrange(1 << 30)) for _ in range(draw.randrange(low, high)))
    return [(text(20, 200), text(40, 300)) for _ in range(count)]


def workloads(data):
    draw = random.Random(1)
    a = [[draw.randrange(10, 120000) for _ in range(512)] for _ in range(16)]
    rubric = " ".join(f"rubric{i}" for i in range(120))
    aspect = lambda k: " ".join(f"aspect{k}word{i}" for i in range(40))
    shared = [words(f"{rubric} {instruction} {response} {aspect(k)}")[:2000]
              for instruction, response in judged_texts(data, 10) for k in range(ASPECTS)]
    # The same lengths, but not two alike tokens at the beginning.
    ragged = [[draw.randrange(10, 120000) for _ in ids] for ids in shared[::ASPECTS] + shared[1::ASPECTS] + shared[2::ASPECTS]]
    short = [[draw.randrange(10, 120000) for _ in range(64)] for _ in range(8)]
    long = [[draw.randrange(10, 120000) for _ in range(length)] for length in [2048, 2048, 8192]]
    return {"a": a, "b": ragged, "c": shared, "d": ragged[:4], "e": a, "f": short[:1], "g": short, "h": long[:2], "i": long[2:]}


def models(specs, work):
    """A folder and a configuration for each of the shapes named, made where it is not there yet."""
    for spec in specs.split(","):
        name, _, layers = spec.partition(":")
        folder = work / spec.replace(":", "-")
        if not (folder / "tokenizer_config.json").exists():
            subprocess.run([sys.executable, ROOT / "scripts/bench/make_model.py", name, folder, "--layers", layers or "0"], check=True)
        yield spec, folder, json.loads((folder / "config.json").read_text())


def ours(binary, model, ids, work, *flags):
    prompts, figures = work / "prompts.jsonl", work / "ours.json"
    with prompts.open("w") as file:
        for index, row in enumerate(ids):
            file.write(json.dumps({"id": index, "prompt": " ".join(map(str, row))}) + "\n")
    command = [binary, "speed", "--input", prompts, "--model", model, "--raw-prompt", "--quiet", "--floor", "--json", figures, *flags]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    result = json.loads(figures.read_text())
    if result["unscored"] or result["prompt_tokens"] != sum(map(len, ids)):
        raise SystemExit(f"{result['unscored']} of {len(ids)} prompts unscored, {result['prompt_tokens']} of {sum(map(len, ids))} tokens read")
    return result


def better(one, other):
    """The faster of two runs of this crate, with the higher of both floors and peaks of memory."""
    best = dict(min(one, other, key=lambda run: run["read_s"]))
    for figure in ["product_flops", "memory_bytes_per_s", "peak_bytes"]:
        best[figure] = max(one[figure], other[figure])
    return best


def theirs(model, ids, work, what, sizes, dtype):
    """The fastest of some batch sizes, in a process of its own, so that its memory is its own."""
    prompts, figures = work / "prompts.json", work / "theirs.json"
    prompts.write_text(json.dumps(ids))
    subprocess.run([sys.executable, __file__, "--theirs", model, prompts, figures, what, json.dumps(sizes), dtype], check=True)
    return json.loads(figures.read_text())


def run_theirs(model, prompts, figures, what, sizes, dtype):
    import torch
    import transformers

    for module in (torch, transformers):
        if module.__version__.split("+")[0] != VERSIONS[module.__name__]:
            raise SystemExit(f"{module.__name__} {VERSIONS[module.__name__]} is needed, found {module.__version__}")
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(int(os.environ.get("RAYON_NUM_THREADS", len(os.sched_getaffinity(0)))))
    ids = json.loads(pathlib.Path(prompts).read_text())
    kind = transformers.AutoModel if what == "states" else transformers.AutoModelForCausalLM
    model = kind.from_pretrained(model, dtype={"bf16": torch.bfloat16, "f32": torch.float32}[dtype], attn_implementation="sdpa").eval()
    order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
    best, first = None, None

    def padded(batch, left, length):
        rows = torch.zeros(len(batch), length, dtype=torch.long)
        mask = torch.zeros(len(batch), length, dtype=torch.long)
        for row, index in enumerate(batch):
            span = slice(length - len(ids[index]), length) if left else slice(0, len(ids[index]))
            rows[row, span] = torch.tensor(ids[index])
            mask[row, span] = 1
        return rows, mask

    def write(batch, length, tokens, **wanted):
        rows, mask = padded(batch, True, length)
        return model.generate(rows, attention_mask=mask, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0, **wanted)

    def run(batch):
        nonlocal first
        lengths = torch.tensor([len(ids[index]) for index in batch])
        if what == "text":
            write(batch, int(lengths.max()), NEW_TOKENS)
        elif what == "protocol":
            out = write(batch, 2048, 10, output_hidden_states=True, return_dict_in_generate=True)
            for state in out.hidden_states[0]:
                model.lm_head(state[:, -1]).float()
        else:
            rows, mask = padded(batch, False, int(lengths.max()))
            equal = int(lengths.min()) == int(lengths.max())
            out = model(rows, attention_mask=None if equal else mask, output_hidden_states=True, use_cache=False)
            states = [state[torch.arange(len(batch)), lengths - 1].float() for state in out.hidden_states]
            if 0 in batch:
                first = [state[batch.index(0)].tolist() for state in states]

    with torch.inference_mode():
        run(order[:1])
        for size in [size for size in json.loads(sizes) if size == 1 or size <= len(order)]:
            start = time.perf_counter()
            for at in range(0, len(order), size):
                run(order[at:at + size])
            seconds = time.perf_counter() - start
            if best is not None and seconds > 1.2 * best["seconds"]:
                break  # larger batches will not be faster
            if best is None or seconds < best["seconds"]:
                best = {"seconds": seconds, "batch": size}
    best["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    best["first"] = first
    pathlib.Path(figures).write_text(json.dumps(best))


def flops_per_token(config, blocks, skipping=False):
    """Of the blocks' products; `skipping`: without what stands behind the last block's attention."""
    d, ff, hd = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    q, kv = config["num_attention_heads"] * hd, config["num_key_value_heads"] * hd
    behind = q * d + 3 * d * ff
    return 2 * (blocks * (d * (q + 2 * kv) + behind) - skipping * behind)


def weight_bytes(config, blocks):
    """What writing one token reads: the blocks' matrices and the head, in bf16."""
    return flops_per_token(config, blocks) + 2 * config["vocab_size"] * config["hidden_size"]


def difference(mine, first):
    """Over all layers; anything that is absent or not finite ends the program."""
    mine = {state["layer"]: state["values"] for state in mine["first"]["states"]}
    if sorted(mine) != list(range(len(first))):
        raise SystemExit(f"states of layers {sorted(mine)} here, of {len(first)} layers there")
    worst = []
    for layer, other in enumerate(first):
        if len(mine[layer]) != len(other) or not all(map(math.isfinite, mine[layer] + other)):
            raise SystemExit(f"layer {layer}: {len(mine[layer])} values here, {len(other)} there, or some are not finite")
        worst.append(max(abs(a - b) for a, b in zip(mine[layer], other)) / max(map(abs, other)))
    return max(worst)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default="qwen3-0.6b")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "target/bench")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("JUDGE_TEST_DATA"))
    parser.add_argument("--only", default="a,b,c,d,e,f,g,h,i")
    parser.add_argument("--their-dtype", choices=["bf16", "f32"], default="bf16")
    parser.add_argument("--every", type=int, default=1, help="only every Nth prompt of a, b, c and e, for large models")
    parser.add_argument("--kernel", help="passed on; the default is the one that is chosen")
    of_results(parser)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    kernel = ["--kernel", args.kernel] if args.kernel else []
    print("| model | workload | prompts | tokens | transformers, tokens/s (batch) | here, tokens/s | ratio | share of the floor | "
          "agree | peak memory, theirs / here, MB |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for spec, model, config in models(args.models, args.work):
        depth = config["num_hidden_layers"]
        for which, ids in workloads(args.data).items():
            if which not in args.only.split(","):
                continue
            # c keeps whole responses, all five aspects of each
            whole = max(1, len(ids) // ASPECTS // args.every) * ASPECTS
            ids = ids if which in "dfghi" else ids[:whole] if which == "c" else ids[::args.every]
            total = sum(map(len, ids))
            flags = {"d": ["--read", "labels"], "e": ["--read", "probe", "--layer", str(depth // 2)],
                     "f": TEXT, "g": TEXT}.get(which, ["--read", "states"])
            run = lambda: ours(BINARY, model, ids, args.work, *flags, *kernel)
            what, sizes = {"d": ("protocol", [1, 2]), "f": ("text", [1]), "g": ("text", [len(ids)])}.get(which, ("states", [1, 2, 4, 8]))
            peers = lambda sizes: theirs(model, ids, args.work, what, sizes, args.their_dtype)
            # In turn, so that a slow minute of the machine is nobody's alone.
            if which == "e":
                full = lambda: ours(BINARY, model, ids, args.work, "--read", "states", *kernel)
                peer, mine, peer_again, mine_again = full(), run(), full(), run()
                peer_seconds = min(peer["read_s"], peer_again["read_s"])
            else:
                peer, mine = peers(sizes), run()
                # The memory is that of the best size alone.
                peer_again, mine_again = peers([peer["batch"]]), run()
                peer_seconds = min(peer["seconds"], peer_again["seconds"])
            mine = better(mine, mine_again)
            if which in "fg":
                if mine["new_tokens"] != NEW_TOKENS * len(ids):
                    raise SystemExit(f"{mine['new_tokens']} tokens written, not {NEW_TOKENS} after each of {len(ids)} prompts")
                total = mine["new_tokens"]
                floor = len(ids) * mine["memory_bytes_per_s"] / weight_bytes(config, depth)
            else:
                floor = mine["product_flops"] / flops_per_token(config, depth // 2 if which == "e" else depth, skipping=True)
            speed = total / mine["read_s"]
            peer_speed = total / peer_seconds
            if which == "e":
                other, agree, memory = f"full depth here: {peer_speed:.0f}", "", ""
            else:
                other = f"{peer_speed:.0f} ({peer['batch']})"
                agree = f"{difference(mine, peer['first']):.1e}" if peer["first"] else ""
                memory = f"{peer_again['peak_bytes'] / 1e6:.0f} / {mine['peak_bytes'] / 1e6:.0f}"
            ratio = speed / peer_speed
            print(f"| {spec} | {which} | {len(ids)} | {total} | {other} | {speed:.0f} | {ratio:.2f} | {speed / floor:.0%} | {agree} | {memory} |",
                  flush=True)
            keep(args.results, "reading", ABOUT, {"model": spec, "workload": which, "prompts": len(ids), "their_dtype": args.their_dtype}, {
                "every": args.every, "theirs": round(peer_speed), "here": round(speed), "ratio": round(ratio, 2),
                "of_floor": round(speed / floor, 2), "difference": float(agree) if agree else None,
                "peak_mb": [int(part) for part in memory.split("/")] if memory else None,
            })


if __name__ == "__main__":
    if sys.argv[1:2] == ["--theirs"]:
        run_theirs(*sys.argv[2:8])
    else:
        main()
