"""Figures of this machine in its file of results/, from which scripts/docs/generate makes tables of docs/benchmarks.md."""

import json
import os
import pathlib
import re
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/judge"


def of_results(parser):
    """The option of the scripts that keep their figures."""
    parser.add_argument("--results", type=pathlib.Path, help="a file of results/, of this kind of machine")


def commit():
    """What the program was built from, as it says itself."""
    said = subprocess.run([BINARY, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\(([0-9a-f]+(?:-dirty)?)\)", said)
    return found and found[1]


def of_checkout():
    """The commit of the checkout, for what a script builds itself; as the program says its own. The results are no part of it."""
    def said(*words):
        return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=True).stdout.strip()

    changed = said("status", "--porcelain", "--untracked-files=no", "--", ":!results")
    return said("rev-parse", "--short=12", "HEAD") + ("-dirty" if changed else "")


def machine():
    name = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{os.cpu_count()} cores: {name[1] if name else 'a processor without a name'}"


def keep(path, part, about, kind, figures, built=commit):
    """Puts a row in the place of the one of the same kind, in one part of the file; `about` has the part's command, and `built` says of
    which commit the row is. No path, no row."""
    if path is None:
        return
    whole = json.loads(path.read_text()) if path.exists() else {"what": "cpu", "machine": machine()}
    rows = [row for row in whole.get(part, {}).get("rows", []) if any(row[key] != kind[key] for key in kind)]
    rows.append({**kind, "date": time.strftime("%Y-%m-%d"), "commit": built(), **figures})
    whole[part] = {**about, "rows": sorted(rows, key=lambda row: [row[key] for key in kind])}
    # A row to a line.
    path.write_text(re.sub(r"\{[^{}]*\}", lambda row: json.dumps(json.loads(row[0])), json.dumps(whole, indent=2)) + "\n")
