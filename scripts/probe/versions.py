"""The versions that fixtures are made with."""

import importlib


def require(versions):
    """Ends the program unless each module named has exactly the version beside it."""
    for name, wanted in versions.items():
        found = importlib.import_module(name).__version__
        if found != wanted:
            raise SystemExit(f"{name} {wanted} is needed, found {found}")
