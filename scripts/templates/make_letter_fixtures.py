"""Writes what Python says of each character, for crates/judge-jinja/src/letters.rs.

    python scripts/templates/make_letter_fixtures.py

For a method such as `isalpha`: the characters for which it is true, as first, last and the distance between two. For one such as
`upper`: the characters that it changes, each with what it makes of them. Made with Python 3.11, whose tables are Unicode 14's.
"""

import json
import sys
import unicodedata
from pathlib import Path

assert sys.version_info[:2] == (3, 11) and unicodedata.unidata_version == "14.0.0"

IS = ["isalpha", "isalnum", "isdecimal", "isdigit", "isnumeric", "islower", "isupper", "istitle", "isprintable", "isspace"]
MAKES = ["upper", "lower", "capitalize"]
CHARACTERS = [chr(n) for n in range(0x110000) if not 0xD800 <= n < 0xE000]


def runs(method):
    found = []
    for c in CHARACTERS:
        n = ord(c)
        if not getattr(c, method)():
            continue
        if found and n - found[-1][1] == found[-1][2]:
            found[-1][1] = n
        elif found and found[-1][0] == found[-1][1] and n - found[-1][1] == 2:
            found[-1][1:] = [n, 2]
        else:
            found.append([n, n, 1])
    return [n for run in found for n in run]


def changes(method):
    return {c: getattr(c, method)() for c in CHARACTERS if getattr(c, method)() != c}


lines = [f'"{m}": {json.dumps(runs(m), separators=(",", ":"))}' for m in IS]
lines += [f'"{m}": {json.dumps(changes(m), separators=(",", ":"), ensure_ascii=False)}' for m in MAKES]
path = Path(__file__).parents[2] / "crates/judge-jinja/tests/fixtures/letters.json"
path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
print(path.stat().st_size, "bytes")
