# torch==2.15.0 transformers==5.23.0 safetensors==0.8.0
"""Checks parity on a card, then reads the same prompts there with transformers and with this crate, most important first.

    cargo build --release --features judge/cuda -p judge
    cargo test --release --features judge-models/cuda -p judge-models --test parity --no-run
    python scripts/gpu/check.py --parity target/release/deps/parity-HASH
        [--minutes 15] [--again] [--only parity,equal] [--one-in 4] [--processes 8] [--judge target/release/judge] [--device cuda:0]
        [--without-transformers] [--small qwen3-0.6b] [--large llama-3.1-8b] [--prompts 64] [--max-batch-tokens 32768] [--work FOLDER]

Each step is a process with a limit of time, and is stopped at its end; what was finished is left out when the script is started again with
the same --work, unless with --again. No step is begun that the minutes left do not hold.

parity    tests/parity.rs on the device, in bf16 and then in f32 and tf32, against the committed values of transformers and so against the
          CPU path in f32, which is held to the same values within 1e-4, as f32 is here. One in so many models is read (--one-in), in so
          many processes, since most of the time goes to the compiler of kernels. Without --parity it is left out, and the script says so.
          A processor has no tf32, wgpu has f32 alone.
equal     prompts of 512 tokens; ragged: as long as judge prompts are; shared: one rubric before all, and five questions about each response;
          these three with the small model, bf16, random weights (scripts/bench/make_model.py; `:4` means four blocks).
          Both sides bring the last token's states of all layers to the host. Transformers runs bf16 and sdpa at several batch sizes of
          equal tokens, the best counts; here each prompt is read three times, the fastest counts. The first of the three has its kernels
          compiled; its time is the column `first`. All prompts must be read whole, and the first one's states be there and finite. `agree` is the
          largest difference of these states, relative to the layer's largest value. Memory is what nvidia-smi says of the cards, above
          what was in use before, for both sides. Beside them are label logits of every layer of the ragged prompts.
write     tokens written greedily behind prompts of 64 tokens, which leave the batch as they end; transformers writes as many behind all.
large     `equal` with the large model.
profile   the small model's `equal` once more with cubecl's profile of each kernel, in WORK/profile.log, and the kernels that took longest.

A step that fails is named, the rest is run, and the script ends with 1; where transformers fails, the line has no figures of it.
`--without-transformers` is for a machine that has no torch: shares of the peak are then of the rate that products reach here, and nothing is
compared. `--device cuda:0,cuda:1` spreads the model's layers over cards, and transformers has the first. Cards are numbered as nvidia-smi
numbers them, among those that CUDA_VISIBLE_DEVICES names. `--device cpu` runs all of it on a processor, with a smaller product: that is how
the script is tested. `--device wgpu:0` is for the parity part (`--only parity`), in builds with that feature.
Nothing here needs the network.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import random
import signal
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


def parity(args, dtype):
    binary, device, processes = args.parity, args.device, args.processes
    environment = dict(os.environ, JUDGE_TEST_DEVICE=device, JUDGE_TEST_DTYPE=dtype,
                       CARGO_MANIFEST_DIR=str(ROOT / "crates/judge-models"))
    start = time.perf_counter()
    print(f"parity, {device}, {dtype}:", flush=True)
    # Every n-th model, shared by the processes.
    parts = [(f"{part * args.one_in}/{processes * args.one_in}", ["--exact", FAMILIES]) for part in range(processes)]
    if args.one_in == 1:
        parts.append(("0/1", ["--skip", FAMILIES]))
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
    return all(results)


def matrix_peak(args):
    """Floating-point operations a second of a large bf16 product with torch, measured by the first step that needs it."""
    device, kept = args.device.split(",")[0], args.work / "peak.json"
    if kept.exists() and device in (peaks := json.loads(kept.read_text())):
        return peaks[device]
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
    peak = 2 * size**3 * times / (time.perf_counter() - start)
    kept.write_text(json.dumps({device: peak}))
    return peak


def ours(args, model, config, ids):
    with CardMemory(args.device) as memory:
        result = cpu.ours(args.judge, model, ids, args.work, *flags(args))
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


def flags(args, times=3):
    return ["--repeat", str(times), "--device", args.device, "--max-batch-tokens", str(args.max_batch_tokens)]


def labels(args, model, config, ids):
    """Tokens a second where label logits of every layer are read."""
    found = cpu.ours(args.judge, model, ids, args.work, "--read", "labels", *flags(args))
    steps, layers = found["first"]["labels"], config["num_hidden_layers"] + 1
    if [len(step["logits"]) for step in steps] != [5 * layers]:
        raise SystemExit(f"the first prompt has not the logits of 5 labels at {layers} layers")
    if not all(x is not None and math.isfinite(x) for step in steps for x in step["logits"]):
        raise SystemExit("not every label logit is finite")
    return f"{found['tokens_per_s']:.0f}"


def write(args):
    spec, model, config = next(cpu.models(args.small, args.work))
    ids = [row[:64] for row in workloads(args.prompts)["equal"]]
    text = cpu.ours(args.judge, model, ids, args.work, *cpu.TEXT, *flags(args))
    if not 0 < text["new_tokens"] <= cpu.NEW_TOKENS * len(ids):
        raise SystemExit(f"{text['new_tokens']} tokens were written behind {len(ids)} prompts")
    rate = text["new_tokens"] / text["read_s"]
    print(f"{spec}, write, {len(ids)} prompts: {rate:.0f} tokens/s here", end="", flush=True)
    if not args.without_transformers:
        peer = theirs(args, model, ids, "write")["tokens_per_s"]
        print(f", {peer:.0f} by transformers, ratio {rate / peer:.2f}", end="")
    print()


def theirs(args, model, ids, what="read"):
    """In a process of its own, so that its memory is its own."""
    prompts, figures = args.work / "prompts.json", args.work / "theirs.json"
    prompts.write_text(json.dumps(ids))
    device = args.device.split(",")[0]
    with CardMemory(device) as memory:
        subprocess.run([sys.executable, __file__, "--theirs", model, prompts, figures, device, str(args.max_batch_tokens), what], check=True)
    result = json.loads(figures.read_text())
    result["memory"] = result["peak_bytes"] if memory.peak is None else memory.peak
    return result


def run_theirs(model, prompts, figures, device, max_tokens, what):
    import resource
    import torch
    import transformers

    for module in (torch, transformers):
        if module.__version__.split("+")[0] != cpu.VERSIONS[module.__name__]:
            print(f"note: {module.__name__} {module.__version__}, written for {cpu.VERSIONS[module.__name__]}", file=sys.stderr)
    transformers.utils.logging.disable_progress_bar()
    ids = json.loads(pathlib.Path(prompts).read_text())
    kind = transformers.AutoModelForCausalLM if what == "write" else transformers.AutoModel
    model = kind.from_pretrained(model, dtype=torch.bfloat16, attn_implementation="sdpa").eval().to(device)
    if what == "write":
        rows = torch.tensor(ids).to(device)
        tokens = cpu.NEW_TOKENS
        with torch.inference_mode():
            for _ in range(2):  # the first warms up
                start = time.perf_counter()
                model.generate(rows, attention_mask=torch.ones_like(rows), max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False,
                               pad_token_id=0)
                if device.startswith("cuda"):
                    torch.cuda.synchronize()
                seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        pathlib.Path(figures).write_text(json.dumps({"tokens_per_s": tokens * len(ids) / seconds, "peak_bytes": peak}))
        return
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


COLUMNS = ["model", "prompts", "tokens", "transformers, tokens/s (tokens a batch)", "here, tokens/s", "ratio", "share of the peak, theirs / here",
           "products here, TFLOP/s", "first / fastest pass, s", "agree", "memory, theirs / here, MB"]


def line(cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def read(args, specs, which):
    """One line of the table, and of the ragged prompts one of label logits."""
    spec, model, config = next(cpu.models(specs, args.work))
    ids = workloads(args.prompts)[which]
    peak = None if args.without_transformers else matrix_peak(args)
    line(COLUMNS)
    line(["---"] * len(COLUMNS))
    mine, peer = ours(args, model, config, ids), None
    try:
        if not args.without_transformers:
            peer = theirs(args, model, ids)
            peer["agree"] = cpu.difference(mine, peer["first"])
    finally:
        line(row(spec, config, which, ids, peak, mine, peer))
    if which == "ragged":
        print(f"{spec}, label logits of {config['num_hidden_layers'] + 1} layers: {labels(args, model, config, ids)} tokens/s")


def profile(args):
    spec, model, _ = next(cpu.models(args.small, args.work))
    log = args.work / "profile.log"
    os.environ.update(CUBECL_DEBUG_OPTION="profile-full", CUBECL_DEBUG_LOG=str(log))
    cpu.ours(args.judge, model, workloads(args.prompts)["equal"], args.work, *flags(args, times=1))
    if not log.exists():
        print(f"{spec}: no kernel was profiled: that is not for such a device")
        return
    print("".join(log.read_text(errors="replace").splitlines(keepends=True)[:60]))


def steps(args):
    """Name, limit in seconds and body of each step, most important first."""
    of_device = DTYPES.get(args.device.split(":")[0], DTYPES["cuda"])
    found = []
    if args.parity:
        found += [(f"parity {dtype}", 75, lambda dtype=dtype: parity(args, dtype)) for dtype in ("bf16", "f32", "tf32") if dtype in of_device]
    found += [(f"{which} {args.small}", 100, lambda which=which: read(args, args.small, which)) for which in ("equal", "ragged", "shared")]
    found.append((f"write {args.small}", 90, lambda: write(args)))
    found.append((f"large {args.large}", 240, lambda: read(args, args.large, "equal")))
    found.append((f"profile {args.small}", 60, lambda: profile(args)))
    only = args.only.split(",") if args.only else None
    return [step for step in found if only is None or step[0].split()[0] in only]


def run_step(name, limit):
    """The step in a process of its own, which ends with all that it has started; whether it passed."""
    process = subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--step", name], start_new_session=True)
    try:
        return process.wait(limit) == 0
    except subprocess.TimeoutExpired:
        print(f"{name}: stopped after {limit:.0f} s", flush=True)
        return False
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def main():
    start = time.monotonic()
    # CUDA puts the fastest first otherwise, nvidia-smi never does.
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--parity", type=pathlib.Path, help="the test binary of tests/parity.rs")
    parser.add_argument("--one-in", type=int, default=4, help="of the parity part: every so-manieth model is read")
    parser.add_argument("--processes", type=int, default=8, help="of the parity part, side by side: most of its time is the compiler's")
    parser.add_argument("--judge", type=pathlib.Path, default=ROOT / "target/release/judge")
    parser.add_argument("--small", default="qwen3-0.6b")
    parser.add_argument("--large", default="llama-3.1-8b")
    parser.add_argument("--prompts", type=int, default=64)
    parser.add_argument("--max-batch-tokens", type=int, default=32768)
    parser.add_argument("--minutes", type=float, default=15, help="for all steps together")
    parser.add_argument("--only", help="steps by the first word of their name, with commas between them")
    parser.add_argument("--again", action="store_true", help="also what was finished before")
    parser.add_argument("--without-transformers", action="store_true")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()) / "judge-gpu")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    if args.step:
        return 1 if next(body for name, _, body in steps(args) if name == args.step)() is False else 0
    cards = "; ".join(smi("name,driver_version,memory.total", args.device)) or "no card"
    print(f"{time.strftime('%Y-%m-%d')}, {args.device}: {cards}", flush=True)
    if not args.parity:
        print("parity: not checked, no --parity")
    record = args.work / "finished.json"
    finished = [] if args.again or not record.exists() else json.loads(record.read_text())
    failed = []
    for name, limit, _ in steps(args):
        left = 60 * args.minutes - (time.monotonic() - start)
        key = f"{args.device} {name}"
        if key in finished:
            print(f"== {name}: finished before", flush=True)
            continue
        if left < 20:
            print(f"== {name}: not begun, {left:.0f} s are left", flush=True)
            failed.append(name)
            continue
        print(f"== {name}, after {time.monotonic() - start:.0f} s", flush=True)
        if run_step(name, min(limit, left)):
            finished.append(key)
            record.write_text(json.dumps(finished))
        else:
            failed.append(name)
    print(f"== all steps took {time.monotonic() - start:.0f} s" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--theirs"]:
        run_theirs(*sys.argv[2:6], max_tokens=int(sys.argv[6]), what=sys.argv[7])
    else:
        sys.exit(main())
