# numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
"""Writes the fixture of judge-metrics' means of items that were drawn with unequal probabilities.

    python scripts/metrics/weighted_fixtures.py

weighted.json   means: statsmodels' WLS on a constant with weights 1 / probability and cov_type="cluster" (use_t=True); powered: the
                prediction-powered mean of drawn labels by its formula, its variance by OLS of what each item adds, λ by minimising it.
"""

import numpy as np
import statsmodels.api as sm
from scipy import optimize, stats

from common import require, write

VERSIONS = require()
rng = np.random.default_rng(2403)


def mean(n, n_clusters):
    groups = np.arange(n) if n_clusters == n else rng.integers(0, n_clusters, n)
    p = rng.uniform(0.05, 1.0, n)
    values = rng.normal(size=n) + 2 * p
    fit = sm.WLS(values, np.ones(n), weights=1 / p).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    low, high = fit.conf_int(0.05)[0]
    case = {"values": values.tolist(), "probabilities": p.tolist(), "groups": groups.tolist()}
    return case | {"mean": fit.params[0], "se": fit.bse[0], "low": low, "high": high, "p": fit.pvalues[0]}


def powered(n_all, n_clusters, lam):
    groups = np.arange(n_all) if n_clusters == n_all else rng.integers(0, n_clusters, n_all)
    judge = rng.normal(size=n_all)
    human = 3 + 0.8 * judge + rng.normal(size=n_all)
    p = 0.1 + 0.6 / (1 + np.exp(-judge))
    drawn = rng.random(n_all) < p
    w = np.where(drawn, 1 / p, 0.0)
    hajek = lambda column: (w * column).sum() / w.sum()

    def found(lam):
        rest = human - lam * judge
        estimate = lam * judge.mean() + hajek(rest)
        adds = n_all / w.sum() * w * (rest - hajek(rest)) + lam * judge
        fit = sm.OLS(adds, np.ones(n_all)).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
        return estimate, fit.bse[0]

    best = lam
    if lam is None:
        best = float(optimize.minimize_scalar(lambda x: found(x)[1] ** 2, bounds=(0, 1), method="bounded", options={"xatol": 1e-12}).x)
    estimate, se = found(best)
    labelled = len(set(groups[drawn]))
    se *= np.sqrt(labelled / (labelled - 1))
    half = stats.t.ppf(0.975, labelled - 1) * se
    split = lambda column: [np.asarray(column)[drawn].tolist(), np.asarray(column)[~drawn].tolist()]
    return {
        "labels": human[drawn].tolist(), "probabilities": p[drawn].tolist(), "scores": split(judge), "groups": split(groups), "fixed": lam,
        "lambda": best, "mean": estimate, "se": se, "low": estimate - half, "high": estimate + half,
    }


write(
    "weighted.json",
    VERSIONS,
    means=[mean(20, 20), mean(60, 9), mean(200, 50)],
    powered=[powered(80, 80, 1.0), powered(80, 80, None), powered(150, 30, None), powered(90, 20, 0.3)],
)
