# numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
"""Writes the fixture of judge-metrics' logistic recalibration.

    python scripts/metrics/recalibration_fixtures.py

recalibration.json   statsmodels' GLM(Binomial) of outcomes on a constant and the logit of probabilities: intercept and slope with their
                     standard errors, and the intercept's p-value.
"""

import numpy as np
import statsmodels.api as sm

from common import require, write

VERSIONS = require()
rng = np.random.default_rng(1958)


def case(n, intercept, slope, spread, decimals, clip):
    p = np.round(1 / (1 + np.exp(-rng.normal(scale=spread, size=n))), decimals)
    logit = np.log(np.clip(p, clip, 1 - clip))
    logit = logit - np.log1p(-np.clip(p, clip, 1 - clip))
    came = rng.random(n) < 1 / (1 + np.exp(-intercept - slope * logit))
    family = sm.families.Binomial()
    # By parameters: the covariance is that of the step before the last, which the deviance alone leaves too far off.
    fit = sm.GLM(came.astype(float), sm.add_constant(logit), family=family).fit(tol=1e-13, tol_criterion="params", maxiter=200)
    return {
        "outcomes": came.tolist(), "probabilities": p.tolist(), "clip": clip,
        "intercept": fit.params[0], "intercept_se": fit.bse[0], "intercept_p": fit.pvalues[0], "slope": fit.params[1], "slope_se": fit.bse[1],
    }


cases = [
    case(200, 0.0, 1.0, 1.0, 6, 1e-12),
    case(300, 0.4, 0.5, 2.0, 6, 1e-12),
    case(150, -0.7, 1.6, 0.7, 2, 1e-6),
    # Some probabilities are 0 or 1 after rounding.
    case(400, 0.2, 0.6, 3.0, 1, 0.01),
]
write("recalibration.json", VERSIONS, cases=cases)
