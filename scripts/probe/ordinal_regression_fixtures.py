# statsmodels==0.15.0 scipy==1.17.1 numpy==2.4.6
"""Writes tests/fixtures/ordinal_regression.json: optima of the cumulative logit model.

    python scripts/probe/ordinal_regression_fixtures.py

Without a penalty they are those of statsmodels' OrderedModel(distr="logit"); with one there is no such library, so that scipy minimises the
objective as written down here from scratch: thresholds as a first one and logarithms of distances, L-BFGS from 0 and then Newton steps on a numerically
exact gradient until its largest entry is below 1e-13. Where no penalty is put on both do the same and are compared.
"""

import warnings

import numpy as np
import scipy
from scipy.optimize import minimize
from statsmodels.miscmodels.ordinal_model import OrderedModel

from common import require, write
from formula import formula

VERSIONS = require()


def probabilities(x, w, thresholds):
    """Of each class: differences of sigmoids, by their tails on whichever side is smaller."""
    z = thresholds[None, :] - (x @ w)[:, None]
    z = np.column_stack([np.full(len(x), -np.inf), z, np.full(len(x), np.inf)])
    low, high = z[:, :-1], z[:, 1:]
    lower, upper = scipy.special.expit(high) - scipy.special.expit(low), scipy.special.expit(-low) - scipy.special.expit(-high)
    return np.where(low + high > 0, upper, lower)


def objective(x, index, weights, w, thresholds, penalty):
    """The penalised mean loss and its gradient by w and thresholds."""
    s, n, k = weights.sum(), len(x), len(thresholds)
    p = probabilities(x, w, thresholds)[np.arange(n), index]
    z = thresholds[None, :] - (x @ w)[:, None]
    density = np.column_stack([np.zeros(n), scipy.special.expit(z) * scipy.special.expit(-z), np.zeros(n)])
    low, high = density[np.arange(n), index], density[np.arange(n), index + 1]
    of_thresholds = np.zeros(k)
    np.add.at(of_thresholds, index[index < k], (-weights * high / p)[index < k] / s)
    np.add.at(of_thresholds, index[index > 0] - 1, (weights * low / p)[index > 0] / s)
    value = -(weights @ np.log(p)) / s + penalty / 2 * (w @ w)
    return value, np.concatenate([x.T @ (weights * (high - low) / p) / s + penalty * w, of_thresholds])


def hessian(gradient, at, scale):
    """Central differences of the gradient, one column a coordinate."""
    step = 1e-5 / scale
    columns = [(gradient(at + step[i] * unit) - gradient(at - step[i] * unit)) / (2 * step[i]) for i, unit in enumerate(np.eye(len(at)))]
    matrix = np.array(columns)
    return (matrix + matrix.T) / 2


def optimum(x, index, weights, n_thresholds, penalty):
    # In the space of the rows where there are fewer of them than features; the penalty does not notice.
    basis = np.linalg.qr(x.T)[0] if x.shape[1] > len(x) else np.eye(x.shape[1])
    points = x @ basis
    scale = np.concatenate([np.maximum(np.abs(points).max(axis=0), 1e-300), np.ones(n_thresholds)])
    d = points.shape[1]

    def unpack(v):
        return v[:d] / scale[:d], np.concatenate([v[d : d + 1], v[d] + np.cumsum(np.exp(v[d + 1 :]))])

    def rough(v):
        w, thresholds = unpack(v)
        value, gradient = objective(points, index, weights, w, thresholds, penalty)
        of_thresholds = np.cumsum(gradient[d:][::-1])[::-1].copy()
        of_thresholds[1:] *= np.exp(v[d + 1 :])
        return value, np.concatenate([gradient[:d] / scale[:d], of_thresholds])

    v = np.zeros(d + n_thresholds)
    v[d] = -1.0
    v = minimize(rough, v, jac=True, method="L-BFGS-B", options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 0, "gtol": 1e-10}).x
    at = np.concatenate(unpack(v))

    def gradient(at):
        return objective(points, index, weights, at[:d], at[d:], penalty)[1]

    best, size = at, np.abs(gradient(at) / scale).max()
    for _ in range(30):
        at = best - np.linalg.solve(hessian(gradient, best, scale) / np.outer(scale, scale), gradient(best) / scale) / scale
        reached = np.abs(gradient(at) / scale).max()
        if not reached < size:
            break
        best, size = at, reached
    return basis @ best[:d], best[d:], size


def case(name, n_rows, n_features, n_classes, *, c=(1.0,), seed=0, signal=0.3, column_scales=(1.0,), every_tenth=1.0, balanced=False, first_class=1):
    data, x, y, unseen = formula(n_rows, n_features, n_classes, seed, signal, column_scales, every_tenth, first_class)
    classes, counts = np.unique(y, return_counts=True)
    index = np.searchsorted(classes, y)
    weights = (n_rows / (n_classes * counts))[index] if balanced else np.ones(n_rows)
    results = []
    for one in c:
        penalty = 0.0 if one is None else 1 / (one * weights.sum())
        w, thresholds, size = optimum(x, index, weights, n_classes - 1, penalty)
        if size > 1e-12:
            raise SystemExit(f"{name}, c {one}: not converged, gradient {size}")
        against = ""
        if one is None:
            model = OrderedModel(y, x, distr="logit")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit = model.fit(method="newton", maxiter=100, tol=1e-14, disp=False)
            theirs_w, theirs = fit.params[:n_features], model.transform_threshold_params(fit.params)[1:-1]
            off = max(np.abs(theirs_w - w).max(), np.abs(theirs - thresholds).max())
            against = f", statsmodels {off:.1e} away"
            w, thresholds = theirs_w, theirs
        value = objective(x, index, weights, w, thresholds, penalty)[0]
        print(f"{name}: c {one}, gradient {size:.1e}, objective {value:.6g}{against}", flush=True)
        p = probabilities(unseen, w, thresholds)
        stride = max(1, n_features // 300)
        results.append({
            "c": one, "objective": float(value), "stride": stride, "coefficients": w[::stride].tolist(), "thresholds": thresholds.tolist(),
            "predicted": classes[probabilities(x, w, thresholds).argmax(axis=1)].tolist(), "unseen_probabilities": p.ravel().tolist(),
            "unseen_expected": (p @ classes).tolist(),
        })
    return {"name": name, **data, "balanced": balanced, "results": results}


cases = [
    case("five classes, without penalty and with", 200, 6, 5, c=(None, 0.01, 1.0, 100.0), seed=21),
    case("three classes, without penalty and with", 150, 4, 3, c=(None, 1.0), seed=22, first_class=-1),
    case("two classes, balanced", 120, 6, 2, c=(0.1, 1.0), seed=23, balanced=True, first_class=0),
    case("five classes, balanced", 150, 6, 5, c=(0.01, 1.0), seed=24, balanced=True),
    case("scales 1e6 apart", 100, 8, 5, c=(0.01, 1.0), seed=25, column_scales=(1.0, 1e-3, 1e3)),
    case("separable", 80, 5, 5, c=(1.0, 100.0), seed=26, signal=3.0),
    case("every tenth row 60 times larger", 300, 40, 5, c=(1.0,), seed=13, every_tenth=60.0),
    case("136 rows of 2048 features", 136, 2048, 5, c=(0.001, 1.0), seed=27, signal=0.05, balanced=True),
    case("four rows", 4, 3, 3, seed=28),
]
write("ordinal_regression.json", VERSIONS, cases)
