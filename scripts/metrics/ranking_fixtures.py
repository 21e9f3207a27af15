# numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0 mpmath==1.4.1
"""Writes the fixtures of judge-metrics' ranking and length-controlled win rates.

    python scripts/metrics/ranking_fixtures.py

ranking.json   games.*: Bradley-Terry with ties as half wins by statsmodels GLM(Binomial); Davidson's model by mpmath (30 digits) from
               scipy.optimize's solution; length.*: the length-controlled model by GLM(Binomial) with soft preferences.
"""

import warnings

import mpmath
import numpy as np
import statsmodels.api as sm
from scipy import optimize

from common import require, write_lines

VERSIONS = require()
warnings.filterwarnings("ignore")


def davidson(games, k):
    """Strengths with sum zero, and ln nu."""

    def loss(x):
        theta = np.append(x[:-1], -x[:-1].sum())
        value = 0.0
        for i, j, result in games:
            d = theta[i] - theta[j]
            logs = np.array([d / 2, -d / 2, x[-1]])
            value -= logs[result] - np.logaddexp.reduce(logs)
        return value

    start = optimize.minimize(loss, np.zeros(k), tol=1e-10).x
    mpmath.mp.dps = 30

    def gradient(*x):
        theta = list(x[:-1]) + [-mpmath.fsum(x[:-1])]
        by_theta, by_tie = [mpmath.mpf(0)] * k, mpmath.mpf(0)
        for i, j, result in games:
            d = theta[i] - theta[j]
            w = [mpmath.exp(d / 2), mpmath.exp(-d / 2), mpmath.exp(x[-1])]
            total = mpmath.fsum(w)
            slope = (mpmath.mpf((1, -1, 0)[result]) - (w[0] - w[1]) / total) / 2
            by_theta[i] += slope
            by_theta[j] -= slope
            by_tie += (result == 2) - w[2] / total
        return [by_theta[i] - by_theta[-1] for i in range(k - 1)] + [by_tie]

    x = mpmath.findroot(gradient, [mpmath.mpf(float(v)) for v in start], tol=1e-25)
    x = [x[i] for i in range(k)]
    return [float(v) for v in x[:-1]] + [float(-mpmath.fsum(x[:-1]))], float(mpmath.exp(x[-1])), -float(loss(np.array([float(v) for v in x])))


def games():
    rng = np.random.default_rng(4)
    cases = []
    for k, n, spread in ((2, 12, 0.5), (4, 80, 1.0), (6, 300, 2.0), (9, 200, 0.3)):
        strength = rng.normal(size=k) * spread
        rows = []
        for _ in range(n):
            i, j = rng.choice(k, size=2, replace=False)
            d = strength[i] - strength[j]
            w = np.array([np.exp(d / 2), np.exp(-d / 2), 0.6])
            rows.append((int(i), int(j), int(rng.choice(3, p=w / w.sum()))))
        x = np.zeros((n, k))
        for row, (i, j, _) in enumerate(rows):
            x[row, i], x[row, j] = 1, -1
        y = np.array([(1.0, 0.0, 0.5)[result] for *_, result in rows])
        # The last item is the reference; the fit is moved to sum zero afterwards.
        fit = sm.GLM(y, x[:, :-1], family=sm.families.Binomial()).fit(tol=1e-14, maxiter=200)
        theta = np.append(fit.params, 0.0)
        move = np.eye(k) - 1 / k
        covariance = np.zeros((k, k))
        covariance[:-1, :-1] = fit.cov_params()
        covariance = move @ covariance @ move
        strengths, nu, likelihood = davidson(rows, k)
        cases.append({"games": rows, "strengths": (theta - theta.mean()).tolist(), "se": np.sqrt(np.diag(covariance)).tolist(),
                      "difference_se": float(np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])),
                      "davidson": strengths, "nu": nu, "davidson_log_likelihood": likelihood})
    return cases


def length():
    rng = np.random.default_rng(6)
    cases = []
    for n, with_difficulty in ((30, False), (200, True), (805, True)):
        lengths = np.round(rng.lognormal(5, 0.6, size=(n, 2)))
        delta = lengths[:, 0] - lengths[:, 1]
        feature = np.tanh(delta / delta.std(ddof=1))
        difficulty = np.round(rng.normal(size=n), 3)
        p = 1 / (1 + np.exp(-(0.2 + 1.1 * feature + 0.5 * difficulty)))
        y = np.where(rng.random(n) < 0.3, np.round(p, 3), (rng.random(n) < p).astype(float))
        y[:3] = 0.5
        x = np.column_stack([np.ones(n), feature] + ([difficulty] if with_difficulty else []))
        fit = sm.GLM(y, x, family=sm.families.Binomial()).fit(tol=1e-14, maxiter=200)
        level = x.copy()
        level[:, 1] = 0
        q = 1 / (1 + np.exp(-level @ fit.params))
        slope = (level * (q * (1 - q))[:, None]).mean(0)
        # At the solution itself: the fit's own covariance is one step behind it.
        fitted = 1 / (1 + np.exp(-x @ fit.params))
        covariance = np.linalg.inv(x.T @ (x * (fitted * (1 - fitted))[:, None]))
        cases.append({"preferences": y.tolist(), "lengths": lengths.tolist(), "difficulties": difficulty.tolist() if with_difficulty else None,
                      "weights": fit.params.tolist(), "estimate": float(q.mean()),
                      "se": float(np.sqrt(slope @ covariance @ slope))})
    return cases


write_lines("ranking.json", VERSIONS, games=games(), length=length())
