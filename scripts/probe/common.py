"""What the scripts that write the fixtures of judge-probe have in common."""

import json
import pathlib
import re
import sys
from importlib.metadata import version

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/judge-probe/tests/fixtures"


def require():
    """The packages that the first line of the script names, as they are imported, each with its version; ends the program unless exactly
    these are installed."""
    versions = dict(re.findall(r"([\w-]+)==([\w.]+)", pathlib.Path(sys.argv[0]).read_text().split("\n")[0]))
    for package, wanted in versions.items():
        if version(package) != wanted:
            raise SystemExit(f"{package} {wanted} is needed, found {version(package)}")
    return {package.replace("scikit-learn", "sklearn"): wanted for package, wanted in versions.items()}


def write(name, versions, cases, *, separators=None, **about):
    """Writes a fixture, a case to a line behind what there is to say of them all."""
    head = json.dumps({"script": f"scripts/probe/{pathlib.Path(sys.argv[0]).name}", "versions": versions, **about})[:-1]
    lines = ",\n".join(json.dumps(case, separators=separators) for case in cases)
    (OUT / name).write_text(f'{head}, "cases": [\n{lines}\n]}}\n')
    print(name, len(cases), "cases", (OUT / name).stat().st_size, "bytes")
