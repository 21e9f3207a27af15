# numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 statsmodels==0.15.0 krippendorff==0.9.0
"""Writes the fixture of judge-metrics' differences of two judges.

    python scripts/metrics/differences_fixtures.py

differences.json   the first judge less the second of kappas and AUROC (scikit-learn), alphas (krippendorff) and Brier scores, with the p-value
                   of all exchanges of the two (scipy.stats.permutation_test for rows, all subsets of clusters for clusters), of Brier scores
                   by ttest_rel and by OLS on a constant with cov_type="cluster".
"""

import itertools

import krippendorff
import numpy as np
import statsmodels.api as sm
from scipy import stats
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from common import require, write

VERSIONS = require()
rng = np.random.default_rng(43)


def two_sided(seen, drawn):
    slack = 100 * np.finfo(float).eps * abs(seen)
    return min(1.0, 2 * min(np.mean(drawn <= seen + slack), np.mean(drawn >= seen - slack)))


def tested(of_judge, first, second, groups):
    """The difference, and the share of all exchanges of whole groups in which it is as extreme."""
    def difference(a, b, axis=-1):
        return of_judge(a) - of_judge(b)

    seen = difference(first, second)
    names = sorted(set(groups))
    drawn = []
    for swaps in itertools.product([False, True], repeat=len(names)):
        swapped = np.isin(groups, [name for name, swap in zip(names, swaps) if swap])
        drawn.append(difference(np.where(swapped, second, first), np.where(swapped, first, second)))
    p = two_sided(seen, np.array(drawn))
    if len(names) == len(groups):
        scipy = stats.permutation_test((first, second), difference, permutation_type="samples", vectorized=False).pvalue
        assert abs(p - scipy) < 1e-12, (p, scipy)
    return {"estimate": float(seen), "p": float(p)}


def labels(n, groups):
    human = rng.integers(1, 4, n)
    first = np.where(rng.random(n) < 0.8, human, rng.integers(1, 4, n))
    second = np.where(rng.random(n) < 0.3, human, rng.integers(1, 4, n))
    found = {}
    for name, weights in [("cohen_kappa", None), ("cohen_kappa_linear", "linear"), ("cohen_kappa_quadratic", "quadratic")]:
        kappa = lambda judge: cohen_kappa_score(human, judge, labels=[1, 2, 3], weights=weights)
        found[f"difference_{name}"] = tested(kappa, first, second, groups)
    for kind in ["nominal", "ordinal", "interval"]:
        alpha = lambda judge: krippendorff.alpha(np.array([judge, human], float), level_of_measurement=kind)
        found[f"difference_krippendorff_alpha_{kind}"] = tested(alpha, first, second, groups)
    return {"human": human.tolist(), "first": first.tolist(), "second": second.tolist(), "groups": groups.tolist(), "found": found}


def probabilities(n, groups):
    human = rng.integers(0, 2, n)
    logit = lambda size: 1 / (1 + np.exp(-(size * (2 * human - 1) + rng.normal(size=n))))
    first, second = logit(1.5), logit(0.2)
    clustered = len(set(groups)) < n
    gains = (first - human) ** 2 - (second - human) ** 2
    fit = sm.OLS(gains, np.ones(n)).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    low, high = fit.conf_int(0.05)[0]
    brier = {"estimate": float(gains.mean()), "p": float(fit.pvalues[0]), "low": low, "high": high}
    if not clustered:
        paired = stats.ttest_rel((first - human) ** 2, (second - human) ** 2)
        interval = paired.confidence_interval(0.95)
        brier |= {"p": float(paired.pvalue), "low": float(interval.low), "high": float(interval.high)}
    area = {"estimate": roc_auc_score(human, first) - roc_auc_score(human, second)}
    if clustered:
        area = tested(lambda ranks: roc_auc_score(human, ranks), stats.rankdata(first), stats.rankdata(second), groups)
    found = {"difference_brier": brier, "difference_auroc": area}
    return {"human": human.tolist(), "first": first.tolist(), "second": second.tolist(), "groups": groups.tolist(), "found": found}


cases = [
    labels(11, np.arange(11)), labels(24, np.arange(24) // 3), probabilities(30, np.arange(30)), probabilities(36, np.arange(36) // 4)
]
write("differences.json", VERSIONS, cases=cases)
