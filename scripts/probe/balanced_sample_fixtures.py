# CPython==3.11
"""Writes the fixture of judge-probe's balanced samples: what CPython's `random.sample` draws from each score's rows.

    python scripts/probe/balanced_sample_fixtures.py

Scores come from an integer formula that the test repeats, so only the rows drawn are stored.
"""

import random
import sys

from common import write

if sys.version_info[:2] != (3, 11):
    raise SystemExit(f"CPython 3.11 is needed, found {sys.version}")


def draw(scores, per_score, seed):
    random.seed(seed)
    buckets = {}
    for row, score in enumerate(scores):
        buckets.setdefault(score, []).append(row)
    k = min(map(len, buckets.values())) if per_score is None else per_score
    return [row for rows in buckets.values() for row in random.sample(rows, k)]


cases = []
for n, modulus, per_score, seed in [(300, 5, None, 731), (900, 9, None, 731), (900, 7, 6, 2**40 + 3), (4000, 5, 20, 0), (60, 1, None, 5), (50, 3, 0, 1)]:
    # Score 1 to 5, unequally often.
    scores = [1 + (row * row + 31 * row) % 10007 % modulus % 5 for row in range(n)]
    cases.append({"n": n, "modulus": modulus, "per_score": per_score, "seed": seed, "rows": draw(scores, per_score, seed)})

write("balanced_sample.json", {"CPython": "3.11"}, cases)
