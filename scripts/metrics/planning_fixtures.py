# numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
"""Writes the fixture of judge-metrics' power and minimum detectable effects.

    python scripts/metrics/planning_fixtures.py

planning.json   statsmodels' ttest_power; the effect and the number of items by solving SciPy's noncentral t for the power, and as
                TTestPower().solve_power gives them; large-sample differences and shortfalls of shares by normal_power and normal_power_het.
"""

import math

import numpy as np
from scipy import optimize, stats
from statsmodels.stats.power import TTestPower, normal_power_het, ttest_power

from common import require, write

VERSIONS = require()


def solved(of, power, high):
    # Far out SciPy's noncentral t is not a number.
    known = lambda x: np.nan_to_num(of(x), nan=1.0)
    while known(high / 2) > power:
        high /= 2
    return optimize.brentq(lambda x: known(x) - power, 0, high, xtol=1e-15, rtol=1e-14)


means = []
for n in [2, 5, 12, 50, 400, 10_000]:
    for level in [0.8, 0.95, 0.99]:
        power_of = lambda effect: float(ttest_power(effect, n, 1 - level))
        effects = [effect for effect in [0.0, 0.1, 0.5, 1.7] if not math.isnan(power_of(effect))]
        case = {"n": n, "level": level, "effects": effects, "powers": [power_of(effect) for effect in effects]}
        if n > 2:
            case["detectable"] = solved(power_of, 0.85, 16 / math.sqrt(n))
            # Statsmodels may find the negative one.
            known = abs(float(np.squeeze(TTestPower().solve_power(nobs=n, alpha=1 - level, power=0.85))))
            assert abs(known - case["detectable"]) < 1e-4 * known, (known, case)
        means.append(case)
items = []
for effect in [0.05, 0.3, 0.9]:
    for power in [0.5, 0.8, 0.95]:
        known = TTestPower().solve_power(effect, alpha=0.05, power=power)
        items.append({"effect": effect, "power": power, "n": math.ceil(known)})
normal = []
for level, power in [(0.95, 0.8), (0.9, 0.2), (0.99, 0.95)]:
    z = stats.norm.isf((1 - level) / 2)
    found = solved(lambda d: stats.norm.sf(z - d) + stats.norm.cdf(-z - d), power, 20)
    normal.append({"level": level, "power": power, "half_width": z, "detectable": found})
shares = []
for expected, n in [(0.9, 100), (0.9, 20), (0.95, 400), (0.5, 60)]:
    std = lambda p: np.sqrt(p * (1 - p))
    power_of = lambda d: float(normal_power_het(-d, n, 0.025, std(expected), std(expected - d), alternative="smaller"))
    shares.append({"expected": expected, "n": n, "shortfall": optimize.brentq(lambda d: power_of(d) - 0.8, 1e-9, expected - 1e-9, xtol=1e-15)})
write("planning.json", VERSIONS, means=means, items=items, normal=normal, shares=shares)
print(ttest_power(0.4, 50, 0.05), solved(lambda e: float(ttest_power(e, 50, 0.05)), 0.8, 1), TTestPower().solve_power(0.4, alpha=0.05, power=0.8), normal[0], shares[0])
