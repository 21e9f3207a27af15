# scikit-learn==1.0.2 numpy==1.22.4 (Python 3.9); scikit-learn==1.3.2 numpy==1.26.4 (3.11); scikit-learn==1.9.1 numpy==2.4.6 (3.12)
"""Writes a fixture of judge-probe's importer: what a search drags along with it, labels of all integer types, and pipelines with a PCA, with what
scikit-learn makes of a few unseen rows. Run it once with each release.

    python scripts/probe/sklearn_searches_fixtures.py
"""

import json
import pathlib
import pickle
import warnings

import numpy as np
import sklearn
from scipy.stats import loguniform
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import cohen_kappa_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV, GroupKFold, RandomizedSearchCV, RepeatedStratifiedKFold, StratifiedGroupKFold, StratifiedShuffleSplit,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

NUMPY = {"1.0.2": "1.22.4", "1.3.2": "1.26.4", "1.9.1": "2.4.6"}
release = sklearn.__version__
if NUMPY.get(release) != np.__version__:
    raise SystemExit(f"one of {NUMPY} is needed, found scikit-learn {release} with numpy {np.__version__}")
OUT = pathlib.Path(__file__).resolve().parents[2] / f"crates/judge-probe/tests/fixtures/sklearn_searches_{release}.json"
warnings.filterwarnings("ignore")  # of candidates that cannot be fitted

rng = np.random.default_rng(38)
rows = np.round(rng.normal(size=(40, 4)), 4)
unseen = np.round(rng.normal(size=(5, 4)), 4)
labels = np.array([1, 2, 3])[np.argsort(np.argsort(rows[:, 0] + 0.4 * rows[:, 1])) * 3 // 40]
groups = np.arange(40) // 2
GRID = {"C": [0.1, 10.0]}
plain = LogisticRegression(max_iter=500)


def case(name, model, y=labels, protocol=4, **fit):
    model.fit(rows, y, **fit)
    search = getattr(model, "best_score_", None)
    return {
        "name": name, "pickle": pickle.dumps(model, protocol=protocol).hex(), "predict": [int(label) for label in model.predict(unseen)],
        "decision": np.asarray(model.decision_function(unseen)).ravel().tolist(), "best_score": None if search is None else float(search),
    }


def searched(name, **settings):
    fit = {"groups": groups} if "roup" in name else {}
    return case(name, GridSearchCV(plain, settings.pop("grid", GRID), **settings), **fit)


# Without an intercept a shift of the labels shows whether classes are read by value.
scaled = [("scaler", StandardScaler()), ("clf", plain)]
with_pca = [("scaler", StandardScaler()), ("pca", PCA(n_components=3)), ("clf", plain)]
cases = [
    searched("GroupKFold", cv=GroupKFold(3)),
    searched("StratifiedGroupKFold", cv=StratifiedGroupKFold(3)),
    searched("RepeatedStratifiedKFold", cv=RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=1)),
    searched("StratifiedShuffleSplit", cv=StratifiedShuffleSplit(3, random_state=1)),
    searched("a list of splits", cv=[(np.arange(20), np.arange(20, 40)), (np.arange(20, 40), np.arange(20))]),
    searched("make_scorer", scoring=make_scorer(cohen_kappa_score, weights="quadratic")),
    searched("a score of numbers", scoring="neg_mean_absolute_error"),
    searched("several scores", scoring=["accuracy", "f1_macro"], refit="f1_macro"),
    searched("a candidate that cannot be fitted", grid={"penalty": ["l1", "l2"]}),
    searched("a dictionary", grid={"class_weight": [{1: 2.0, 2: 1.0, 3: 1.0}]}),
    case("RandomizedSearchCV", RandomizedSearchCV(plain, {"C": loguniform(0.1, 10.0)}, n_iter=2, random_state=0)),
    case("RandomState", LogisticRegression(max_iter=500, random_state=np.random.RandomState(0))),
    case("float keys", LogisticRegressionCV(Cs=2, cv=3, max_iter=500), labels.astype(float)),
    case("float keys of weights", LogisticRegression(max_iter=500, class_weight={1.0: 2.0, 2.0: 1.0, 3.0: 1.0}), labels.astype(float)),
    case("a PCA", Pipeline(with_pca)),
    case("a search of a PCA", GridSearchCV(Pipeline(with_pca), {"pca__n_components": [2, 3]}), protocol=2),
    case("a pipeline that ends in a search", Pipeline([("scaler", StandardScaler()), ("search", GridSearchCV(plain, GRID))])),
    case("a search of a search", GridSearchCV(Pipeline([("scaler", StandardScaler()), ("search", GridSearchCV(plain, GRID))]), {"scaler__with_mean": [True]})),
]
cases += [case(f"classes of {code}", Pipeline(scaled), labels.astype(code), protocol) for code in ("i1", "u1", "u2", "u4", "u8") for protocol in (2, 4)]
OUT.write_text(json.dumps({"release": release, "unseen": unseen.ravel().tolist(), "cases": cases}, separators=(",", ":")).replace(',{"name"', ',\n{"name"') + "\n")
print(OUT, OUT.stat().st_size)
