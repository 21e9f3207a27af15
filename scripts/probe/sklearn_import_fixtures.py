# scikit-learn==1.9.1 numpy==2.4.6
# and once more with scikit-learn==1.6.0 numpy==2.2.6, and with scikit-learn==1.2.2 numpy==1.24.4
"""Writes fixtures of judge-probe's importer: small fitted classifiers as pickles of every protocol, with what scikit-learn makes of a
few unseen rows in three precisions.

    python scripts/probe/sklearn_import_fixtures.py
"""

import json
import pathlib
import pickle
import warnings

import numpy as np
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

VERSIONS = {"1.9.1": "2.4.6", "1.6.0": "2.2.6", "1.2.2": "1.24.4"}
print("sklearn", sklearn.__version__, "numpy", np.__version__)
if VERSIONS.get(sklearn.__version__) != np.__version__:
    raise SystemExit(f"one of these pairs is needed: {VERSIONS}")

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/judge-probe/tests/fixtures"
# Old releases call functions that are deprecated by now; new ones warn of parameters that old ones need.
warnings.filterwarnings("ignore")

rng = np.random.default_rng(731)
N_FEATURES = 3
BINARY, MULTI = (0, 1), (1, 3, 5)


def rows_of(classes, n):
    labels = np.array(classes)[np.arange(n) % len(classes)]
    rows = rng.normal(size=(n, N_FEATURES)) * [1.0, 30.0, 0.02] + [0.5, 400.0, -0.01]
    rows[:, 0] += labels * 0.4
    rows[:, 1] -= (labels == classes[-1]) * 25.0
    return np.round(rows, 4), labels


def lr(**settings):
    return LogisticRegression(max_iter=2000, class_weight="balanced", tol=1e-8, **settings)


ESTIMATORS = {
    "lr binary": (lr(), BINARY),
    "lr multi": (lr(), MULTI),
    "svc binary": (SVC(kernel="linear", class_weight="balanced", random_state=42), BINARY),
    "svc multi": (SVC(kernel="linear", class_weight={1: 2.0, 3: 1.0, 5: 1.0}), MULTI),
    "linear_svc binary": (LinearSVC(random_state=1), BINARY),
    "linear_svc multi": (LinearSVC(fit_intercept=False, random_state=1), MULTI),
}


def pipeline(classifier, **scaler):
    return Pipeline([("scaler", StandardScaler(**scaler)), ("clf", classifier)])


def grid(classifier, **settings):
    return GridSearchCV(pipeline(classifier), {"clf__C": np.array([0.01, 1.0])}, **settings)


def published(search):
    """The dictionary that INSPECTOR's program saves."""
    metadata = {
        "llm": "Some/Model-1B", "dimension": "fluency", "classification": "binary" if len(search.classes_) == 2 else "multi", "layers": [0],
        "pool": "mean", "use_attn": False, "clf_name": "lr", "best_params": search.best_params_, "best_score": search.best_score_,
        "timestamp": "2026-01-01 00:00:00",
    }
    return {"model": search, "metadata": metadata}


WRAPPERS = {
    "bare": lambda classifier, rows, labels: classifier.fit(rows, labels),
    "pipeline": lambda classifier, rows, labels: pipeline(classifier).fit(rows, labels),
    "without mean": lambda classifier, rows, labels: pipeline(classifier, with_mean=False).fit(rows, labels),
    "without deviation": lambda classifier, rows, labels: pipeline(classifier, with_std=False).fit(rows, labels),
    "grid": lambda classifier, rows, labels: grid(classifier, cv=StratifiedKFold(2, shuffle=True, random_state=3)).fit(rows, labels),
    "published": lambda classifier, rows, labels: published(grid(classifier, cv=2, scoring="f1_macro").fit(rows, labels)),
}


def case(estimator, wrapper, protocol):
    classifier, classes = ESTIMATORS[estimator]
    rows, labels = rows_of(classes, 24)
    saved = WRAPPERS[wrapper](sklearn.base.clone(classifier), rows, labels)
    model = saved["model"] if isinstance(saved, dict) else saved
    unseen, _ = rows_of(classes, 5)
    results = {}
    for dtype in ("float64", "float32", "float16"):
        given = unseen.astype(dtype)
        results[dtype] = {
            "decision": np.asarray(model.decision_function(given), dtype=float).ravel().tolist(),
            "predict": model.predict(given).tolist(),
            "proba": np.asarray(model.predict_proba(given)).ravel().tolist() if estimator.startswith("lr") else None,
        }
    return {
        "name": f"{estimator}, {wrapper}, protocol {protocol}", "estimator": estimator, "wrapper": wrapper, "protocol": protocol,
        "classes": list(classes), "n_features": N_FEATURES, "unseen": unseen.ravel().tolist(), "results": results,
        "best_score": saved["metadata"]["best_score"] if isinstance(saved, dict) else None,
        "pickle": pickle.dumps(saved, protocol=protocol).hex(),
    }


newest = sklearn.__version__ == "1.9.1"
cases = []
for i, estimator in enumerate(ESTIMATORS):
    for protocol in (2, 3, 4, 5):
        wrappers = list(WRAPPERS)
        # Every estimator in every protocol with the newest release; of older ones those bare and those in a search.
        if newest or (i + protocol) % len(wrappers) in (0, 4, 5):
            cases.append(case(estimator, wrappers[(i + protocol) % len(wrappers)], protocol))

path = OUT / f"sklearn_import_{sklearn.__version__.replace('.', '_')}.json"
made_with = {"scikit-learn": sklearn.__version__, "numpy": np.__version__}
path.write_text(json.dumps({"made_with": made_with, "cases": cases}, indent=None, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")
print(path, len(cases), path.stat().st_size)
