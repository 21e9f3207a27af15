# scikit-learn==1.9.1 numpy==2.4.6
"""Writes tests/fixtures/linear_svc.json: what scikit-learn's SVC(kernel="linear") decides at tol 1e-10.

    python scripts/probe/linear_svc_fixtures.py

libsvm keeps the matrix it optimises by in single precision. Where features are multiples of 1/8 the matrix is exact, and so are its
results; elsewhere they are not the optimum's beyond about six digits.

Where no row of two classes is on its margin, an interval of intercepts is optimal. libsvm takes one end of it if a multiplier ends up a
rounding error below its bound, and else the middle; here it is the middle.
"""

import numpy as np
from sklearn.svm import SVC

from common import require, write
from formula import formula

VERSIONS = require()


def centre(model, x, y):
    """Puts each intercept that no row decides into the middle of its interval."""
    classes, n_moved = len(model.classes_), 0
    bounds = model.C * model.class_weight_
    multipliers = np.zeros((classes - 1, len(y)))
    multipliers[:, model.support_] = np.abs(model._dual_coef_)
    of_row = np.searchsorted(model.classes_, y)
    for pair, (i, j) in enumerate((i, j) for i in range(classes) for j in range(i + 1, classes)):
        first, rows = of_row == i, (of_row == i) | (of_row == j)
        multiplier = np.where(first, multipliers[j - 1], multipliers[i])[rows]
        sign, bound = np.where(first, 1.0, -1.0)[rows], np.where(first, bounds[i], bounds[j])[rows]
        at_bound, at_zero = bound - multiplier <= 1e-9 * bound, multiplier <= 1e-9 * multiplier.max()
        if np.all(at_bound | at_zero):
            intercepts = sign - x[rows] @ ((sign * multiplier) @ x[rows])
            least = intercepts[np.where(sign > 0, ~at_bound, ~at_zero)].max()
            most = intercepts[np.where(sign > 0, ~at_zero, ~at_bound)].min()
            model._intercept_[pair] = (least + most) / 2
            n_moved += 1
    model.intercept_ = model._intercept_ * (-1.0 if classes == 2 else 1.0)
    return n_moved


def case(name, n_rows, n_features, n_classes, *, c=(1.0,), seed=0, signal=0.3, column_scales=(1.0,), every_tenth=1.0, balanced=True,
         first_class=1, grid=8.0, tolerance=1e-8):
    data, x, y, unseen = formula(n_rows, n_features, n_classes, seed, signal, column_scales, every_tenth, first_class, grid)
    results = []
    for one in c:
        model = SVC(C=one, kernel="linear", class_weight="balanced" if balanced else None, tol=1e-10, cache_size=1000).fit(x, y)
        n_moved = centre(model, x, y)
        coefficients = model.coef_
        print(f"{name}: C {one}, {model.n_support_} support vectors, {model.n_iter_} iterations, {n_moved} intercepts between bounds")
        stride = max(1, coefficients.size // 300)
        results.append({
            "c": one, "stride": stride, "coefficients": coefficients.ravel()[::stride].tolist(), "intercepts": model.intercept_.tolist(),
            "predicted": model.predict(x).tolist(), "unseen_predicted": model.predict(unseen).tolist(),
            "unseen_decision": np.ravel(model.decision_function(unseen)).tolist(),
        })
    return {"name": name, **data, "balanced": balanced, "tolerance": tolerance, "results": results}


cases = [
    case("binary", 120, 6, 2, c=(0.01, 1.0, 100.0), seed=1, first_class=0),
    case("binary, uniform", 120, 6, 2, seed=15, balanced=False, first_class=-1),
    case("five classes", 150, 6, 5, c=(0.001, 0.1, 10.0), seed=3),
    case("five classes, off the grid", 150, 6, 5, c=(0.001, 0.1), seed=3, grid=None, tolerance=2e-6),
    case("136 rows of 2048 features, binary", 136, 2048, 2, c=(0.001, 1.0), seed=6, signal=0.05, first_class=0),
    case("136 rows of 2048 features, five classes", 136, 2048, 5, c=(0.001, 1.0), seed=7, signal=0.05),
    case("136 rows of 2048 features, five classes, off the grid", 136, 2048, 5, seed=7, signal=0.05, grid=None, tolerance=2e-6),
    case("separable, five classes", 80, 5, 5, c=(1.0, 100.0), seed=12, signal=3.0),
    case("scales 64 apart, three classes", 100, 8, 3, c=(0.01,), seed=9, column_scales=(1.0, 2.0**-3, 2.0**3)),
    case("four rows", 4, 3, 2, seed=14),
]
write("linear_svc.json", VERSIONS, cases)
