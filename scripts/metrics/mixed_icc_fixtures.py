# numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
"""Writes the fixture of judge-metrics' intraclass correlations with missing ratings.

    python scripts/metrics/mixed_icc_fixtures.py

mixed_icc.json   variance components by restricted maximum likelihood with the whole covariance matrix, minimised by SciPy, and ends of the
                 95 % profile-likelihood intervals; compared here with statsmodels' MixedLM (subjects and raters as variance components).
"""

import warnings

import numpy as np
import pandas as pd
import statsmodels.api as sm
from scipy import optimize, special, stats

from common import require, write

VERSIONS = require()
rng = np.random.default_rng(68)


def deviance(y, subject, rater, parts):
    """-2 restricted log-likelihood but for a constant, the residual variance profiled out; parts relative to their sum."""
    s, r, e = parts
    v = s * np.equal.outer(subject, subject) + r * np.equal.outer(rater, rater) + e * np.eye(len(y))
    inverse = np.linalg.inv(v)
    ones = np.ones(len(y))
    information = ones @ inverse @ ones
    rest = y - (ones @ inverse @ y) / information
    return (len(y) - 1) * np.log(rest @ inverse @ rest) + np.linalg.slogdet(v)[1] + np.log(information)


def parts_of(form, icc, other):
    if form == "one_way":
        return icc, 0.0, 1 - icc
    if form == "agreement":
        return icc, (1 - icc) * other, (1 - icc) * (1 - other)
    return icc * (1 - other), other, (1 - icc) * (1 - other)


def profile(data, form, icc):
    if form == "one_way":
        return deviance(*data, parts_of(form, icc, 0))
    of = lambda odds: deviance(*data, parts_of(form, icc, special.expit(odds)))
    # The profile may have two minima, one of them near 1.
    ends = np.linspace(-11.5, 11.5, 11)
    found = [optimize.minimize_scalar(of, bounds=pair, method="bounded", options={"xatol": 1e-9}).fun for pair in zip(ends, ends[1:])]
    return min(*found, of(-np.inf))


def fitted(ratings):
    rows, columns = np.nonzero(~np.isnan(ratings))
    data = ratings[rows, columns], rows, columns
    found = {}
    for form in ["one_way", "agreement", "consistency"]:
        of = lambda icc: profile(data, form, icc)
        best = optimize.minimize_scalar(of, bounds=(0, 1 - 1e-9), method="bounded", options={"xatol": 1e-11})
        limit = best.fun + stats.chi2.ppf(0.95, 1)
        low = optimize.brentq(lambda x: of(x) - limit, 0, best.x) if of(0) > limit else 0.0
        high = optimize.brentq(lambda x: of(x) - limit, best.x, 1 - 1e-6)
        found[form] = {"estimate": float(best.x), "low": float(low), "high": float(high)}
    y, subject, rater = data
    frame = pd.DataFrame({"y": y, "subject": subject, "rater": rater, "all": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        vc = {"subject": "0 + C(subject)", "rater": "0 + C(rater)"}
        known = sm.MixedLM.from_formula("y ~ 1", groups="all", vc_formula=vc, re_formula="0", data=frame).fit(reml=True)
        one_way = sm.MixedLM.from_formula("y ~ 1", groups="subject", data=frame).fit(reml=True)
    r, s = known.vcomp
    e = known.scale
    theirs = {"agreement": s / (s + r + e), "consistency": s / (s + e)}
    between = float(one_way.cov_re.iloc[0, 0])
    theirs["one_way"] = between / (between + one_way.scale)
    print({form: (found[form]["estimate"], round(float(theirs[form]), 5)) for form in theirs})
    assert all(abs(found[form]["estimate"] - theirs[form]) < 2e-3 for form in theirs)
    return {"ratings": [[None if np.isnan(x) else float(x) for x in row] for row in ratings], "found": found}


def case(n, k, missing, spread):
    ratings = rng.normal(size=(n, 1)) * spread[0] + rng.normal(size=(1, k)) * spread[1] + rng.normal(size=(n, k)) * spread[2]
    ratings = np.round(3 + ratings, 1)
    ratings[rng.random((n, k)) < missing] = np.nan
    return fitted(ratings)


shrout = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], float)
gaps = shrout.copy()
gaps[0, 1] = gaps[3, 2] = gaps[5, 0] = np.nan
cases = [fitted(shrout), fitted(gaps), case(20, 3, 0.3, (1, 0.5, 1)), case(40, 5, 0.5, (1, 0.3, 0.6)), case(30, 2, 0.2, (0.7, 0.4, 1))]
write("mixed_icc.json", VERSIONS, cases=cases)
