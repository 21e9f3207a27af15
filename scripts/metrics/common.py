"""What the scripts that write the fixtures of judge-metrics have in common."""

import json
import pathlib
import re
import sys
from importlib.metadata import version

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/judge-metrics/tests/fixtures"


def require():
    """The packages that the first line of the script names, each with its version; ends the program unless exactly these are installed."""
    versions = dict(re.findall(r"([\w-]+)==([\w.]+)", pathlib.Path(sys.argv[0]).read_text().split("\n")[0]))
    for package, wanted in versions.items():
        found = version(package)
        print(package, found)
        if found != wanted:
            raise SystemExit(f"{package} {wanted} is needed, found {found}")
    return versions


def head(versions, **more):
    """What a fixture says of how it was made."""
    return {"script": f"scripts/metrics/{pathlib.Path(sys.argv[0]).name}", **more, "versions": versions}


def write(name, versions, **parts):
    """Writes a fixture of these parts."""
    (OUT / name).write_text(json.dumps(head(versions) | parts) + "\n")


def write_lines(name, versions, *, source=None, default=None, **parts):
    """The same of parts that are lists, a case to a line; `source` is what the cases are by."""
    made = head(versions, **({"source": source} if source else {}))
    lists = [f', "{part}": [\n' + ",\n".join(json.dumps(case, default=default) for case in cases) + "\n]" for part, cases in parts.items()]
    (OUT / name).write_text(json.dumps(made)[:-1] + "".join(lists) + "}\n")
    print(name, {part: len(cases) for part, cases in parts.items()}, (OUT / name).stat().st_size, "bytes")
