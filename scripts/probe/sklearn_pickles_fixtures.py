# scikit-learn==1.9.1 numpy==2.4.6 joblib==1.6.0
"""Writes a fixture of judge-probe's importer: cross-validated logistic regressions with what scikit-learn makes of a few unseen rows, and
what people save instead of a pickle that can be read.

    python scripts/probe/sklearn_pickles_fixtures.py
"""

import io
import json
import pickle
import warnings

import joblib
import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from common import OUT, require

require()
warnings.filterwarnings("ignore")  # of defaults that will change

rng = np.random.default_rng(731)
rows = np.round(rng.normal(size=(36, 3)), 4)
unseen = np.round(rng.normal(size=(5, 3)), 4)


def labels_of(classes):
    position = np.argsort(np.argsort(rows[:, 0] + 0.3 * rows[:, 1])) * len(classes) // len(rows)
    return np.array(classes)[position]


def cv_case(name, classes, protocol, pipeline=False, **settings):
    classifier = LogisticRegressionCV(Cs=3, cv=3, tol=1e-8, **settings)
    model = Pipeline([("scaler", StandardScaler()), ("clf", classifier)]) if pipeline else classifier
    model.fit(rows, labels_of(classes))
    return {
        "name": name, "classes": list(classes), "pickle": pickle.dumps(model, protocol=protocol).hex(),
        "decision": np.asarray(model.decision_function(unseen)).ravel().tolist(),
        "predict": model.predict(unseen).tolist(), "proba": model.predict_proba(unseen).ravel().tolist(),
    }


def joblib_bytes(value, file=None, **settings):
    file = file or io.BytesIO()
    joblib.dump(value, file, **settings)
    return file.getvalue().hex()


class NotTold(io.BytesIO):
    """A file that does not say where it is, so that joblib does not align arrays, as its releases before 1.2 never did."""

    def tell(self):
        raise io.UnsupportedOperation


def case(name, model, dump):
    decision = np.asarray(model.decision_function(unseen)).ravel().tolist()
    return {"name": name, "pickle": dump(model), "predict": model.predict(unseen).tolist(), "decision": decision}


def reduced_case(name, *stages):
    """Steps before a classifier, with what it makes of the unseen rows in three precisions."""
    model = make_pipeline(*stages, LogisticRegression()).fit(rows, labels_of((1, 3, 5)))
    return {
        "name": name, "pickle": pickle.dumps(model).hex(),
        "decision": {dtype: model.decision_function(unseen.astype(dtype)).ravel().tolist() for dtype in ("float64", "float32", "float16")},
    }


def pickled(model):
    return pickle.dumps(model).hex()


plain = LogisticRegression().fit(rows, labels_of((0, 1)))
text = LogisticRegression().fit(rows, labels_of(("bad", "good")))
objects = LogisticRegression().fit(rows, labels_of(("bad", "good")).astype(object))
# As wide as a state of the embedded model.
wide = LogisticRegression().fit(np.round(rng.normal(size=(36, 128)), 4), labels_of((1, 3, 5)))
svc = SVC(kernel="linear").fit(rows, labels_of((1, 3, 5, 7)))
steps = Pipeline([("scaler", StandardScaler()), ("clf", SVC(kernel="linear", random_state=np.random.RandomState(1)))])
search = GridSearchCV(steps, {"clf__C": [0.1, 1.0]}, cv=KFold(3)).fit(rows, labels_of((1, 3, 5)))
cross_validated = LogisticRegressionCV(Cs=3, cv=3, tol=1e-8).fit(rows, labels_of((1, 3, 5)))
fixture = {
    "made_with": {"scikit-learn": "1.9.1", "numpy": "2.4.6", "joblib": "1.6.0"},
    "unseen": unseen.ravel().tolist(),
    "cross_validated": [
        cv_case("binary, protocol 2", (0, 1), 2),
        cv_case("binary, protocol 4", (0, 1), 4, use_legacy_attributes=False),
        cv_case("multi, protocol 4", (1, 3, 5), 4),
        cv_case("multi in a pipeline, protocol 5", (1, 3, 5), 5, pipeline=True, use_legacy_attributes=False),
        cv_case("elastic net, protocol 4", (1, 3, 5), 4, solver="saga", l1_ratios=(0.1, 0.5), max_iter=20_000, random_state=1, use_legacy_attributes=False),
    ],
    "plain": pickle.dumps(plain).hex(),
    "wide": pickle.dumps(wide).hex(),
    "others": [
        case("one against one", svc, pickled),
        case("joblib", plain, joblib_bytes),
        case("joblib, zlib", plain, lambda model: joblib_bytes(model, compress=3)),
        case("joblib, gzip", plain, lambda model: joblib_bytes(model, compress=("gzip", 3))),
        case("joblib, not aligned", plain, lambda model: joblib_bytes(model, NotTold())),
        case("joblib, protocol 2", plain, lambda model: joblib_bytes(model, protocol=2)),
        case("joblib, cross-validated", cross_validated, joblib_bytes),
        case("joblib, a search over a pipeline", search, joblib_bytes),
    ],
    "reduced": [
        reduced_case("PCA, scaler", PCA(2), StandardScaler()),
        reduced_case("scaler, PCA, scaler", StandardScaler(), PCA(2), StandardScaler()),
    ],
    "joblib_bz2": joblib_bytes(plain, compress=("bz2", 3)),
    "joblib_objects": joblib_bytes(objects),
    "text_classes": pickle.dumps(text).hex(),
    "object_classes": pickle.dumps(objects).hex(),
    "dictionary": pickle.dumps({"weights": plain.coef_, "bias": plain.intercept_}).hex(),
    "model_in_a_dictionary": pickle.dumps({"model": plain}).hex(),
}
path = OUT / "sklearn_pickles.json"
path.write_text(json.dumps(fixture, indent=None, separators=(",", ":")).replace(',"', ',\n"') + "\n")
print(path, path.stat().st_size)
