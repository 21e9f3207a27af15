"""The speed of one trained GGUF file here and in transformers, in turn; scripts/bench/beside_llama.py has llama.cpp.

    cargo build --locked --release -p judge
    JUDGE_TEST_DATA=FOLDER python scripts/trained/speed.py OUTPUT [--rounds N] [--peers PYTHON] [--without PEER] [--kernel K]

Reading: eight texts of MT-bench's questions and answers, 1,600 characters each, which share no beginning; states of all layers here,
the whole model without its head in transformers (hidden states kept). Writing: up to 64 tokens after a text of 256 characters, greedily.
Transformers reads one by one and all at once, and the best counts; so does the best of two passes here. Every side runs as a process of
its own, once a round, in turn; loading and a first reading are not timed. PYTHON has torch and transformers; a peer that fails is named,
and --without leaves it out. A ratio is ours over theirs in the same round.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

NEW_TOKENS = 64
THREADS = len(os.sched_getaffinity(0))


def prompts():
    from common import data
    rows = json.loads(data("prometheus_eval", "mt_bench_eval.json").read_text())
    texts = list(dict.fromkeys(row["instruction"].split("###The instruction to evaluate:\n")[1] for row in rows[::40]))
    return [text[:1600] for text in texts[:8]], [texts[1][:256]]  # after this one the model writes on to the limit


def timed(read, write, reading, writing):
    """Tokens a second, of reading and of writing; `read` gives the tokens of texts that it has read, `write` those it has written."""
    read(reading[:1])
    start = time.perf_counter()
    tokens = read(reading)
    reading_s = time.perf_counter() - start
    start = time.perf_counter()
    written = write(writing[0])
    writing_s = time.perf_counter() - start
    return {"prompt_tokens": tokens, "reading": tokens / reading_s, "new_tokens": written, "writing": written / writing_s}


def transformers(file, dtype, reading, writing):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    torch.set_num_threads(THREADS)
    load = {"pretrained_model_name_or_path": str(pathlib.Path(file).parent), "gguf_file": pathlib.Path(file).name}
    tokenizer = AutoTokenizer.from_pretrained(**load)
    model = AutoModelForCausalLM.from_pretrained(**load, dtype=getattr(torch, dtype)).eval()
    tokenizer.padding_side = "right"
    best = {}

    def read(texts, size):
        total = 0
        for at in range(0, len(texts), size):
            batch = tokenizer(texts[at:at + size], return_tensors="pt", padding=True)
            model.model(**batch, output_hidden_states=True)
            total += int(batch["attention_mask"].sum())
        return total

    def write(text):
        batch = tokenizer([text], return_tensors="pt")
        out = model.generate(**batch, max_new_tokens=NEW_TOKENS, do_sample=False)
        return out.shape[1] - batch["input_ids"].shape[1]
    with torch.inference_mode():
        for size in (1, 8):
            found = timed(lambda texts: read(texts, size), write, reading, writing)
            best = found | {what: max(found[what], best.get(what, 0)) for what in ("reading", "writing")}
    return best


def ours(out, kernel, reading, writing):
    """Tokens a second, as the program reports them."""
    from common import model, report, write
    found = {}
    for what, tokens, texts, flags in [("reading", "prompt_tokens", reading, ["--read", "states"]),
                                       ("writing", "new_tokens", writing, ["--read", "text", "--max-new-tokens", NEW_TOKENS])]:
        rows = write(out / f"speed.{what}.jsonl", [{"id": i, "prompt": text} for i, text in enumerate(texts)])
        one = report(out / "speed.json", "speed", "--quiet", "--raw-prompt", "--input", rows, *flags, "--repeat", 2, *kernel, *model())
        found |= {tokens: one[tokens], what: one[tokens] / one["read_s"]}
    return found


def main():
    from common import MODEL, arguments, data, table
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default=sys.executable, help="the Python that has torch and transformers")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--kernel", help="the program's kernel (default: the one that it chooses)")
    args = parser.parse_args()
    reading, writing = prompts()
    peers = [name for name in ("transformers bfloat16", "transformers float32") if name not in args.without]
    rounds = []
    for _ in range(args.rounds):
        found = {}
        for name in peers:
            work = args.output / "peer.json"
            work.write_text(json.dumps({"file": str(data(MODEL)), "reading": reading, "writing": writing}))
            done = subprocess.run([args.peers, __file__, "--peer", name, work], stdout=subprocess.PIPE)
            if done.returncode != 0:
                sys.exit(f"{name} failed; leave it out with --without '{name}'")
            found[name] = json.loads(done.stdout.splitlines()[-1])
            # After each peer, so that a slow minute of the machine is nobody's alone.
            found[f"here, beside {name}"] = ours(args.output, ["--kernel", args.kernel] if args.kernel else [], reading, writing)
        rounds.append(found)
        print(json.dumps(found), flush=True)
    rows = []
    for name in peers:
        for what in ("reading", "writing"):
            theirs, own = [one[name][what] for one in rounds], [one[f"here, beside {name}"][what] for one in rounds]
            ratios = [a / b for a, b in zip(own, theirs)]
            spread = f"{statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]"
            rows.append([name, what, *(", ".join(f"{x:.0f}" for x in values) for values in (theirs, own)), spread])
    table(["beside", "", "theirs, tokens/s", "here, tokens/s", "ratio, median [lowest, highest]"], rows)


def peer(name, work):
    asked = json.loads(pathlib.Path(work).read_text())
    print(json.dumps(transformers(asked["file"], name.split()[1], asked["reading"], asked["writing"])))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(*sys.argv[2:4])
    else:
        main()
