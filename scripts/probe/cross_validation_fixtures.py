# scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1
"""Writes the fixture of judge-probe's cross-validation: scores and choices of scikit-learn's GridSearchCV, cross_val_score and
cross_val_predict, nested as well.

    python scripts/probe/cross_validation_fixtures.py

Features and labels come from an integer formula that the test repeats, so only the results are stored.
"""

import json
import pathlib

import numpy as np
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score, train_test_split
from sklearn.metrics import make_scorer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from versions import require

VERSIONS = {"sklearn": "1.9.1", "numpy": "2.4.6", "scipy": "1.17.1"}
require(VERSIONS)

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/judge-probe/tests/fixtures/cross_validation.json"
GRID = [0.001, 0.01, 0.1, 1.0]
SCORING = {
    "accuracy": "accuracy", "balanced_accuracy": "balanced_accuracy", "macro_f1": "f1_macro", "weighted_f1": "f1_weighted",
    "spearman": make_scorer(lambda truth, predicted: spearmanr(truth, predicted).statistic),
}


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
    nested = []
    for train, test in cv.split(x, y):
        inner = search(x[train], y[train], "macro_f1", balanced, StratifiedKFold(3))
        nested.append({**results(inner), "predicted": inner.predict(x[test]).tolist(), "score": float(inner.score(x[test], y[test]))})
    case["nested"] = nested
    train, test = train_test_split(np.arange(n), test_size=0.2, random_state=731, stratify=y)
    fitted = search(x[train], y[train], "macro_f1", balanced, StratifiedKFold(5))
    case["refit"] = {**results(fitted), "predicted": fitted.predict(x[test]).tolist()}
    cases.append(case)

header = json.dumps({"script": "scripts/probe/cross_validation_fixtures.py", "versions": VERSIONS, "grid": GRID})[:-1]
OUT.write_text((header + ', "cases": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]}\n").replace("NaN", "null"))
print(len(cases), "cases", OUT.stat().st_size, "bytes")
for case in cases:
    print({name: (search["best"], np.round(search["means"], 4).tolist()) for name, search in case["searches"].items()})
