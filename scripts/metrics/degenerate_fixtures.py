# numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 statsmodels==0.15.0 krippendorff==0.9.0
"""Writes the fixture of statistics on few rows and on columns that hardly vary.

    python scripts/metrics/degenerate_fixtures.py

degenerate.json   ranks[]: scipy.stats.permutation_test over all pairings of spearmanr, kendalltau (b) and somersd(people, judge), with somersd itself;
                  wilson[]: statsmodels proportion_confint; log_loss: sklearn.metrics.log_loss of probabilities 0 and 1;
                  auroc: sklearn.metrics.roc_auc_score beside somersd; texts: krippendorff.alpha (nominal) and cohen_kappa_score (quadratic) of labels;
                  mcnemar: statsmodels mcnemar(exact=True) without a discordant pair.
"""

import json
import warnings

import krippendorff
import numpy as np
from scipy import stats
from sklearn import metrics
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from common import OUT, require

require()
warnings.filterwarnings("ignore")


def exact(judge, people, statistic):
    test = stats.permutation_test((np.asarray(judge, float),), lambda x: statistic(x, people), permutation_type="pairings",
                                  n_resamples=np.inf, vectorized=False)
    return test.pvalue


def ranks(judge, people):
    concordance = lambda x, y: stats.kendalltau(x, y).statistic
    return {"judge": judge, "people": people,
            "spearman_p": exact(judge, people, lambda x, y: stats.spearmanr(x, y).statistic),
            "concordance_p": exact(judge, people, concordance),
            "somers_d": stats.somersd(people, judge).statistic}


rng = np.random.default_rng(38)
cases = [ranks([1, 2, 3], [1, 2, 3]), ranks([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]), ranks([2, 1, 3, 3], [1, 1, 2, 3]),
         ranks([3, 3, 3, 3, 3, 5], [2, 3, 1, 3, 2, 5])]
for n in (4, 5, 6, 6, 7):
    while True:
        judge, people = rng.integers(1, 5, n).tolist(), rng.integers(1, 5, n).tolist()
        if len(set(judge)) > 1 and len(set(people)) > 1:
            break
    cases.append(ranks(judge, people))

outcomes, probabilities = [1, 1, 0, 1, 0], [0.0, 1.0, 0.0, 0.5, 1.0]
human = rng.integers(0, 2, 60)
graded = np.clip(np.round(2.5 + 1.2 * (human - 0.5) + rng.normal(0, 1, 60)), 1, 5)
labels = ["A", "B", "C"]
judge_labels, people_labels = list("ABABCACABB"), list("ABBBCACBBA")
codes = [[labels.index(label) for label in column] for column in (judge_labels, people_labels)]

fixture = {
    "ranks": cases,
    "wilson": [{"count": count, "n": n, "interval": list(proportion_confint(count, n, method="wilson"))} for count, n in ((30, 30), (0, 12), (7, 20))],
    "log_loss": {"outcomes": outcomes, "probabilities": probabilities, "loss": metrics.log_loss(outcomes, probabilities)},
    "auroc": {"human": human.tolist(), "judge": graded.tolist(), "auroc": metrics.roc_auc_score(human, graded),
              "somers_d": stats.somersd(human, graded).statistic},
    "texts": {"judge": judge_labels, "people": people_labels,
              "alpha_nominal": krippendorff.alpha(np.array(codes, float), level_of_measurement="nominal"),
              "alpha_ordinal": krippendorff.alpha(np.array(codes, float), level_of_measurement="ordinal"),
              "kappa_quadratic": metrics.cohen_kappa_score(*codes, weights="quadratic")},
    "mcnemar_p": mcnemar([[7, 0], [0, 5]], exact=True).pvalue,
}
(OUT / "degenerate.json").write_text(json.dumps(fixture, indent=1, default=float) + "\n")
print(json.dumps(fixture, default=float)[:3000])
