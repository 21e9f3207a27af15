# scipy==1.17.1 numpy==2.4.6 scikit-learn==1.9.1 mapie==1.5.0 ppi-python==0.2.3
"""Writes calibration.json: reliability curves, isotonic fits, conformal quantiles and sets, prediction-powered means.

    python scripts/metrics/calibration_fixtures.py

reliability  equal width: sklearn.calibration.calibration_curve(strategy="uniform"), whose bins are closed on the right, and the counts of those
             bins; equal mass: item by item, as the documentation of `Binning::EqualMass` says. The calibration errors are sums over these
             bins: there is no standard implementation.
isotonic     sklearn.isotonic.IsotonicRegression(out_of_bounds="clip")
split        mapie.regression.SplitConformalRegressor on a fitted regressor, and numpy.quantile(method="inverted_cdf") at
             ceil((n + 1) level) / n. (Method "higher" at that point takes the score one place further up.)
ordinal      the sets of Lu, Angelopoulos and Pomerantz (2022), grown one label at a time for every threshold that makes a difference
powered      λ and estimate of ppi_py (lam=None and lam given); at that λ scipy.stats.ttest_ind(rectifiers, -λ * unlabelled, equal_var=False)'s
             interval, since ppi_py's own is normal with deviations by n; the classical one is scipy.stats.ttest_1samp's
"""

import json
import math
import warnings
from fractions import Fraction

import numpy as np
import ppi_py
from mapie.regression import SplitConformalRegressor
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression

from common import OUT, require

require()
warnings.filterwarnings("ignore")
rng = np.random.default_rng(30)


def reliability():
    def cases():
        for n in (1, 20, 300):
            p = rng.uniform(size=n)
            yield f"random {n}", rng.uniform(size=n) < p, p
        yield "tenths", rng.integers(0, 2, 80) > 0, np.array([k / 10 for k in rng.integers(0, 11, 80)])
        yield "overconfident", rng.uniform(size=100) < 0.6, rng.beta(8, 1, 100)
        yield "ends", np.array([True, False, True, False]), np.array([0.0, 0.0, 1.0, 1.0])
        yield "one confidence", rng.integers(0, 2, 30) > 0, np.full(30, 0.73)

    for name, outcomes, p in cases():
        case = {"name": name, "outcomes": outcomes.tolist(), "probabilities": p.tolist(), "curves": []}
        n = len(p)
        for bins in (1, 2, 10, 15):
            if name != "tenths" or bins in (1, 2, 10):
                # scikit-learn's own edges, k times a rounded tenth, lie at or above k/bins: no case falls in between.
                edges = np.linspace(0, 1, bins + 1)[1:-1]
                member = np.searchsorted(edges, p)
                assert (member == [sum(Fraction(v) > Fraction(k / bins) for k in range(1, bins)) for v in p]).all(), name
                counts = np.bincount(member, minlength=bins)
                if 0 < outcomes.sum() < n:
                    accuracy, confidence = calibration_curve(outcomes, p, n_bins=bins, strategy="uniform")
                else:  # scikit-learn wants both outcomes
                    confidence = [p[member == k].mean() for k in np.flatnonzero(counts)]
                    accuracy = [float(outcomes[0])] * len(confidence)
                counts = counts[counts > 0]
                case["curves"].append(curve("width", bins, counts, accuracy, confidence, n))

            order = sorted(range(n), key=lambda i: p[i])
            chunks, chunk, closed = [], [], 0
            for place, i in enumerate(order):
                chunk.append(i)
                last = place + 1 == n or p[order[place + 1]] != p[i]
                due = math.floor(Fraction(place + 1, n) * bins)
                if last and due > closed:
                    chunks.append(chunk)
                    chunk, closed = [], due
            assert not chunk
            accuracy = [float(np.mean(outcomes[c])) for c in chunks]
            confidence = [math.fsum(p[c]) / len(c) for c in chunks]
            case["curves"].append(curve("mass", bins, [len(c) for c in chunks], accuracy, confidence, n))
        yield case


def curve(kind, bins, counts, accuracy, confidence, n):
    gaps = [abs(a - c) for a, c in zip(accuracy, confidence)]
    return {
        "kind": kind,
        "bins": bins,
        "counts": [int(c) for c in counts],
        "accuracy": list(map(float, accuracy)),
        "confidence": list(map(float, confidence)),
        "ece": math.fsum(c * g for c, g in zip(counts, gaps)) / n,
        "mce": float(max(gaps)),
    }


