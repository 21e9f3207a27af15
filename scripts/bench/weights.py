"""What weights in eight bits cost and save: time of writing and of reading, memory, and the distance of states from f32.

    cargo build --release -p judge
    python scripts/bench/make_model.py qwen3-1.7b FOLDER
    python scripts/bench/weights.py FOLDER [--rounds N] [--results FILE]

The prompts are random tokens of the model that make_model.py writes. Each form of weights runs in turn, as a process of its own, in every
round; times are medians, and ratios are medians of the rounds' ratios to bf16. Distances are those of the states of one prompt's last token:
the root of the mean square of the difference from f32, relative to that of f32, by layer. Python alone is enough. --results keeps a row for
each form in a file of results/, under the folder's name; its peak of memory is that of reading prompts. Linux counts much
of a file that was just written: drop the page cache (/proc/sys/vm/drop_caches) behind make_model.py.
"""

import argparse
import json
import math
import pathlib
import random
import statistics
import subprocess
import tempfile

from results import BINARY, keep, of_results

ABOUT = {"command": "python scripts/bench/weights.py MODEL --rounds ROUNDS"}
FORMS = {
    "bf16": ["--dtype", "bf16"],
    "int8": ["--dtype", "bf16", "--weight-form", "int8"],
    "int8, avx512-vnni": ["--dtype", "bf16", "--weight-form", "int8", "--kernel", "avx512-vnni"],
    "int8, avx2-int8": ["--dtype", "bf16", "--weight-form", "int8", "--kernel", "avx2-int8"],
    "int8, amx-int8": ["--dtype", "bf16", "--weight-form", "int8", "--kernel", "amx-int8"],
}
# What the processor must have for a form, as the system names it.
NEEDS = {"int8, avx512-vnni": "avx512_vnni", "int8, amx-int8": "amx_int8", "int8, avx2-int8": "avx2"}
WORKLOADS = {
    "one text": (1, 64, ["--read", "text", "--max-new-tokens", "64", "--repeat", "3"]),
    "eight texts": (8, 64, ["--read", "text", "--max-new-tokens", "64"]),
    "prompts": (8, 512, []),
}


def can_run(form):
    info = pathlib.Path("/proc/cpuinfo")
    return form not in NEEDS or info.exists() and NEEDS[form] in info.read_text().split()


def run(model, prompts, work, *flags):
    """The figures of one process."""
    out = work / "figures.json"
    command = [BINARY, "speed", "--model", model, "--raw-prompt", "--quiet", "--input", prompts, "--json", out, *flags]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return json.loads(out.read_text())


def distances(found, expected):
    """By layer."""
    found, expected = ([layer["values"] for layer in first["states"]] for first in (found, expected))

    def size(values):
        return math.sqrt(sum(x * x for x in values))
    return [size([a - b for a, b in zip(x, y)]) / size(y) for x, y in zip(found, expected)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    of_results(parser)
    args = parser.parse_args()
    forms = {name: flags for name, flags in FORMS.items() if can_run(name)}
    kept = {form: {"rounds": args.rounds, "seconds": [], "ratios": []} for form in forms}
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for name, (count, length, flags) in WORKLOADS.items():
            prompts = work / "prompts.jsonl"
            rows = [{"id": str(i), "prompt": " ".join(str(draw.randrange(10, 120000)) for _ in range(length))} for i in range(count)]
            prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))
            found = [{form: run(args.model, prompts, work, *flags, *own) for form, own in forms.items()} for _ in range(args.rounds)]
            for form in forms:
                seconds = statistics.median(one[form]["read_s"] for one in found)
                ratio = statistics.median(one["bf16"]["read_s"] / one[form]["read_s"] for one in found)
                peak = max(one[form]["peak_bytes"] for one in found) / 1e6
                print(f"{name:12} {form:18} {seconds:7.2f} s   {ratio:5.2f} times bf16   {peak:7,.0f} MB", flush=True)
                kept[form]["seconds"].append(round(seconds, 2))
                kept[form]["ratios"].append(round(ratio, 2))
                kept[form]["peak_mb"] = round(peak)
        exact = run(args.model, prompts, work, "--dtype", "f32", "--limit", "1")["first"]
        for form, flags in forms.items():
            layers = distances(run(args.model, prompts, work, "--limit", "1", *flags)["first"], exact)[1:]
            print(f"{'distance':12} {form:18} first block {layers[0]:.4f}, last {layers[-1]:.4f}, largest {max(layers):.4f}", flush=True)
            kept[form]["distances"] = [round(layers[0], 4), round(layers[-1], 4)]
            keep(args.results, "weights", ABOUT, {"model": args.model.resolve().name, "form": form}, kept[form])


if __name__ == "__main__":
    main()
