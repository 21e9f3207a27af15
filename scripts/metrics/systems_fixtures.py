# numpy==2.4.6 scipy==1.17.1
"""Writes the fixture of judge-metrics' comparisons of clustered pairs.

    python scripts/metrics/systems_fixtures.py

systems.json   grouped: means over groups of scipy.stats.pearsonr and kendalltau; mcnemar: (sum d)^2 / sum d^2 and scipy.stats.chi2.sf; somers: Somers' D of scipy.stats.somersd and
               the asymptotic standard error of SAS's FREQ procedure, summed over the cells of the contingency table.
"""

import warnings

import numpy as np
from scipy import stats

from common import require, write

VERSIONS = require()
warnings.filterwarnings("ignore")
rng = np.random.default_rng(2024)


def grouped(n, groups):
    human = rng.integers(1, 6, size=n).astype(float)
    scores = human + rng.normal(size=n)
    group = rng.integers(0, groups, size=n)
    found = {"pearson": [], "kendall": []}
    undefined = 0
    for one in sorted(set(group.tolist())):
        rows = group == one
        if rows.sum() < 2 or len(set(human[rows])) < 2:
            undefined += 1
            continue
        found["pearson"].append(stats.pearsonr(human[rows], scores[rows]).statistic)
        found["kendall"].append(stats.kendalltau(human[rows], scores[rows]).statistic)
    return {
        "human": human.tolist(), "scores": scores.tolist(), "group": group.tolist(), "undefined": undefined,
        "pearson": float(np.mean(found["pearson"])), "pearson_se": float(stats.sem(found["pearson"])), "kendall": float(np.mean(found["kendall"])),
    }


def mcnemar(n, groups):
    group = rng.integers(0, groups, size=n)
    easy = rng.normal(size=groups)[group]
    first, second = rng.normal(size=n) + easy > -0.3, rng.normal(size=n) + easy > 0.1
    d = np.array([np.sum(first[group == one].astype(int) - second[group == one]) for one in range(groups)])
    statistic = d.sum() ** 2 / np.sum(d**2)
    return {
        "first": first.tolist(), "second": second.tolist(), "group": group.tolist(), "statistic": float(statistic),
        "p": float(stats.chi2.sf(statistic, 1)),
    }


def somers(n, rows, columns):
    x = rng.integers(0, rows, size=n)
    y = np.clip(x + rng.integers(-2, 3, size=n), 0, columns - 1)
    table = np.zeros((rows, columns))
    np.add.at(table, (x, y), 1)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    i, j = np.indices(table.shape)
    a = np.array([[table[(i > r) & (j > c)].sum() + table[(i < r) & (j < c)].sum() for c in range(table.shape[1])] for r in range(table.shape[0])])
    d = np.array([[table[(i > r) & (j < c)].sum() + table[(i < r) & (j > c)].sum() for c in range(table.shape[1])] for r in range(table.shape[0])])
    surplus = np.sum(table * (a - d))
    w = n**2 - np.sum(table.sum(axis=1) ** 2)
    variance = 4 / w**4 * np.sum(table * (w * (a - d) - surplus * (n - table.sum(axis=1))[:, None]) ** 2)
    result = stats.somersd(x, y)
    assert abs(result.statistic - surplus / w) < 1e-12
    return {"x": x.tolist(), "y": y.tolist(), "d": result.statistic, "p": result.pvalue, "se": float(np.sqrt(variance))}


write(
    "systems.json",
    VERSIONS,
    grouped=[grouped(40, 6), grouped(30, 12)],
    mcnemar=[mcnemar(60, 15), mcnemar(200, 40)],
    somers=[somers(30, 4, 5), somers(200, 3, 9), somers(12, 6, 6)],
)
