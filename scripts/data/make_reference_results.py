#!/usr/bin/env python3
"""Makes the fixtures of judge-data's tests that look like result files of LAGER's published program.

    python3 scripts/data/make_reference_results.py crates/judge-data/tests/fixtures

Standard library only; CPython 3.9 or later gives the same bytes (checked below). The structure is that of a pandas table
turned into a dict of columns and dumped with indent=4, built here by hand; the numbers are made up. Two files:

    lager_result.json         as the program writes it: rows "0", "1", … in numeric order
    lager_result_sorted.json  the same data dumped with sort_keys=True, which puts "10" before "2"
"""
import json
import math
import platform
import sys
from pathlib import Path

N_LAYERS, N_SCORES = 11, 5  # 12 rows, so that numeric and lexicographic order differ


def item(idx, prompt, raters):
    logits = [
        # Multiples of 1/8, as bf16 logits between 16 and 32 are; the last score of row 3 is tiny, to meet an exponent.
        [round(8 * (layer + 1) * math.sin(1 + 0.7 * idx + 1.3 * layer + 0.9 * score)) / 8 for score in range(N_SCORES)]
        for layer in range(N_LAYERS + 1)
    ]
    logits[3][4] = 1.5e-07
    rows = []
    for layer, values in enumerate(logits):
        top = max(values)
        exps = [math.exp(value - top) for value in values]
        total = 0.0
        for value in exps:
            total += value
        probs = [value / total for value in exps]
        expected = 0.0
        for score, prob in enumerate(probs):
            expected += (score + 1) * prob
        rows.append((layer, values.index(top) + 1, expected, probs, values))
    names = ["layer_n", "direct_score", "weighted_score", "probs", "logits"]
    total = 0.0
    for row in rows:
        total += row[1]
    return {
        "idx": idx,
        "prompt": prompt,
        "human_score": sum(raters) / len(raters),
        "direct_socre": float(rows[-1][1]),
        "weighted_socre": rows[-1][2],
        "weighted_direct_socre": total / len(rows),
        "df": {name: {str(k): row[c] for k, row in enumerate(rows)} for c, name in enumerate(names)},
    }


def failed(idx, prompt, raters):
    return {
        "idx": idx,
        "prompt": prompt,
        "human_score": sum(raters) / len(raters),
        "direct_socre": -1.0,
        "weighted_socre": -1.0,
        "weighted_direct_socre": -1.0,
        "df": {name: {"0": -1} for name in ["layer_n", "direct_score", "weighted_score", "probs"]},
    }


def main():
    assert sys.version_info >= (3, 9), platform.python_version()
    assert repr(0.1 + 0.2) == "0.30000000000000004", "floats are not printed as shortest digits"
    folder = Path(sys.argv[1])
    items = [
        item(0, "Grade this.\n\t\"quoted\" \\ text", [3, 4, 4]),
        failed(1, "No digit came back", [2, 2, 3]),
        item(4, "Bewerte dies: größer → 😀\x7f", [5]),
    ]
    (folder / "lager_result.json").write_text(json.dumps(items, indent=4), encoding="ascii")
    (folder / "lager_result_sorted.json").write_text(json.dumps(items, indent=4, sort_keys=True), encoding="ascii")
    print(f"python=={platform.python_version()} items={len(items)}")


if __name__ == "__main__":
    main()
