# numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
"""Writes the fixture of judge-metrics' mean of clustered items.

    python scripts/metrics/clustered_fixtures.py

clustered.json   statsmodels' OLS on a constant with cov_type="cluster" and use_t=True: estimate, standard error, 95 % interval.
"""

import numpy as np
import statsmodels.api as sm

from common import require, write

VERSIONS = require()
rng = np.random.default_rng(1986)


def case(n, n_clusters, spread, scale):
    groups = rng.integers(0, n_clusters, size=n)
    groups[:n_clusters] = np.arange(n_clusters)
    values = scale * (rng.normal(size=n_clusters)[groups] * spread + rng.normal(size=n))
    fit = sm.OLS(values, np.ones(n)).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    low, high = fit.conf_int(0.05)[0]
    return {"values": values.tolist(), "groups": groups.tolist(), "mean": fit.params[0], "se": fit.bse[0], "low": low, "high": high}


cases = [case(12, 2, 1.0, 1.0), case(40, 8, 2.0, 1.0), case(200, 50, 0.3, 100.0), case(30, 30, 0.0, 1e-6)]
write("clustered.json", VERSIONS, cases=cases)
