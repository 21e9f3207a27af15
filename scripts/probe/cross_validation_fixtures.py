# scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1
"""Writes the fixture of judge-probe's cross-validation: scores and choices of scikit-learn's GridSearchCV, cross_val_score and
cross_val_predict, of classes, of probabilities and of numbers, nested as well.

    python scripts/probe/cross_validation_fixtures.py

Features and labels come from an integer formula that the test repeats, so only the results are stored.
"""

import json
import warnings

import numpy as np
from scipy.stats import pearsonr, spearmanr
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_predict, cross_val_score, train_test_split
from sklearn.metrics import cohen_kappa_score, make_scorer, mean_absolute_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from common import require, write

VERSIONS = require()
GRID = [0.001, 0.01, 0.1, 1.0]
SCORING = {
    "accuracy": "accuracy", "balanced_accuracy": "balanced_accuracy", "macro_f1": "f1_macro", "weighted_f1": "f1_weighted",
    "spearman": make_scorer(lambda truth, predicted: spearmanr(truth, predicted).statistic),
    "expected_spearman": lambda fitted, x, y: spearmanr(y, expected(fitted, x)).statistic,
    "roc_auc": "roc_auc_ovr", "neg_log_loss": "neg_log_loss",
    "quadratic_kappa": make_scorer(cohen_kappa_score, weights="quadratic"),
    "neg_mean_absolute_error": lambda fitted, x, y: -mean_absolute_error(y, expected(fitted, x)),
}
REGRESSION_SCORING = {
    "spearman": SCORING["spearman"], "pearson": make_scorer(lambda truth, predicted: pearsonr(truth, predicted).statistic),
    "neg_mean_absolute_error": "neg_mean_absolute_error", "neg_root_mean_squared_error": "neg_root_mean_squared_error",
}


def expected(fitted, x):
    return fitted.predict_proba(x) @ fitted.classes_


def stir(number):
    """32 bits that look random."""
    number = number * 2654435761 % 2**32
    number ^= number >> 15
    number = number * 2246822519 % 2**32
    return number ^ number >> 13


def data(n, d, n_classes, signal):
    """Features are noise in [0, 1), which follows the label in columns that divide by 3, times a power of 10."""
    labels = [stir(row) % n_classes for row in range(n)]
    features = [
        [
            (stir(1000003 * (row + 1) + column) / 2**32 + signal * labels[row] * (column % 3 == 0)) * 10 ** (column % 4)
            for column in range(d)
        ]
        for row in range(n)
    ]
    return np.array(features), np.array(labels)


def pipeline(c=1.0, balanced=True):
    # Newton's method on the exact Hessian converges quadratically: predictions are those at the optimum.
    weight = "balanced" if balanced else None
    return make_pipeline(StandardScaler(), LogisticRegression(C=c, class_weight=weight, solver="newton-cholesky", tol=1e-12, max_iter=200))


def search(x, y, scoring, balanced, cv):
    return GridSearchCV(pipeline(balanced=balanced), {"logisticregression__C": GRID}, scoring=SCORING[scoring], cv=cv).fit(x, y)


def results(fitted):
    n_splits = fitted.n_splits_
    scores = np.array([fitted.cv_results_[f"split{split}_test_score"] for split in range(n_splits)]).T
    return {
        "scores": scores.tolist(), "means": fitted.cv_results_["mean_test_score"].tolist(),
        "deviations": fitted.cv_results_["std_test_score"].tolist(), "best": int(fitted.best_index_),
    }


cases = []
for n, d, n_classes, signal, balanced, shuffle in [
    (136, 9, 5, 0.15, True, None), (136, 9, 2, 0.3, True, None), (103, 40, 3, 0.2, False, 42), (68, 6, 2, 0.0, True, 7), (60, 30, 2, 3.0, True, 0),
]:
    x, y = data(n, d, n_classes, signal)
    cv = StratifiedKFold(5, shuffle=shuffle is not None, random_state=shuffle)
    case = {"n": n, "d": d, "n_classes": n_classes, "signal": signal, "balanced": balanced, "shuffle": shuffle, "searches": {}}
    for scoring in SCORING:
        case["searches"][scoring] = results(search(x, y, scoring, balanced, cv))
    case["cross_val_score"] = cross_val_score(pipeline(0.1, balanced), x, y, cv=cv, scoring="f1_macro").tolist()
    case["cross_val_predict"] = cross_val_predict(pipeline(0.1, balanced), x, y, cv=cv).tolist()
    case["probabilities"] = cross_val_predict(pipeline(0.1, balanced), x, y, cv=cv, method="predict_proba").tolist()
    nested = []
    for train, test in cv.split(x, y):
        inner = search(x[train], y[train], "macro_f1", balanced, StratifiedKFold(3))
        nested.append({**results(inner), "predicted": inner.predict(x[test]).tolist(), "score": float(inner.score(x[test], y[test]))})
    case["nested"] = nested
    train, test = train_test_split(np.arange(n), test_size=0.2, random_state=731, stratify=y)
    fitted = search(x[train], y[train], "macro_f1", balanced, StratifiedKFold(5))
    case["refit"] = {**results(fitted), "predicted": fitted.predict(x[test]).tolist()}
    cases.append(case)

# Sorted by class, so that folds without shuffling leave a class out of what is learnt: its probability is then 0.
x, y = data(60, 5, 3, 0.5)
rows = np.argsort(y, kind="stable")
x, y = x[rows], y[rows]
with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
    left_out = cross_val_predict(pipeline(0.1), x, y, cv=KFold(3), method="predict_proba")
missing = {"n": 60, "d": 5, "n_classes": 3, "signal": 0.5, "n_splits": 3, "rows": rows.tolist(), "probabilities": left_out.tolist()}

# Means of three people's scores: a third of a class away from it.
x, y = data(90, 12, 5, 0.2)
y = y + np.array([stir(77 + row) % 3 - 1 for row in range(90)]) / 3
cv, alphas = KFold(5, shuffle=True, random_state=3), [0.1, 10.0, 1000.0]
regression = {"n": 90, "d": 12, "n_classes": 5, "signal": 0.2, "shuffle": 3, "labels": y.tolist(), "alphas": alphas, "searches": {}}
ridge = make_pipeline(StandardScaler(), Ridge(solver="cholesky"))
for scoring, scorer in REGRESSION_SCORING.items():
    regression["searches"][scoring] = results(GridSearchCV(ridge, {"ridge__alpha": alphas}, scoring=scorer, cv=cv).fit(x, y))
regression["cross_val_predict"] = cross_val_predict(ridge.set_params(ridge__alpha=10.0), x, y, cv=cv).tolist()

missing, regression, written = json.loads(json.dumps([missing, regression, cases]).replace("NaN", "null"))
write("cross_validation.json", VERSIONS, written, grid=GRID, missing=missing, regression=regression)
for case in cases:
    print({name: (search["best"], np.round(search["means"], 4).tolist()) for name, search in case["searches"].items()})
