"""What the scripts that write the fixtures of judge-metrics have in common."""

import pathlib
from importlib.metadata import version

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/judge-metrics/tests/fixtures"


def require(versions):
    """Ends the program unless each package named has exactly the version beside it."""
    for package, wanted in versions.items():
        found = version(package)
        print(package, found)
        if found != wanted:
            raise SystemExit(f"{package} {wanted} is needed, found {found}")