def isotonic():
    def cases():
        for n in (1, 2, 15, 100):
            x = rng.normal(size=n)
            yield f"random {n}", x, x + rng.normal(size=n), np.ones(n)
        x = rng.integers(1, 6, 60).astype(float)
        yield "tied", x, np.round(x + rng.normal(size=60)), np.ones(60)
        yield "weighted", x, x - rng.normal(size=60), rng.uniform(0, 3, 60)
        yield "weight 0", x, -x + rng.normal(size=60), rng.integers(0, 3, 60).astype(float)
        yield "falling", np.arange(12.0), np.arange(12.0)[::-1].copy(), np.ones(12)
        yield "constant x", np.full(6, 2.0), rng.normal(size=6), np.ones(6)
        yield "constant y", rng.normal(size=6), np.full(6, 2.0), np.ones(6)
        yield "magnitudes", 10 ** rng.uniform(-6, 6, 30), 10 ** rng.uniform(-6, 6, 30), 10 ** rng.uniform(-6, 6, 30)
        yield "offset", 1e8 + rng.normal(size=20), 1e8 + rng.normal(size=20), np.ones(20)

    for name, x, y, weights in cases():
        low, high = float(np.quantile(y, 0.2)), float(np.quantile(y, 0.7))
        at = np.concatenate([x[:10], rng.uniform(x.min() - 1, x.max() + 1, 10)])
        columns = {"x": x.tolist(), "y": y.tolist(), "weights": weights.tolist(), "at": at.tolist()}
        case = {"name": name, **columns, "bounds": [low, high], "fits": []}
        for direction, increasing in (("increasing", True), ("decreasing", False), ("auto", "auto")):
            for bounded in (False, True):
                settings = {"y_min": low, "y_max": high} if bounded else {}
                fit = IsotonicRegression(increasing=increasing, out_of_bounds="clip", **settings).fit(x, y, weights)
                result = {"increasing": bool(fit.increasing_), "predicted": fit.predict(at).tolist()}
                case["fits"].append({"direction": direction, "bounded": bounded, **result})
        yield case


class Identity(RegressorMixin, BaseEstimator):
    """A fitted regressor whose prediction is the feature itself."""

    def fit(self, x, y):
        return self

    def predict(self, x):
        return np.asarray(x)[:, 0]

    def __sklearn_is_fitted__(self):
        return True


def split():
    sizes = {0.5: (7,), 0.683: (60,), 0.8: (50,), 0.9: (9, 30, 99, 100), 0.95: (19, 25, 39)}
    for level, n in ((level, n) for level in sizes for n in sizes[level]):
        predicted = np.round(rng.normal(3, 1, n), 2)
        observed = np.round(predicted + rng.normal(0, 1, n), 1)
        rng.uniform(0.2, 2, n)  # not written: later cases stay as they were drawn
        case = {"name": f"{n} at {level}", "level": level, "predicted": predicted.tolist(), "observed": observed.tolist()}
        rank = math.ceil((n + 1) * Fraction(str(level)))
        case["radius"] = float(np.quantile(abs(observed - predicted), rank / n, method="inverted_cdf"))
        if n > 1 / (1 - level) + 1e-9:
            mapie = SplitConformalRegressor(Identity(), confidence_level=level, conformity_score="absolute", prefit=True)
            mapie.conformalize(predicted[:, None], observed)
            _, interval = mapie.predict_interval(np.array([[0.0]]))
            assert interval.ravel()[1] == case["radius"], (n, level)
            case["mapie"] = interval.ravel().tolist()
        yield case


def grown(p, threshold):
    """The smallest set of the growth whose mass exceeds the threshold."""
    low = high = int(np.argmax(p))
    mass = p[low]
    while mass <= threshold and high - low + 1 < len(p):
        below, above = p[low - 1] if low > 0 else -1.0, p[high + 1] if high + 1 < len(p) else -1.0
        if below >= above:
            low, mass = low - 1, mass + below
        else:
            high, mass = high + 1, mass + above
    return low, high


