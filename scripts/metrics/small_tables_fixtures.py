# numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 statsmodels==0.15.0
"""Writes the fixture of tests on small tables.

    python scripts/metrics/small_tables_fixtures.py

small_tables.json  kappa[]: scipy.stats.permutation_test over all pairings of sklearn's cohen_kappa_score, plain and weighted;
                   fleiss[]: statsmodels fleiss_kappa over all orders of each rater's labels but the first's, two-sided by doubling;
                   bias[]: scipy.stats.ttest_rel of judge and people, p-value and interval;
                   kendall[]: scipy.stats.kendalltau(method="exact") of columns without ties.
"""

import itertools
import json

import numpy as np
from scipy import stats
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

from common import OUT, require

require()
rng = np.random.default_rng(59)


def kappa(judge, people):
    labels = sorted(set(judge) | set(people))

    def p_value(weights):
        statistic = lambda x: cohen_kappa_score(people, np.asarray(x, int), labels=labels, weights=weights)
        test = stats.permutation_test((np.asarray(judge),), statistic, permutation_type="pairings", n_resamples=np.inf, vectorized=False)
        return test.pvalue

    return {"judge": judge, "people": people, "p": [p_value(weights) for weights in (None, "linear", "quadratic")]}


def fleiss(columns, k):
    def value(columns):
        counts, _ = aggregate_raters(np.array(columns).T, n_cat=k)
        return fleiss_kappa(counts)

    seen = value(columns)
    orders = itertools.product(*[itertools.permutations(column) for column in columns[1:]])
    values = np.array([value([columns[0], *order]) for order in orders])
    slack = 100 * np.finfo(float).eps * abs(seen)
    tails = (values >= seen - slack).mean(), (values <= seen + slack).mean()
    return {"columns": columns, "kappa": seen, "p": min(1.0, 2 * min(tails))}


def bias(judge, people):
    test = stats.ttest_rel(judge, people)
    return {"judge": judge, "people": people, "p": test.pvalue, "interval": list(test.confidence_interval(0.95))}


def kendall(n, noise):
    people = rng.permutation(n).astype(float)
    judge = people + rng.normal(0, noise * n, n)
    return {"judge": judge.tolist(), "people": people.tolist(), "p": stats.kendalltau(judge, people, method="exact").pvalue}


# Consecutive grades: weights by place and by value are then the same.
kappas = [kappa([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]), kappa([1, 2, 3, 3, 2, 1], [1, 2, 3, 2, 2, 1])]
for n in (4, 5, 6, 7):
    while True:
        judge, people = rng.integers(1, 4, n).tolist(), rng.integers(1, 4, n).tolist()
        if len(set(judge)) == 3 and len(set(people)) > 1:
            break
    kappas.append(kappa(judge, people))
raters = [fleiss([[0, 1, 2]] * 3, 3), fleiss([[0, 1, 1, 0], [0, 1, 1, 1], [0, 1, 0, 0]], 2), fleiss([[0, 1, 2, 0, 1], [0, 1, 2, 1, 1]], 3)]
means = []
for n in (3, 8, 40):
    people = rng.integers(1, 6, n).astype(float)
    means.append(bias((people + rng.normal(0.3, 0.7, n)).round(2).tolist(), people.tolist()))
found = {"kappa": kappas, "fleiss": raters, "bias": means, "kendall": [kendall(12, 0.3), kendall(60, 0.2), kendall(200, 0.15), kendall(100, 2.0)]}
(OUT / "small_tables.json").write_text(json.dumps(found) + "\n")
