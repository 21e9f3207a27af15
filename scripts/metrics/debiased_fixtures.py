# uncertainty-calibration==0.1.4 numpy==2.4.6
"""Writes debiased_calibration.json: squared calibration errors without the part that chance adds.

    python scripts/metrics/debiased_fixtures.py

Estimates are calibration.utils.unbiased_square_ce of uncertainty-calibration, the authors' own program (Kumar, Liang and Ma, 2019), over its bins of
equal mass (n a multiple of their number, no confidence twice) and of equal width. Standard errors are written out here with NumPy: there is no
other program that has them.
"""

import numpy as np
from calibration import utils

from common import require, write_lines

VERSIONS = require()
rng = np.random.default_rng(19)
SCHEMES = {"mass": utils.get_equal_bins, "width": utils.get_equal_prob_bins}


def standard_error(binned, n):
    share, gap, noise = [], [], []
    for rows in binned:
        if len(rows):
            outcome = rows[:, 1]
            share.append(len(rows) / n)
            gap.append(outcome.mean() - rows[:, 0].mean())
            noise.append(outcome.var() / (len(rows) - 1))
    share, gap, noise = map(np.array, (share, gap, noise))
    squares = np.clip(gap**2 - noise, 0, None)
    return np.sqrt(np.sum(share**2 * (4 * squares * noise + 2 * noise**2)))


def cases():
    for name, n, bins, slope in (("calibrated", 200, 10, 1.0), ("overconfident", 300, 15, 0.5), ("few", 24, 4, 0.8), ("one bin", 50, 1, 0.7)):
        confidence = rng.beta(4, 2, n)
        outcomes = rng.random(n) < 0.5 + slope * (confidence - 0.5)
        for kind, scheme in SCHEMES.items():
            data = list(zip(confidence, outcomes.astype(float)))
            binned = utils.bin(data, scheme(confidence.tolist(), num_bins=bins))
            if min(len(rows) for rows in binned if len(rows)) < 2:
                continue
            yield {"name": f"{name}, {kind}", "kind": kind, "bins": bins, "probabilities": confidence.tolist(), "outcomes": outcomes.tolist(),
                   "plain": float(utils.plugin_ce(binned, power=2) ** 2), "debiased": float(utils.unbiased_square_ce(binned)),
                   "se": float(standard_error(binned, n))}


write_lines("debiased_calibration.json", VERSIONS, cases=list(cases()))
