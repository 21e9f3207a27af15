# numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
"""Writes the fixture of judge-metrics' Bradley-Terry model of games with weights, covariates and clusters.

    python scripts/metrics/games_fixtures.py

games.json   statsmodels' GLM(Binomial) of soft preferences on a design of +1 and -1, the last item dropped, with freq_weights; strengths
             are turned to sum zero. Clustered covariances are cov_type="cluster" without its own correction, times G / (G - 1).
"""

import warnings

import numpy as np
import statsmodels.api as sm

from common import require, write

VERSIONS = require()
warnings.filterwarnings("ignore")
rng = np.random.default_rng(1952)


def case(m, n, k, soft, weighted, n_clusters):
    first = rng.integers(0, m, size=n)
    second = (first + rng.integers(1, m, size=n)) % m
    covariates = rng.normal(size=(n, k))
    strengths = rng.normal(size=m) / 2
    log_odds = strengths[first] - strengths[second] + covariates.sum(axis=1) / 2
    p = 1 / (1 + np.exp(-log_odds - rng.normal(size=n) / 2))
    preference = p if soft else (rng.random(n) < p).astype(float)
    weight = rng.integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
    clusters = rng.integers(0, n_clusters, size=n) if n_clusters else None
    design = np.zeros((n, m))
    design[np.arange(n), first] = 1
    design[np.arange(n), second] = -1
    design = np.hstack([design[:, :-1], covariates])
    model = sm.GLM(preference, design, family=sm.families.Binomial(), freq_weights=weight)
    if clusters is None:
        fit = model.fit(tol=1e-14)
        covariance = np.asarray(fit.cov_params())
    else:
        fit = model.fit(tol=1e-14, cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False})
        count = len(set(clusters.tolist()))
        covariance = np.asarray(fit.cov_params()) * count / (count - 1)
    # From the last item at zero to a sum of zero.
    turn = np.vstack([np.eye(m - 1), np.zeros(m - 1)]) - 1 / m
    of_strengths = turn @ covariance[: m - 1, : m - 1] @ turn.T
    return {
        "m": m, "first": first.tolist(), "second": second.tolist(), "preference": preference.tolist(), "weight": weight.tolist(),
        "covariates": covariates.tolist(), "clusters": None if clusters is None else clusters.tolist(),
        "strengths": (turn @ fit.params[: m - 1]).tolist(), "se": np.sqrt(np.diag(of_strengths)).tolist(),
        "difference_se": float(np.sqrt(of_strengths[0, 0] + of_strengths[1, 1] - 2 * of_strengths[0, 1])),
        "coefficients": fit.params[m - 1 :].tolist(), "coefficient_se": np.sqrt(np.diag(covariance))[m - 1 :].tolist(),
    }


cases = [
    case(4, 120, 0, soft=False, weighted=False, n_clusters=0),
    case(4, 150, 2, soft=False, weighted=True, n_clusters=0),
    case(5, 200, 1, soft=True, weighted=False, n_clusters=25),
    case(3, 80, 3, soft=True, weighted=True, n_clusters=12),
]
write("games.json", VERSIONS, cases=cases)
