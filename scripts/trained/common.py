"""What the scripts of this folder share: where things are, how the program is called, and how a figure is written."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = "models/smollm2-135m-instruct/SmolLM2-135M-Instruct.Q4_1.gguf"


def folder(name):
    """A folder, made where it is not there yet."""
    path = pathlib.Path(name)
    path.mkdir(parents=True, exist_ok=True)
    return path


def arguments(about):
    """The parser of a script: every one takes the folder that its files go to."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("output", type=folder, help="folder for verdicts, scores and reports; a second start resumes there")
    return parser


def of_another_model(parser):
    """The option of the scripts that measure any model of the program."""
    parser.add_argument("--model", help="another model, as the program takes it (default: the file of docs/trained.md)")
    return parser


def of_sets(parser):
    """The options of the scripts that measure any model on several sets, and keep the figures."""
    parser.add_argument("--only", action="append", default=[], help="the sets whose names have this in them (repeatable; default: all)")
    parser.add_argument("--results", help="a file of results/, of this model")
    return of_another_model(parser)


def of_lens(parser):
    """The option of the scripts whose commands let inner states meet the head in two ways."""
    parser.add_argument("--lens", choices=["raw", "normed"], default="raw", help="how inner states meet the head (default: raw)")
    return parser


def with_lens(name, lens):
    """The name of a set, or of its files, that says which lens was not the usual one."""
    return name if lens == "raw" else f"{name}, {lens} lens"


def data(*parts):
    """A file of the folder of public data."""
    folder = os.environ.get("JUDGE_TEST_DATA")
    if not folder:
        sys.exit("JUDGE_TEST_DATA must name the folder of public data (see docs/trained.md)")
    path = pathlib.Path(folder).joinpath(*parts)
    if not path.exists():
        sys.exit(f"{path} is missing: JUDGE_TEST_DATA must name the folder of public data (see docs/trained.md)")
    return path


def model(dtype="bf16", name=None):
    return ["--model", name or data(MODEL), "--dtype", dtype]


def judge(*arguments):
    """Runs the program; its report goes to stderr, so that stdout has the tables alone."""
    binary = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/judge"
    command = [str(part) for part in (binary, *arguments)]
    print("$", " ".join(["judge", *command[1:]]), file=sys.stderr, flush=True)
    found = subprocess.run(command, stdout=sys.stderr)
    if found.returncode:
        sys.exit(found.returncode)


def report(path, *arguments):
    """Runs a command that writes a report, and reads it."""
    judge(*arguments, "--json", path, "--overwrite")
    return json.loads(path.read_text())


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def ranks(values):
    """The place of each value in their order; equal ones share the middle of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found, start = [0.0] * len(values), 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for i in order[start:end + 1]:
            found[i] = (start + end) / 2
        start = end + 1
    return found


def number(value):
    """With three decimals and without the zero before them, as the other pages have it."""
    return f"{value:.3f}".replace("-", "−").replace("0.", ".", 1) if abs(value) < 1 else f"{value:.3f}".replace("-", "−")


def figure(found):
    """A statistic with its interval."""
    if found is None or "estimate" not in found:
        return "undefined"
    interval = f" [{number(found['low'])}, {number(found['high'])}]" if found.get("low") is not None else ""
    return number(found["estimate"]) + interval


def run_record(path):
    """The record of the run that made an output."""
    return json.loads(path.with_name(path.name + ".run.json").read_text())["content"]


def some_of(parser, names, texts):
    """The names that have one of the texts in them; all of them without any."""
    for text in texts:
        if not any(text in name for name in names):
            parser.error(f"no set has {text!r} in its name; there are {', '.join(names)}")
    return [name for name in names if not texts or any(text in name for text in texts)]


def keep(path, model, part, sets):
    """Puts figures of one model into its file of results/: what is there of other parts, sets and judges stays."""
    path = pathlib.Path(path)
    known = {key: model[key] for key in ("name", "fingerprint", "family", "n_layers", "d_model", "dtype", "device")}
    whole = json.loads(path.read_text()) if path.exists() else {"what": "trained", "model": known}
    if whole["model"]["fingerprint"] != known["fingerprint"]:
        sys.exit(f"{path} has the figures of another model, {whole['model']['name']}: name another file")
    text = json.dumps(merged(whole, {part: short(sets)}), indent=1, ensure_ascii=False)
    # A statistic to a line.
    path.write_text(re.sub(r"\{\s+([^{}]*?)\s+\}", lambda found: "{" + re.sub(r"\n\s+", " ", found[1]) + "}", text) + "\n")


def short(found):
    """Without what is undefined, and with five decimals."""
    if isinstance(found, dict):
        return {key: short(value) for key, value in found.items() if value is not None}
    return [short(one) for one in found] if isinstance(found, list) else round(found, 5) if isinstance(found, float) else found


def merged(known, found):
    both = {key: merged(known[key], value) for key, value in found.items() if isinstance(value, dict) and isinstance(known.get(key), dict)}
    return {**known, **found, **both}


def checked(args, name, head, rows):
    """Keeps the figures; with --check says where they are not those of expected/NAME.json, and ends with 1 there. Times are no figures."""
    (args.output / "figures.json").write_text(json.dumps({"head": head, "rows": rows}, indent=1, ensure_ascii=False) + "\n")
    if not getattr(args, "check", False):
        return
    path = pathlib.Path(__file__).parent / "expected" / f"{name}.json"
    if not path.exists():
        sys.exit(f"{path} is missing: what was found is in {args.output / 'figures.json'}")
    expected = json.loads(path.read_text())
    columns = [place for place, column in enumerate(head) if column != "time"]
    wrong = [] if (expected["head"], len(expected["rows"])) == (head, len(rows)) else ["other rows or columns"]
    for known, found in zip(expected["rows"], rows):
        wrong += [f"{' '.join(known[:3])}, {head[at]}: expected {known[at]}, found {found[at]}" for at in columns if not is_near(known[at], found[at])]
    print("\n".join(wrong) if wrong else f"the figures are those of expected/{name}.json")
    sys.exit(1 if wrong else 0)


def is_near(known, found):
    """Whether two cells say the same within what another processor's rounding does to what is learned: numbers within 0.05."""
    parts = [re.findall(r"[−-]?\d*\.\d+", str(cell)) for cell in (known, found)]
    values = [[float(part.replace("−", "-")) for part in own] for own in parts]
    texts = [re.sub(r"[−-]?\d*\.\d+", "#", str(cell)) for cell in (known, found)]
    return texts[0] == texts[1] and all(abs(a - b) <= 0.05 for a, b in zip(*values))


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print(flush=True)
