# numpy==2.4.6 scikit-learn==1.9.1 mapie==1.5.0
"""Writes calibrator.json: scores calibrated to the human scale, with every row a fold of its own (the jackknife+).

    python scripts/metrics/calibrator_fixtures.py

isotonic  values by sklearn.isotonic.IsotonicRegression(out_of_bounds="clip"); intervals by
          mapie.regression.CrossConformalRegressor(method="plus", cv=LeaveOneOut()) around it, and as in section 1.1 of Barber et al. (2021)
ordinal   per cut of the scale the same isotonic regression of "the grade is reached"; the value is the expected grade; sets as in section 2.4 of
          Romano, Sesia and Candes (2020), with the ordinal sets of Lu, Angelopoulos and Pomerantz (2022) and 1/(n + 1) of each distribution
          made of the shares of the grades
"""

import json
import math
import warnings
from fractions import Fraction

import numpy as np
from mapie.regression import CrossConformalRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import LeaveOneOut

from common import OUT, require

require()
warnings.filterwarnings("ignore")
rng = np.random.default_rng(41)


def fit(x, y):
    return IsotonicRegression(out_of_bounds="clip").fit(x, y)


def rank(n, level):
    return math.ceil((n + 1) * Fraction(str(level)))


def isotonic(x, y, at, level):
    n, k = len(x), rank(len(x), level)
    left_out = [fit(np.delete(x, i), np.delete(y, i)) for i in range(n)]
    errors = np.array([abs(y[i] - left_out[i].predict([x[i]])[0]) for i in range(n)])
    around = np.array([model.predict(at) for model in left_out])
    high = np.sort(around + errors[:, None], axis=0)[k - 1]
    low = np.sort(around - errors[:, None], axis=0)[n - k]
    mapie = CrossConformalRegressor(IsotonicRegression(out_of_bounds="clip"), confidence_level=level, method="plus", cv=LeaveOneOut())
    mapie.fit_conformalize(x[:, None], y)
    _, intervals = mapie.predict_interval(at[:, None])
    assert np.allclose(intervals[:, 0, 0], low, rtol=0, atol=1e-12) and np.allclose(intervals[:, 1, 0], high, rtol=0, atol=1e-12)
    return {"values": fit(x, y).predict(at).tolist(), "low": low.tolist(), "high": high.tolist()}


def reached(x, y, grades, at):
    return np.array([fit(x, (y >= grade).astype(float)).predict(at) for grade in grades[1:]])


def joins(x, y, grades, at):
    """Per point the mass that a set holds before each grade joins."""
    n = len(x)
    shares = np.array([np.mean(y == grade) for grade in grades])
    above = np.vstack([np.ones(len(at)), reached(x, y, grades, at), np.zeros(len(at))])
    result = []
    for p in (1 - 1 / (n + 1)) * -np.diff(above, axis=0).T + shares / (n + 1):
        low = high = int(np.argmax(p))
        mass, before = p[low], [0.0] * len(grades)
        while high - low + 1 < len(grades):
            if high == len(grades) - 1 or (low > 0 and p[low - 1] >= p[high + 1]):
                low -= 1
                before[low], mass = mass, mass + p[low]
            else:
                high += 1
                before[high], mass = mass, mass + p[high]
        result.append(before)
    return np.array(result)


def ordinal(x, y, at, level):
    n, k, grades = len(x), rank(len(x), level), np.unique(y)
    place = {grade: i for i, grade in enumerate(grades)}
    smaller = np.zeros((len(at), len(grades)), dtype=int)
    for i in range(n):
        masses = joins(np.delete(x, i), np.delete(y, i), grades, np.append(at, x[i]))
        # Masses that are equal but for rounding are equal.
        smaller += masses[-1, place[y[i]]] < masses[:-1] - 1e-12
    values = grades[0] + np.diff(grades) @ reached(x, y, grades, at)
    sets = [[float(grades[kept.min()]), float(grades[kept.max()])] for kept in (np.flatnonzero(row < k) for row in smaller)]
    return {"values": values.tolist(), "sets": sets}


cases = []
for name, n, level in [("few", 12, 0.9), ("some", 40, 0.9), ("more", 90, 0.8)]:
    # One digit: ties.
    x = np.round(rng.uniform(0, 5, n), 1)
    y = 1 + 0.6 * x + rng.normal(0, 0.5, n)
    at = np.concatenate([rng.uniform(-1, 6, 15), x[:5]])
    cases.append({"kind": "isotonic", "name": name, "x": x.tolist(), "y": y.tolist(), "level": level, "at": at.tolist(), **isotonic(x, y, at, level)})
    grades = np.clip(np.round(y), 1, 5)
    cases.append({"kind": "ordinal", "name": name, "x": x.tolist(), "y": grades.tolist(), "level": level, "at": at.tolist(), **ordinal(x, grades, at, level)})
(OUT / "calibrator.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
