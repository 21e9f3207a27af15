# llama-cpp-python==0.3.36
"""Reads and writes the same texts with llama.cpp and with this crate, in turn, on the CPU and from the same GGUF file, and prints a table.

    pip install --no-binary llama-cpp-python llama-cpp-python==0.3.36   # built here, for this processor
    cargo build --release -p judge
    python scripts/bench/beside_llama.py MODEL.gguf [--kernels default,avx512-vnni] [--only p,w,e,l] [--rounds 2] [--results FILE]

p  prompts of 400 tokens that share nothing: what follows each, read at its last token (here the labels' logits at every layer)
w  writing 64 tokens after one prompt of 55, greedily: tokens written per second, the reading of the prompt included
e  the same after each of eight prompts at once, which are read together
l  200 judge prompts of some 330 tokens that share a rubric of some 275: what follows each. llama.cpp reads the rubric once and each rest on
   top of its keys; in brackets, each prompt anew (of every tenth), as a program does that calls it for each prompt

Each side runs in its own process, in turn, `--rounds` times; its best run counts. Loading is not timed. llama.cpp has as many threads as there
are cores and batches of 512; with fewer (--threads) both have those. --results keeps a row for each workload and kernel in a file of results/.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import time

from results import BINARY, ROOT, keep, of_results

VERSION = "0.3.36"
ABOUT = {"command": "python scripts/bench/beside_llama.py FILE.gguf --kernels KERNEL --only WORKLOAD --rounds ROUNDS",
         "versions": {"llama-cpp-python": VERSION}}
NEW_TOKENS = 64
BATCH = 512
WORDS = """answer question river stone because window garden simple letter number water quickly between mountain paper reason machine
small company teacher written already morning history country problem person little better finally against student language model clear
correct short often music center island yellow travel market doctor animal winter summer kitchen science office travel bridge""".split()


def texts():
    draw = random.Random(5)
    text = lambda n: " ".join(draw.choice(WORDS) for _ in range(n))
    rubric = "You grade answers. " + text(270) + ". The answer: "
    return {
        "p": [text(400) for _ in range(8)],
        "w": [text(55)],
        "e": [text(55) for _ in range(8)],
        "l": [rubric + text(40 + draw.randrange(20)) + ". The grade:" for _ in range(200)],
    }


def ours(model, prompts, kernel, which, work):
    rows, figures = work / "prompts.jsonl", work / "ours.json"
    rows.write_text("".join(json.dumps({"id": index, "prompt": text}) + "\n" for index, text in enumerate(prompts)))
    flags = ["--read", "text", "--max-new-tokens", str(NEW_TOKENS)] if which in "we" else ["--read", "labels"]
    flags += [] if kernel == "default" else ["--kernel", kernel]
    command = [BINARY, "speed", "--input", rows, "--model", model, "--raw-prompt", "--quiet", "--overwrite", "--json", figures, *flags]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = json.loads(figures.read_text())
    if found["unscored"]:
        raise SystemExit(f"{found['unscored']} of {len(prompts)} prompts unscored")
    if which in "we" and found["new_tokens"] != NEW_TOKENS * len(prompts):
        raise SystemExit(f"{found['new_tokens']} tokens written, not {NEW_TOKENS} after each of {len(prompts)} prompts")
    return found


def theirs(model, prompts, which, threads, work):
    texts, figures = work / "prompts.json", work / "theirs.json"
    texts.write_text(json.dumps(prompts))
    subprocess.run([sys.executable, __file__, "--theirs", model, texts, figures, which, str(threads)], check=True)
    return json.loads(figures.read_text())


def run_theirs(model, texts, figures, which, threads):
    import llama_cpp
    from llama_cpp import Llama

    if llama_cpp.__version__ != VERSION:
        raise SystemExit(f"llama-cpp-python {VERSION} is needed, found {llama_cpp.__version__}")
    prompts, threads = json.loads(pathlib.Path(texts).read_text()), int(threads)
    sequences = len(prompts) if which == "e" else 1
    llm = Llama(model, n_ctx=512 * sequences, n_batch=BATCH, n_ubatch=BATCH, n_threads=threads, n_threads_batch=threads, verbose=False)
    tokens = [llm.tokenize(text.encode(), add_bos=True, special=True) for text in prompts]
    if sequences > 1:
        parameters = llm.context_params
        parameters.n_seq_max = sequences
        context = llama_cpp.llama_init_from_model(llm.model, parameters)
    else:
        context = llm.ctx
    memory = llama_cpp.llama_get_memory(context)
    batch = llama_cpp.llama_batch_init(BATCH, 0, 1)
    vocabulary = llm.n_vocab()

    def feed(rows):
        """Rows of (token, position, sequence, whether its logits are wanted), a batch at a time."""
        for at in range(0, len(rows), BATCH):
            part = rows[at:at + BATCH]
            batch.n_tokens = len(part)
            for place, (token, position, sequence, wanted) in enumerate(part):
                batch.token[place], batch.pos[place], batch.logits[place] = token, position, wanted
                batch.n_seq_id[place], batch.seq_id[place][0] = 1, sequence
            if llama_cpp.llama_decode(context, batch):
                raise SystemExit("llama.cpp could not decode a batch")
        return part

    def prompt(ids, sequence=0, start=0):
        feed([(token, start + place, sequence, place + 1 == len(ids)) for place, token in enumerate(ids)])

    def best(index):
        logits = llama_cpp.llama_get_logits_ith(context, index)
        import numpy
        return int(numpy.ctypeslib.as_array(logits, shape=(vocabulary,)).argmax())

    def read_each(tokens, shared):
        for ids in tokens:
            llama_cpp.llama_memory_seq_rm(memory, 0, shared, -1)
            prompt(ids[shared:], start=shared)
            best(-1)

    prompt(tokens[0][:8])  # warm
    llama_cpp.llama_memory_clear(memory, True)
    found = {"prompt_tokens": sum(map(len, tokens))}
    if which in "we":
        start = time.perf_counter()
        ends = [sum(map(len, tokens[:sequence + 1])) - 1 for sequence in range(len(tokens))]
        if ends[-1] >= BATCH:
            raise SystemExit(f"{ends[-1] + 1} tokens of prompts, expected at most {BATCH}")
        feed([(token, place, sequence, place + 1 == len(ids)) for sequence, ids in enumerate(tokens) for place, token in enumerate(ids)])
        next_tokens = [best(end) for end in ends]
        for step in range(NEW_TOKENS - 1):
            feed([(token, len(tokens[sequence]) + step, sequence, True) for sequence, token in enumerate(next_tokens)])
            next_tokens = [best(sequence) for sequence in range(len(tokens))]
        found["seconds"] = time.perf_counter() - start
    else:
        some = tokens[::10] if which == "l" else tokens
        start = time.perf_counter()
        read_each(some, 0)
        found["seconds"] = found["anew"] = (time.perf_counter() - start) * found["prompt_tokens"] / sum(map(len, some))
        if which == "l":
            shared = 0
            while all(ids[:shared + 1] == tokens[0][:shared + 1] for ids in tokens):
                shared += 1
            llama_cpp.llama_memory_clear(memory, True)
            start = time.perf_counter()
            prompt(tokens[0][:shared])
            read_each(tokens, shared)
            found["seconds"] = time.perf_counter() - start
    pathlib.Path(figures).write_text(json.dumps(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--kernels", default="default")
    parser.add_argument("--only", default="p,w,e,l")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "target/bench")
    of_results(parser)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    os.environ["RAYON_NUM_THREADS"] = str(args.threads)
    kernels = args.kernels.split(",")
    print("| workload | prompts | tokens | llama.cpp, tokens/s | " + " | ".join(f"{kernel}, tokens/s (ratio)" for kernel in kernels) + " |")
    print("|---|---|---|---|" + "---|" * len(kernels))
    for which, prompts in texts().items():
        if which not in args.only.split(","):
            continue
        peers, mine = [], {kernel: [] for kernel in kernels}
        for _ in range(args.rounds):
            peers.append(theirs(args.model, prompts, which, args.threads, args.work))
            for kernel in kernels:
                mine[kernel].append(ours(args.model, prompts, kernel, which, args.work))
                tokens = mine[kernel][-1]["prompt_tokens"], peers[-1]["prompt_tokens"]
                if tokens[0] != tokens[1]:
                    raise SystemExit(f"{which}: {tokens[0]} tokens here, {tokens[1]} there")
        total = NEW_TOKENS * len(prompts) if which in "we" else peers[0]["prompt_tokens"]
        peer = total / min(run["seconds"] for run in peers)
        rates = {which: peer} if which != "l" else {"l": peer, "l, anew": total / min(run["anew"] for run in peers)}
        speeds = [total / min(run["read_s"] for run in mine[kernel]) for kernel in kernels]
        cells = " | ".join(f"{speed:.0f} ({speed / peer:.2f})" for speed in speeds)
        of_peer = " ".join(f"({rate:.0f})" if "anew" in name else f"{rate:.0f}" for name, rate in rates.items())
        print(f"| {which} | {len(prompts)} | {total} | {of_peer} | {cells} |", flush=True)
        for kernel, speed in zip(kernels, speeds):
            model = mine[kernel][0]["model"]  # whose device is `cpu (KERNEL)`
            for name, rate in rates.items():
                keep(args.results, "llama", ABOUT, {"file": model["name"], "workload": name, "kernel": model["device"][len("cpu ("):-1]},
                     {"rounds": args.rounds, "theirs": round(rate), "here": round(speed), "ratio": round(speed / rate, 2)})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--theirs"]:
        run_theirs(*sys.argv[2:7])
    else:
        main()
