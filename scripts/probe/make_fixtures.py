# scikit-learn==1.9.1 numpy==2.4.6
"""Writes the fixtures of judge-probe: what scikit-learn's StandardScaler and Ridge make of small data sets.

    python scripts/probe/make_fixtures.py
"""

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from common import require, write

VERSIONS = require()
rng = np.random.default_rng(22)


def scaler_case(name, x, with_mean=True, with_std=True):
    x = np.asarray(x, dtype=float)
    unseen = x[:2] + 1.5
    scaler = StandardScaler(with_mean=with_mean, with_std=with_std).fit(x)
    n_features = x.shape[1]
    return {
        "name": name, "with_mean": with_mean, "with_std": with_std, "n_features": n_features,
        "x": x.ravel().tolist(),
        "mean": scaler.mean_.tolist() if with_mean else [0.0] * n_features,
        "scale": scaler.scale_.tolist() if with_std else [1.0] * n_features,
        "transformed": scaler.transform(x).ravel().tolist(),
        "unseen": unseen.ravel().tolist(), "unseen_transformed": scaler.transform(unseen).ravel().tolist(),
    }


def standard_scaler():
    x = rng.normal(size=(12, 4))
    constant = np.column_stack([x[:, 0], np.full(12, 0.1), np.zeros(12), np.full(12, -3e7), x[:, 1]])
    near = np.column_stack([x[:, 0], 1e8 + 1e-9 * x[:, 1], 0.3 + np.finfo(float).eps * rng.integers(0, 2, size=12), 1.0 + 1e-9 * x[:, 2]])
    return [
        scaler_case("normal", x),
        scaler_case("one row", x[:1]),
        scaler_case("two rows", x[:2]),
        scaler_case("scales from 1e-6 to 1e6", x * [1e-6, 1.0, 1e3, 1e6] + [0.0, -5.0, 1e4, 1e6]),
        scaler_case("constant features", constant),
        scaler_case("nearly constant features", near),
        scaler_case("scores 1 to 5", rng.integers(1, 6, size=(20, 3))),
        scaler_case("tiny but not constant", 1e-150 * x),
        scaler_case("without mean", x + 2, with_mean=False),
        scaler_case("without deviation", x + 2, with_std=False),
        scaler_case("a mean that is rounded", 1e14 + np.array([[0.0], [1], [2], [3], [4], [5], [7]]) ** [1, 2]),
    ]


def ridge_case(name, x, y, alpha=1.0, fit_intercept=True):
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    ridge = Ridge(alpha=alpha, fit_intercept=fit_intercept, solver="cholesky").fit(x, y)
    return {
        "name": name, "alpha": alpha, "fit_intercept": fit_intercept, "n_features": x.shape[1],
        "x": x.ravel().tolist(), "y": y.tolist(),
        "coefficients": ridge.coef_.tolist(), "intercept": float(ridge.intercept_), "predicted": ridge.predict(x).tolist(),
    }


def ridge():
    x = rng.normal(size=(25, 4))
    y = x @ [1.0, -2.0, 0.5, 0.0] + 3 + rng.normal(size=25)
    wide, few = rng.normal(size=(9, 20)), rng.integers(1, 6, size=9)
    twins = np.column_stack([x[:, 0], x[:, 0], x[:, 1]])
    return [
        ridge_case("default", x, y),
        ridge_case("alpha 100", x, y, alpha=100.0),
        ridge_case("alpha 1e-6", x, y, alpha=1e-6),
        ridge_case("least squares", x, y, alpha=0.0),
        ridge_case("without intercept", x, y, fit_intercept=False),
        ridge_case("least squares without intercept", x, y, alpha=0.0, fit_intercept=False),
        ridge_case("more features than rows", wide, few),
        ridge_case("more features than rows, alpha 0.01, without intercept", wide, few, alpha=0.01, fit_intercept=False),
        ridge_case("as many features as rows", wide[:, :9], few),
        ridge_case("equal features", twins, y),
        ridge_case("a constant feature", np.column_stack([x, np.full(25, 7.0)]), y),
        ridge_case("offsets", x + [0.0, 10.0, -100.0, 1000.0], y),
        ridge_case("one row", x[:1], y[:1]),
        ridge_case("constant target", x, np.full(25, 4.0)),
    ]


write("standard_scaler.json", VERSIONS, standard_scaler())
write("ridge.json", VERSIONS, ridge())
