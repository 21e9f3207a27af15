# numpy==2.4.6, mt_metrics_eval/tau_optimization.py of google-research/mt-metrics-eval at commit 0b82d96b9a75ac392ddc44587fff2acae2c3c63e
"""Writes the fixture of judge-metrics' pairwise accuracy with calibrated ties.

    PYTHONPATH=path/to/mt-metrics-eval python scripts/metrics/pairwise_accuracy_fixtures.py

pairwise_accuracy.json   tau_optimization(scores, human, TauSufficientStats.acc_23) on rows of items that are compared with each other, missing entries as None. The file in the repository was written with a
                         copy of that module made by hand from the commit named, without its comments and unused functions; not yet repeated with a checkout.
"""

import numpy as np
from mt_metrics_eval.tau_optimization import TauSufficientStats, tau_optimization

from common import require, write

VERSIONS = require() | {"mt-metrics-eval": "0b82d96b9a75ac392ddc44587fff2acae2c3c63e"}
rng = np.random.default_rng(2023)


def case(rows, columns, grades, noise, missing, digits):
    human = rng.integers(1, grades + 1, size=(rows, columns)).astype(object)
    scores = np.array([[round(float(h) + noise * rng.normal(), digits) for h in row] for row in human], dtype=object)
    for i in range(rows):
        for j in range(columns):
            if rng.uniform() < missing:
                scores[i, j] = None
    human = np.array([[float(h) for h in row] for row in human], dtype=object)
    found = tau_optimization(scores, human, TauSufficientStats.acc_23)
    return {
        "human": human.tolist(),
        "scores": scores.tolist(),
        "threshold": found.best_threshold,
        "accuracy": found.best_tau,
        "without": found.taus[0] if len(found.taus) else None,
    }


cases = [case(*shape) for shape in ((1, 12, 3, 0.5, 0.0, 1), (20, 6, 5, 1.0, 0.0, 2), (15, 8, 2, 0.7, 0.2, 1), (30, 4, 5, 2.0, 0.1, 0), (6, 10, 9, 3.0, 0.0, 3))]
write("pairwise_accuracy.json", VERSIONS, cases=cases)
