# numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
"""Writes the fixtures of judge-metrics' adjusted p-values and of its alternative annotator test.

    python scripts/metrics/alternative_fixtures.py

alternative.json   adjusted.*: statsmodels.stats.multitest.multipletests (holm, fdr_bh, fdr_by).
                   tests.*: the test as Calderon, Reichart and Dror (2025) describe it, with scipy.stats.ttest_1samp(alternative="less") and
                   statsmodels' fdr_by; agreement by the share of equal labels, or by the negated root mean squared distance.
"""

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests

from common import require, write

VERSIONS = require()
rng = np.random.default_rng(2025)


def adjusted():
    columns = [rng.uniform(size=size).round(4) ** power for size, power in ((1, 1), (2, 3), (7, 4), (40, 2))]
    columns += [np.array([0.02, 0.02, 0.5, 0.01, 0.01]), np.array([0.0, 1.0, 1.0]), np.array([1e-300, 0.04, 0.03])]
    return [
        {"p": p.tolist(), **{name: multipletests(p, method=name)[1].tolist() for name in ("holm", "fdr_bh", "fdr_by")}}
        for p in columns
    ]


def agreement(kind, one, others):
    others = np.array(others, dtype=float)
    if kind == "labels":
        return float((others == one).mean())
    return -float(np.sqrt(((others - one) ** 2).mean()))


def left_out(kind, judge, table, epsilon):
    """Per annotator: number of items, share of items on which the judge is at least as good, p-value."""
    found = []
    for person in range(len(table[0])):
        judge_wins, person_wins = [], []
        for said, row in zip(judge, table):
            others = [value for other, value in enumerate(row) if other != person and value is not None]
            if said is None or row[person] is None or not others:
                continue
            ours, theirs = agreement(kind, said, others), agreement(kind, row[person], others)
            judge_wins.append(ours >= theirs)
            person_wins.append(theirs >= ours)
        if len(judge_wins) < 30:
            continue
        difference = np.array(person_wins, float) - np.array(judge_wins, float)
        p = float(stats.ttest_1samp(difference, epsilon, alternative="less").pvalue)
        found.append({"annotator": person, "n": len(judge_wins), "judge": float(np.mean(judge_wins)), "p": p})
    return found


def case(kind, n, people, noise, judge_noise, missing, epsilon):
    truth = rng.integers(1, 6, size=n)

    def annotate(level):
        if kind == "labels":
            return np.where(rng.uniform(size=n) < level, rng.integers(1, 6, size=n), truth).astype(float)
        return np.clip(np.round(truth + rng.normal(scale=3 * level, size=n)), 1, 5)

    columns = [annotate(noise * (1 + person / people)) for person in range(people)]
    table = [[float(column[i]) if rng.uniform() >= missing else None for column in columns] for i in range(n)]
    table = [row[:-1] + [row[-1] if i < 35 else None] for i, row in enumerate(table)]
    judge = [float(value) if rng.uniform() >= missing / 4 else None for value in annotate(judge_noise)]
    found = left_out(kind, judge, table, epsilon)
    by = multipletests([one["p"] for one in found], alpha=0.05, method="fdr_by")
    return {
        "kind": kind,
        "epsilon": epsilon,
        "judge": judge,
        "annotations": table,
        "annotators": [{**one, "adjusted": float(p)} for one, p in zip(found, by[1])],
        "winning_rate": float(np.mean(by[0])),
        "advantage": float(np.mean([one["judge"] for one in found])),
    }


cases = [
    case("labels", 80, 4, 0.2, 0.1, 0.0, 0.2),
    case("labels", 120, 5, 0.3, 0.35, 0.2, 0.15),
    case("labels", 60, 3, 0.3, 0.8, 0.1, 0.1),
    case("ratings", 90, 4, 0.3, 0.2, 0.1, 0.2),
    case("ratings", 150, 6, 0.3, 0.4, 0.3, 0.1),
]
write("alternative.json", VERSIONS, adjusted=adjusted(), tests=cases)
