# scikit-learn==1.9.1 numpy==2.4.6
"""Writes tests/fixtures/logistic_regression.json: what scikit-learn's LogisticRegression finds, run to convergence.

    python scripts/probe/logistic_regression_fixtures.py

Features follow from a formula of integers that the test repeats, so that the file holds settings and results alone. The solver is
newton-cholesky at tol 1e-14 where its Hessian is small, else newton-cg at tol 1e-12: lbfgs stops by the change of the objective as well, too
early for coefficients to 2e-6. Written too is the largest entry of the objective's gradient at the result.
"""

import warnings

import numpy as np
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

from common import require, write
from formula import formula

VERSIONS = require()
def objective(x, y, weights, classes, coef, intercept, c, fit_intercept):
    z = x @ coef.T + intercept
    if z.shape[1] == 1:
        z = np.column_stack([np.zeros(len(x)), z])
    index = np.searchsorted(classes, y)
    losses = logsumexp(z, axis=1) - z[np.arange(len(x)), index]
    p = np.exp(z - logsumexp(z, axis=1, keepdims=True))
    p[np.arange(len(x)), index] -= 1
    residual = weights[:, None] * p / weights.sum()
    residual = residual[:, 1:] if len(classes) == 2 else residual
    gradient = residual.T @ x + coef / (c * weights.sum())
    return (weights @ losses + (coef**2).sum() / (2 * c)) / weights.sum(), max(abs(gradient).max(), abs(residual.sum(0)).max() if fit_intercept else 0.0)


def case(name, n_rows, n_features, n_classes, *, c=(1.0,), seed=0, signal=0.3, column_scales=(1.0,), every_tenth=1.0, balanced=True,
         fit_intercept=True, first_class=1):
    data, x, y, unseen = formula(n_rows, n_features, n_classes, seed, signal, column_scales, every_tenth, first_class)
    classes, counts = np.unique(y, return_counts=True)
    weights = (n_rows / (n_classes * counts))[np.searchsorted(classes, y)] if balanced else np.ones(n_rows)
    small = n_features * n_classes <= 1_500
    solver, tol = ("newton-cholesky", 1e-14) if small else ("newton-cg", 1e-12)
    results = []
    for one in c:
        model = LogisticRegression(C=one, class_weight="balanced" if balanced else None, fit_intercept=fit_intercept, solver=solver, tol=tol,
                                   max_iter=100_000)
        with warnings.catch_warnings():  # It warns of line searches that rounding stops; the gradient below tells.
            warnings.simplefilter("ignore")
            model.fit(x, y)
        value, gradient = objective(x, y, weights, classes, model.coef_, model.intercept_, one, fit_intercept)
        # A gradient bounds how far off coefficients are, by the least curvature, which is that of the penalty.
        if gradient * one * weights.sum() > 1e-6:
            raise SystemExit(f"{name}, C {one}: not converged, gradient {gradient}")
        print(f"{name}: C {one}, {solver}, gradient {gradient:.1e}, objective {value:.6g}")
        stride = max(1, model.coef_.size // 300)
        results.append({
            "c": one, "solver": solver, "gradient": float(gradient), "objective": float(value), "stride": stride,
            "coefficients": model.coef_.ravel()[::stride].tolist(), "intercepts": model.intercept_.tolist(),
            "predicted": model.predict(x).tolist(), "unseen_decision": np.ravel(model.decision_function(unseen)).tolist(),
            "unseen_probabilities": model.predict_proba(unseen).ravel().tolist(), "unseen_predicted": model.predict(unseen).tolist(),
        })
    return {
        "name": name, **data, "balanced": balanced, "fit_intercept": fit_intercept, "results": results,
    }


CS = (0.001, 0.01, 0.1, 1.0)
cases = [
    case("binary", 120, 6, 2, c=CS, seed=1, first_class=0),
    case("binary, uniform, without intercept", 120, 6, 2, seed=2, balanced=False, fit_intercept=False, first_class=0),
    case("five classes", 150, 6, 5, c=CS, seed=3),
    case("three classes, uniform, without intercept", 90, 7, 3, seed=4, balanced=False, fit_intercept=False, first_class=-1),
    case("as many features as rows", 40, 40, 3, seed=5, c=(0.1, 10.0)),
    case("136 rows of 2048 features, binary", 136, 2048, 2, c=CS, seed=6, signal=0.05, first_class=0),
    case("136 rows of 2048 features, five classes", 136, 2048, 5, c=CS, seed=7, signal=0.05),
    case("scales 1e6 apart, binary", 100, 8, 2, c=(0.01, 1.0), seed=8, column_scales=(1.0, 1e-3, 1e3), first_class=0),
    case("scales 1e6 apart, five classes", 100, 8, 5, c=(0.01, 1.0), seed=9, column_scales=(1.0, 1e-3, 1e3)),
    case("scales 1e6 apart, wide", 60, 300, 3, c=(0.001, 0.01), seed=10, column_scales=(1.0, 1e-3, 1e3)),
    case("separable, binary", 80, 5, 2, c=(1.0, 1000.0), seed=11, signal=3.0, first_class=0),
    case("separable, five classes", 80, 5, 5, c=(1.0, 100.0), seed=12, signal=3.0),
    case("every tenth row 60 times larger", 300, 40, 5, c=(1.0, 100.0), seed=13, signal=0.3, every_tenth=60.0, balanced=False),
    case("four rows", 4, 3, 2, seed=14),
]
write("logistic_regression.json", VERSIONS, cases)