def ordinal():
    for n, k, level in ((20, 5, 0.8), (40, 5, 0.95), (40, 3, 0.9), (30, 10, 0.9), (19, 2, 0.95), (9, 1, 0.9)):
        table = rng.dirichlet([0.6] * k, n)
        if k == 5:
            table = np.round(table * 8) / 8
            table[:, 0] += 1 - table.sum(axis=1)
            table = np.abs(table) / np.abs(table).sum(axis=1, keepdims=True)
        observed = np.array([rng.choice(k, p=row / row.sum()) for row in table])
        rank = math.ceil((n + 1) * Fraction(str(level)))
        # Every mass that a growing set can have; nothing but these can be the smallest threshold that covers enough.
        masses = {0.0} | {m for row in table for m in prefix_masses(row)}
        covers = lambda row, y, t: grown(row, t)[0] <= y <= grown(row, t)[1]
        covered = lambda t: sum(covers(row, y, t) for row, y in zip(table, observed))
        threshold = min(t for t in masses if covered(t) >= rank)
        new = rng.dirichlet([0.6] * k, 20)
        sets = [grown(row, threshold) for row in new]
        yield {
            "name": f"{n} on {k} at {level}", "level": level, "distributions": table.tolist(), "observed": observed.tolist(),
            "new": new.tolist(), "threshold": threshold, "sets": sets,
        }


def prefix_masses(p):
    low = high = int(np.argmax(p))
    mass = p[low]
    while True:
        yield float(mass)
        if high - low + 1 == len(p):
            return
        below, above = p[low - 1] if low > 0 else -1.0, p[high + 1] if high + 1 < len(p) else -1.0
        if below >= above:
            low, mass = low - 1, mass + below
        else:
            high, mass = high + 1, mass + above


def powered():
    def cases():
        for n, N, noise in ((10, 50, 0.3), (50, 100, 1.0), (40, 100, 5.0), (2, 2, 0.5)):
            truth = rng.normal(3, 1, n + N)
            judge = truth + rng.normal(0.4, noise, n + N)
            yield f"{n} of {N}, noise {noise}", truth[:n], judge[:n], judge[n:]
        grades = rng.integers(1, 6, 90).astype(float)
        judge = np.clip(grades + rng.integers(-1, 2, 90), 1, 5)
        yield "grades", grades[:30], judge[:30], judge[30:]
        yield "contrary judge", grades[:30], 6 - grades[:30], 6 - grades[30:]
        yield "perfect judge", grades[:30], grades[:30], grades[30:]
        yield "offset", 1e6 + grades[:30], 1e6 + grades[:30] + rng.normal(size=30), 1e6 + grades[30:]
        yield "tiny", 1e-9 * grades[:30], 1e-9 * (grades[:30] + rng.normal(size=30)), 1e-9 * grades[30:]

    for name, labels, predictions, unlabelled in cases():
        columns = {"labels": labels.tolist(), "predictions": predictions.tolist(), "unlabelled": unlabelled.tolist()}
        case = {"name": name, **columns, "results": []}
        for lam in (None, 0.0, 0.5, 1.0):
            for level in (0.9, 0.95):
                used = ppi_py.ppi._calc_lam_glm(labels, predictions, unlabelled, np.eye(1), clip=True) if lam is None else lam
                used = float(np.squeeze(used))
                welch = stats.ttest_ind(labels - used * predictions, -used * unlabelled, equal_var=False).confidence_interval(level)
                result = {"fixed": lam, "level": level, "low": float(welch.low), "high": float(welch.high)}
                result["estimate"] = float(np.squeeze(ppi_py.ppi_mean_pointestimate(labels, predictions, unlabelled, lam=lam)))
                if lam is None:
                    result["lambda"] = used
                classical = stats.ttest_1samp(labels, 0).confidence_interval(level)
                result["classical"] = [float(classical.low), float(classical.high)]
                case["results"].append(result)
        yield case


areas = (reliability, isotonic, split, ordinal, powered)
fixture = {area.__name__: list(area()) for area in areas}
path = OUT / "calibration.json"
path.write_text(json.dumps(fixture, separators=(",", ":"), default=float).replace('{"name"', '\n{"name"') + "\n")
print(path.name, path.stat().st_size, {key: len(cases) for key, cases in fixture.items()})
