# torch==2.15.0 transformers==5.23.0 safetensors==0.8.0
"""Checks parity on a card, then reads the same prompts with transformers and with this crate there, in one go, and prints tables.

    cargo build --release --features judge/cuda -p judge
    cargo test --release --features judge-models/cuda -p judge-models --test parity --no-run
    python scripts/gpu/check.py --parity target/release/deps/parity-HASH
        [--dtypes f32,tf32,bf16] [--processes 1] [--judge target/release/judge] [--device cuda:0] [--without-transformers]
        [--models qwen3-0.6b,qwen3-1.7b,llama-3.1-8b] [--prompts 256] [--max-batch-tokens 32768] [--work FOLDER]

1  Parity: tests/parity.rs on the device, in f32, tf32 and bf16, against the committed values of transformers and so against the CPU path
   in f32, which is held to the same values within 1e-4, as f32 is here. Without --parity this part is left out, and the script says so;
   --dtypes names some of the three where there is no time for all, --processes how many share the families, since most of the time goes
   to the compiler of kernels. A processor has no tf32, wgpu has f32 alone.
2  The card's peak: a bf16 product of 8192 x 8192 by 8192 x 8192 in torch, and beside it the same product here.
3  The benchmark: published shapes, random bf16 weights (scripts/bench/make_model.py; `:4` means four blocks; '' means no benchmark).
   Equal: prompts of 512 tokens. Ragged: as long as judge prompts are. Shared: one rubric before all, and five questions about each response.
   Both sides bring the last token's states of all layers to the host.
   Transformers runs bf16 and sdpa at several batch sizes of equal tokens, the best counts; here each prompt is read three times, the
   fastest counts. The first of the three has its kernels compiled; its time is the column `first`.
   All prompts must be read whole, and the first one's states be there and finite. `agree` is the largest difference of these states,
   relative to the layer's largest value. Memory is what nvidia-smi says of the cards, above what was in use before, for both sides.
   A second table is of this crate alone: label logits of every layer of the ragged prompts, which are multiplied on the device, and tokens
   written greedily behind prompts of 64 tokens, which leave the batch as they end.

A part that fails is named, the rest is run, and the script ends with 1; where transformers fails, the line has no figures of it. `--without-transformers` is for a machine that has no torch: the
peak is then that of the products here, and nothing is compared. `--device cuda:0,cuda:1` spreads the model's layers over cards, and
transformers has the first. Cards are numbered as nvidia-smi numbers them, among those that CUDA_VISIBLE_DEVICES names.
`--device cpu` runs all of it on a processor, with a smaller product: that is how the script is tested. `--device wgpu:0` is for the parity part
(`--models ''`), in builds with that feature.
Nothing here needs the network.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/bench"))
import cpu  # noqa: E402

DTYPES = {"cuda": ["f32", "tf32", "bf16"], "cpu": ["f32", "bf16"], "wgpu": ["f32"]}


def workloads(count):
    draw = random.Random(1)
    lengths = [min(2000, 160 + len(cpu.words(f"{instruction} {response}"))) for instruction, response in cpu.judged_texts(None, 64)]
    tokens = lambda length: [draw.randrange(10, 120000) for _ in range(length)]
    rubric = " ".join(f"rubric{i}" for i in range(120))
    question = lambda k: " ".join(f"aspect{k}word{i}" for i in range(40))
    responses = cpu.judged_texts(None, -(-count // cpu.ASPECTS))
    shared = [cpu.words(f"{rubric} {instruction} {response} {question(k)}")[:2000] for instruction, response in responses for k in range(cpu.ASPECTS)]
    return {"equal": [tokens(512) for _ in range(count)],
            "ragged": [tokens(lengths[index % len(lengths)]) for index in range(count)],
            "shared": shared[:count]}


def physical(device):
    """What nvidia-smi calls cards: it counts all that the machine has, CUDA those that CUDA_VISIBLE_DEVICES names, by number or UUID."""
    visible, numbers = os.environ.get("CUDA_VISIBLE_DEVICES"), device.replace("cuda:", "").split(",")
    if visible is None:
        return ",".join(numbers)
    try:
        names = [visible.split(",")[int(number)].strip() for number in numbers]
    except (IndexError, ValueError):
        names = []
    if not all(names) or not names:
        raise SystemExit(f"CUDA_VISIBLE_DEVICES={visible} does not show {device}")
    if any(name.startswith("MIG") for name in names):
        raise SystemExit("nvidia-smi does not tell the memory of a part of a card (MIG): use a whole one")
    return ",".join(names)


def smi(field, device):
    """One figure of each card, as nvidia-smi prints it; none where there is no card."""
    if not device.startswith("cuda:"):
        return []
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits", "-i", physical(device)]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip().splitlines()
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"nvidia-smi does not answer: {error}") from error


class CardMemory:
    """The most memory of the cards in use during a block, above what was in use before, in bytes."""

    def __init__(self, device):
        self.device, self.peak, self.done = device, None, threading.Event()

    def __enter__(self):
        if self.device.startswith("cuda:"):
            self.before, self.peak = self.used(), 0
            self.thread = threading.Thread(target=self.watch)
            self.thread.start()
        return self

    def used(self):
        return sum(map(int, smi("memory.used", self.device))) << 20

    def watch(self):
        while not self.done.wait(0.2):
            self.peak = max(self.peak, self.used() - self.before)

    def __exit__(self, *_):
        self.done.set()
        if self.peak is not None:
            self.thread.join()


FAMILIES = "readings_of_every_family_equal_transformers"


def parity(binary, device, dtypes, processes):
    passed = True
    for dtype in dtypes.split(","):
        if dtype not in DTYPES.get(device.split(":")[0], DTYPES["cuda"]):
            print(f"parity, {device}, {dtype}: left out, that is not for such a device")
            continue
        environment = dict(os.environ, JUDGE_TEST_DEVICE=device, JUDGE_TEST_DTYPE=dtype,
                           CARGO_MANIFEST_DIR=str(ROOT / "crates/judge-models"))
        start = time.perf_counter()
        print(f"parity, {device}, {dtype}:", flush=True)
        parts = [(f"{part}/{processes}", ["--exact", FAMILIES]) for part in range(processes)] + [("0/1", ["--skip", FAMILIES])]
        results = []

        def run(part, chosen):
            # One test at a time within a process.
            command, lines = [binary, "--nocapture", "--test-threads", "1", *chosen], []
            with subprocess.Popen(command, env=dict(environment, JUDGE_TEST_PART=part), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True) as tests:
                for said in tests.stdout:
                    lines.append(said)
                    if "largest relative error" in said or said.endswith(": failed\n"):
                        print("  " + said.split("... ")[-1], end="", flush=True)
            results.append(tests.returncode == 0)
            if tests.returncode != 0:
                print("".join(lines) + f"  part {part} FAILED\n", end="", flush=True)

        with concurrent.futures.ThreadPoolExecutor(processes) as pool:
            list(pool.map(run, *zip(*parts)))
        print(f"  {'passed' if all(results) else 'FAILED'} in {time.perf_counter() - start:.0f} s", flush=True)
        passed &= all(results)
    return passed


def matrix_peak(device):
    """Floating-point operations a second of a large bf16 product."""
    import torch

    size, times = (8192, 50) if device.startswith("cuda") else (1024, 5)
    a, b = (torch.randn(size, size, dtype=torch.bfloat16, device=device) for _ in range(2))
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    for _ in range(3):
        a @ b
    wait()
    start = time.perf_counter()
    for _ in range(times):
        a @ b
    wait()
    return 2 * size**3 * times / (time.perf_counter() - start)


def ours(args, model, config, ids):
    with CardMemory(args.device) as memory:
        result = cpu.ours(args.judge, model, ids, args.work, "--repeat", "3", "--device", args.device,
                          "--max-batch-tokens", str(args.max_batch_tokens))
    result["memory"] = result["peak_bytes"] if memory.peak is None else memory.peak
    check(result, config, ids)
    return result


def check(result, config, ids):
    """Ends with what is wrong: numbers that are none compare with anything, and prompts that are not read take no time."""
    states, tokens = result["first"]["states"], sum(map(len, ids))
    layers, width = config["num_hidden_layers"] + 1, config["hidden_size"]
    wrong = []
    if result["prompts"] != len(ids) or result["unscored"]:
        wrong.append(f"{result['unscored']} of {result['prompts']} prompts have no reading, {len(ids)} were sent")
    if result["prompt_tokens"] != tokens:
        wrong.append(f"{result['prompt_tokens']} tokens were read, {tokens} were sent")
    if [state["layer"] for state in states] != list(range(layers)):
        wrong.append(f"the first prompt has {len(states)} states, {layers} were asked for")
    if any(len(state["values"]) != width for state in states):
        wrong.append(f"not every state has {width} coordinates")
    # JSON has no NaN: it comes as null.
    if not all(x is not None and math.isfinite(x) for state in states for x in state["values"]):
        wrong.append("not every coordinate of a state is finite")
    if wrong:
        raise SystemExit("; ".join(wrong))


def alone(args, model, config, ids):
    """Lines of what is measured of this crate alone."""
    flags = ["--repeat", "3", "--device", args.device, "--max-batch-tokens", str(args.max_batch_tokens)]
    labels = cpu.ours(args.judge, model, ids, args.work, "--read", "labels", *flags)
    steps, layers = labels["first"]["labels"], config["num_hidden_layers"] + 1
    if [len(step["logits"]) for step in steps] != [5 * layers]:
        raise SystemExit(f"the first prompt has not the logits of 5 labels at {layers} layers")
    if not all(x is not None and math.isfinite(x) for step in steps for x in step["logits"]):
        raise SystemExit("not every label logit is finite")
    short = [row[:64] for row in ids]
    text = cpu.ours(args.judge, model, short, args.work, *cpu.TEXT, *flags)
    if not 0 < text["new_tokens"] <= cpu.NEW_TOKENS * len(short):
        raise SystemExit(f"{text['new_tokens']} tokens were written behind {len(short)} prompts")
    return [[f"label logits of {layers} layers", len(ids), f"{labels['tokens_per_s']:.0f} read", f"{labels['read_s']:.1f}"],
            ["text", len(short), f"{text['new_tokens'] / text['read_s']:.0f} written", f"{text['read_s']:.1f}"]]


def theirs(args, model, ids):
    """In a process of its own, so that its memory is its own."""
    prompts, figures = args.work / "prompts.json", args.work / "theirs.json"
    prompts.write_text(json.dumps(ids))
    device = args.device.split(",")[0]
    with CardMemory(device) as memory:
        subprocess.run([sys.executable, __file__, "--theirs", model, prompts, figures, device, str(args.max_batch_tokens)], check=True)
    result = json.loads(figures.read_text())
    result["memory"] = result["peak_bytes"] if memory.peak is None else memory.peak
    return result


def run_theirs(model, prompts, figures, device, max_tokens):
    import resource
    import torch
    import transformers

    for module in (torch, transformers):
        if module.__version__.split("+")[0] != cpu.VERSIONS[module.__name__]:
            print(f"note: {module.__name__} {module.__version__}, written for {cpu.VERSIONS[module.__name__]}", file=sys.stderr)
    transformers.utils.logging.disable_progress_bar()
    ids = json.loads(pathlib.Path(prompts).read_text())
    model = transformers.AutoModel.from_pretrained(model, dtype=torch.bfloat16, attn_implementation="sdpa").eval().to(device)
    order = sorted(range(len(ids)), key=lambda index: -len(ids[index]))
    best, first = None, None
    budgets = sorted({max_tokens // 4, max_tokens // 2, max_tokens})

    def read(budget):
        nonlocal first
        at = 0
        while at < len(order):
            size = max(1, budget // len(ids[order[at]]))
            batch = order[at:at + size]
            at += size
            lengths = torch.tensor([len(ids[index]) for index in batch])
            rows = torch.zeros(len(batch), int(lengths.max()), dtype=torch.long)
            mask = torch.zeros_like(rows)
            for row, index in enumerate(batch):
                rows[row, :lengths[row]] = torch.tensor(ids[index])
                mask[row, :lengths[row]] = 1
            equal = int(lengths.min()) == int(lengths.max())
            out = model(rows.to(device), attention_mask=None if equal else mask.to(device), output_hidden_states=True, use_cache=False)
            where = (torch.arange(len(batch), device=device), (lengths - 1).to(device))
            states = torch.stack([state[where].float() for state in out.hidden_states]).cpu()
            if 0 in batch:
                first = states[:, batch.index(0)].tolist()

    with torch.inference_mode():
        for budget in budgets:
            for _ in range(2):  # the first warms up
                start = time.perf_counter()
                read(budget)
                seconds = time.perf_counter() - start
            if best is None or seconds < best["seconds"]:
                best = {"seconds": seconds, "tokens_per_s": sum(map(len, ids)) / seconds, "budget": budget}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    pathlib.Path(figures).write_text(json.dumps(dict(best, peak_bytes=peak, first=first)))


def row(spec, config, which, ids, peak, mine, peer):
    """One line of the table; `peer` is None where there is nothing to compare with."""
    flops = cpu.flops_per_token(config, config["num_hidden_layers"])
    share = lambda side: f"{side['tokens_per_s'] * flops / (peak or mine['product_flops']):.0%}"
    speed, ratio, their_share, agree, memory = "", "", "", "", ""
    if peer:
        speed, ratio = f"{peer['tokens_per_s']:.0f} ({peer['budget']})", f"{mine['tokens_per_s'] / peer['tokens_per_s']:.2f}"
        their_share, agree, memory = share(peer), f"{peer['agree']:.1e}", f"{peer['memory'] / 1e6:.0f}"
    return [spec, f"{len(ids)} {which}", sum(map(len, ids)), speed, f"{mine['tokens_per_s']:.0f}", ratio, f"{their_share} / {share(mine)}",
            f"{mine['product_flops'] / 1e12:.3g}", f"{mine['passes_s'][0]:.1f} / {mine['read_s']:.1f}", agree,
            f"{memory} / {mine['memory'] / 1e6:.0f}"]


def main():
    # CUDA puts the fastest first otherwise, nvidia-smi never does.
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--parity", type=pathlib.Path, help="the test binary of tests/parity.rs")
    parser.add_argument("--dtypes", default="f32,tf32,bf16", help="those of the parity part")
    parser.add_argument("--processes", type=int, default=1, help="of the parity part, side by side: most of its time is the compiler's")
    parser.add_argument("--judge", type=pathlib.Path, default=ROOT / "target/release/judge")
    parser.add_argument("--models", default="qwen3-0.6b,qwen3-1.7b,llama-3.1-8b")
    parser.add_argument("--prompts", type=int, default=256)
    parser.add_argument("--max-batch-tokens", type=int, default=32768)
    parser.add_argument("--without-transformers", action="store_true")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "judge-gpu")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    cards = "; ".join(smi("name,driver_version,memory.total", args.device)) or "no card"
    print(f"{time.strftime('%Y-%m-%d')}, {args.device}: {cards}", flush=True)
    passed = True
    if args.parity:
        passed = parity(args.parity, args.device, args.dtypes, args.processes)
    else:
        print("parity: not checked, no --parity")
    if not args.models:
        return 0 if passed else 1
    peak = None if args.without_transformers else matrix_peak(args.device.split(",")[0])
    print(f"matrix peak: {peak / 1e12:.3g} TFLOP/s in bf16 with torch\n" if peak else "matrix peak: that of the products here\n", flush=True)
    columns = ["model", "prompts", "tokens", "transformers, tokens/s (tokens a batch)", "here, tokens/s", "ratio",
               "share of the peak, theirs / here", "products here, TFLOP/s", "first / fastest pass, s", "agree",
               "memory, theirs / here, MB"]
    line = lambda cells: print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    line(columns)
    line(["---"] * len(columns))
    own = []
    for spec, model, config in cpu.models(args.models, args.work):
        for which, ids in workloads(args.prompts).items():
            mine, peer = None, None
            try:
                mine = ours(args, model, config, ids)
                if not args.without_transformers:
                    found = theirs(args, model, ids)
                    found["agree"] = cpu.difference(mine, found["first"])
                    peer = found
            except (subprocess.CalledProcessError, SystemExit) as error:
                print(f"{spec}, {which}, {'transformers' if mine else 'here'}: {error}", flush=True)
                passed = False
            if mine:
                line(row(spec, config, which, ids, peak, mine, peer))
        try:
            own += [[spec, *cells] for cells in alone(args, model, config, workloads(args.prompts)["ragged"])]
        except (subprocess.CalledProcessError, SystemExit) as error:
            print(f"{spec}, alone: {error}", flush=True)
            passed = False
    print()
    columns = ["model", "what", "prompts", "tokens/s", "fastest pass, s"]
    for cells in [columns, ["---"] * len(columns), *own]:
        line(cells)
    return 0 if passed else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--theirs"]:
        run_theirs(*sys.argv[2:6], max_tokens=int(sys.argv[6]))
    else:
        sys.exit(main())
