# scipy==1.17.1 numpy==2.4.6
"""Writes tests/fixtures/brier_regression.json: minima of the penalised Brier score of a sigmoid or softmax of linear functions.

    python scripts/probe/brier_regression_fixtures.py

There is no library that trains so; scipy minimises the objective as written down here from scratch, from the log-odds of the classes'
shares, by L-BFGS and then Newton steps on a numerical Hessian, until the gradient's largest entry is below 1e-11.
"""

import numpy as np
import scipy
from scipy.optimize import minimize

from common import require, write
from formula import formula

VERSIONS = require()


def probabilities(z):
    """Of all classes, from one function or one a class."""
    if z.shape[1] == 1:
        return np.column_stack([scipy.special.expit(-z[:, 0]), scipy.special.expit(z[:, 0])])
    return scipy.special.softmax(z, axis=1)


def objective(v, x, index, weights, n_columns, penalty):
    """The value and its gradient; `v` has the coefficients of each function and then its intercept."""
    n, d = x.shape
    w = v.reshape(n_columns, d + 1)
    p = probabilities(x @ w[:, :d].T + w[:, d])
    y = np.eye(p.shape[1])[index]
    s = weights / weights.sum()
    if n_columns == 1:
        e = p[:, 1] - y[:, 1]
        value = s @ e**2
        by_z = (2 * s * e * p[:, 0] * p[:, 1])[:, None]
    else:
        e = p - y
        value = s @ (e**2).sum(axis=1)
        by_z = 2 * s[:, None] * p * (e - (p * e).sum(axis=1, keepdims=True))
    gradient = np.column_stack([by_z.T @ x + penalty * w[:, :d], by_z.sum(axis=0)])
    return value + penalty / 2 * (w[:, :d] ** 2).sum(), gradient.ravel()


def minimum(x, index, weights, n_classes, penalty):
    # In the space of the rows where there are fewer of them than features; the penalty does not notice.
    basis = np.linalg.qr(x.T)[0] if x.shape[1] > len(x) else np.eye(x.shape[1])
    points = x @ basis
    d, n_columns = points.shape[1], 1 if n_classes == 2 else n_classes
    shares = np.array([weights[index == k].sum() for k in range(n_classes)]) / weights.sum()
    start = np.zeros((n_columns, d + 1))
    start[:, d] = np.log(shares[1] / shares[0]) if n_columns == 1 else np.log(shares) - np.log(shares).mean()
    args = (points, index, weights, n_columns, penalty)

    def gradient(v):
        return objective(v, *args)[1]

    def hessian(v):
        step = 1e-5
        columns = np.array([(gradient(v + step * unit) - gradient(v - step * unit)) / (2 * step) for unit in np.eye(len(v))])
        return (columns + columns.T) / 2

    v = minimize(objective, start.ravel(), args=args, jac=True, method="L-BFGS-B", options={"maxiter": 50_000, "maxfun": 100_000, "ftol": 0, "gtol": 1e-8}).x
    for _ in range(30):  # Newton steps, least squares for the softmax's flat direction
        step = np.linalg.lstsq(hessian(v), gradient(v), rcond=1e-12)[0]
        if not np.abs(gradient(v - step)).max() < np.abs(gradient(v)).max():
            break
        v = v - step
    size = np.abs(gradient(v)).max()
    w = v.reshape(n_columns, d + 1)
    return w[:, :d] @ basis.T, w[:, d], objective(v, *args)[0], size


def case(name, n_rows, n_features, n_classes, *, c=(1.0,), seed=0, signal=0.3, column_scales=(1.0,), balanced=False, first_class=1):
    data, x, y, unseen = formula(n_rows, n_features, n_classes, seed, signal, column_scales, 1.0, first_class)
    classes, counts = np.unique(y, return_counts=True)
    index = np.searchsorted(classes, y)
    weights = (n_rows / (n_classes * counts))[index] if balanced else np.ones(n_rows)
    results = []
    for one in c:
        w, intercepts, value, size = minimum(x, index, weights, n_classes, 1 / (one * weights.sum()))
        if size > 1e-11:
            raise SystemExit(f"{name}, c {one}: not converged, gradient {size}")
        p = probabilities(unseen @ w.T + intercepts)
        print(f"{name}, c {one}: objective {value:.6f}, gradient {size:.1e}")
        results.append({"c": one, "objective": float(value), "unseen_probabilities": p.ravel().tolist()})
    return {"name": name, **data, "balanced": balanced, "results": results}


cases = [
    case("two classes", 200, 6, 2, c=(0.1, 1.0, 100.0), seed=31, first_class=0),
    case("two classes, balanced", 120, 6, 2, c=(0.1, 1.0), seed=32, balanced=True),
    case("three classes", 150, 4, 3, c=(0.1, 1.0), seed=33, first_class=-1),
    case("scales 1e3 apart", 100, 8, 2, c=(1.0,), seed=34, column_scales=(1.0, 1e-1, 1e2)),
    case("separable", 80, 5, 2, c=(1.0, 100.0), seed=35, signal=3.0),
    case("136 rows of 512 features", 136, 512, 2, c=(0.001, 0.1), seed=36, signal=0.05),
    case("four rows", 4, 3, 2, seed=37),
]
write("brier_regression.json", VERSIONS, cases)
