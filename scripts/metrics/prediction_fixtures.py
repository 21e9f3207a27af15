# scipy==1.17.1 numpy==2.4.6 scikit-learn==1.9.1 mpmath==1.4.1
"""Writes prediction.json: errors, divergences, proper scores and ROC statistics as the reference programs compute them.

    python scripts/metrics/prediction_fixtures.py

errors       sklearn.metrics.mean_absolute_error, root_mean_squared_error; scipy.stats.ttest_1samp(...).confidence_interval
divergences  scipy.stats.entropy, scipy.spatial.distance.jensenshannon (squared)
binary       sklearn.metrics.brier_score_loss, log_loss
ranking      sklearn.metrics.roc_auc_score, precision_recall_curve, average_precision_score; DeLong's standard errors from the
             structural components of every pair of items, in fractions, and the intervals they give by formula

Everything that may cancel or overflow is computed with 700 digits by mpmath or in fractions, and the package's own value is checked
against that; where it falls short by more than 1e-10 (nearly equal distributions, squares that overflow) the true value is written.
"""

import json
import math
import warnings
from fractions import Fraction

import mpmath
import numpy as np
from scipy import spatial, stats
from sklearn import metrics

from common import OUT, require

require()
warnings.filterwarnings("ignore")
mpmath.mp.dps = 700  # probabilities down to 5e-324 beside 1
rng = np.random.default_rng(20)
fallen_short = []


def settle(name, package, true):
    """The true value; the package's must agree, or the case is reported."""
    if not math.isclose(package, true, rel_tol=1e-10, abs_tol=1e-15):
        fallen_short.append((name, package, true))
    return float(true)


def error_cases():
    one = lambda n: rng.normal(3, 1, n).tolist()
    yield "random 40", one(40), one(40)
    yield "random 200", one(200), one(200)
    yield "grades", rng.integers(1, 6, 60).astype(float).tolist(), rng.integers(1, 6, 60).astype(float).tolist()
    yield "one", [2.5], [4.0]
    yield "two", [2.5, 1.0], [4.0, 7.0]
    yield "equal", [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]
    yield "one error", [2.0, 3.0, 4.0], [1.0, 2.0, 3.0]
    yield "offset 1e9", [1e9 + v for v in one(30)], [1e9 + v for v in one(30)]
    yield "huge", [v * 1e200 for v in one(20)], [v * 1e200 for v in one(20)]
    yield "tiny", [v * 1e-200 for v in one(20)], [v * 1e-200 for v in one(20)]
    yield "mixed magnitudes", (10.0 ** rng.uniform(-8, 8, 50)).tolist(), (10.0 ** rng.uniform(-8, 8, 50)).tolist()


def errors():
    for name, predicted, observed in error_cases():
        n = len(predicted)
        # What the functions can see: the difference as rounded.
        seen = [mpmath.mpf(p - o) for p, o in zip(predicted, observed)]
        case = {"name": name, "predicted": predicted, "observed": observed}
        case["rmse"] = settle(
            name, metrics.root_mean_squared_error(observed, predicted), mpmath.sqrt(mpmath.fsum(d * d for d in seen) / n)
        )
        if n > 1:
            # The delta method on the mean square; Student's interval of the logarithm.
            root, square = mpmath.sqrt(mpmath.fsum(d * d for d in seen) / n), mpmath.fsum(d * d for d in seen) / n
            error = mpmath.sqrt(mpmath.fsum((d * d - square) ** 2 for d in seen) / (n - 1) / n) / 2 / root if root else mpmath.mpf(0)
            ratio = mpmath.exp(stats.t.ppf(0.975, n - 1) * error / root) if root else mpmath.mpf(1)
            case["rmse_se"], case["rmse_interval"] = float(error), [float(root / ratio), float(root * ratio)]
        for key, values in (("mae", [abs(d) for d in seen]), ("bias", seen)):
            mean = mpmath.fsum(values) / n
            package = metrics.mean_absolute_error(observed, predicted) if key == "mae" else float(np.mean(np.subtract(predicted, observed)))
            case[key] = settle(f"{name} {key}", package, mean)
            if n > 1:
                error = mpmath.sqrt(mpmath.fsum((v - mean) ** 2 for v in values) / (n - 1) / n)
                case[f"{key}_se"] = float(error)
                for level in (0.9, 0.95):
                    t = stats.t.ppf(0.5 + level / 2, n - 1)
                    low, high = float(mean - t * error), float(mean + t * error)
                    ours = stats.ttest_1samp([float(v) for v in values], 0.0).confidence_interval(level)
                    if error > 0:
                        settle(f"{name} {key} low", float(ours.low), low)
                        settle(f"{name} {key} high", float(ours.high), high)
                    case[f"{key}_{level}"] = [low, high]
        yield case


def divergence_cases():
    for k in (2, 5, 10):
        for alpha in (0.2, 1.0, 10.0):
            p, q = rng.dirichlet([alpha] * k), rng.dirichlet([alpha] * k)
            yield f"dirichlet {k} {alpha}", p, q
    yield "one label", np.array([1.0]), np.array([1.0])
    yield "equal", np.array([0.25, 0.25, 0.5]), np.array([0.25, 0.25, 0.5])
    p = rng.dirichlet([2.0] * 5)
    for eps in (1e-2, 1e-4, 1e-5):
        d = np.array([1.0, -2.0, 0.5, 0.25, 0.25]) * eps * p.min()
        yield f"nearly equal {eps}", p, p + d
    yield "zeros in p", np.array([0.0, 0.5, 0.5, 0.0]), np.array([0.1, 0.2, 0.3, 0.4])
    yield "zeros in both", np.array([0.0, 0.5, 0.5, 0.0]), np.array([0.0, 0.25, 0.75, 0.0])
    yield "tiny q", np.array([0.5, 0.5]), np.array([1e-300, 1.0])
    yield "tiny p", np.array([1e-300, 1.0]), np.array([0.5, 0.5])
    yield "subnormal", np.array([5e-324, 1.0]), np.array([1e-310, 1.0])
    yield "apart", np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
    single = rng.dirichlet([1.0] * 5).astype(np.float32).astype(float)
    yield "single precision", single, rng.dirichlet([1.0] * 5).astype(np.float32).astype(float)


def divergences():
    for name, p, q in divergence_cases():
        p, q = p.tolist(), q.tolist()
        rng.choice(np.arange(1, 50), len(p), replace=False)  # not written: later cases stay as they were drawn
        P, Q = [mpmath.mpf(v) / mpmath.fsum(p) for v in p], [mpmath.mpf(v) / mpmath.fsum(q) for v in q]
        kl = lambda a, b: mpmath.fsum(x * mpmath.log(x / y) for x, y in zip(a, b) if x > 0)
        middle = [(a + b) / 2 for a, b in zip(P, Q)]
        case = {"name": name, "p": p, "q": q}
        if all(b > 0 or a == 0 for a, b in zip(p, q)):
            case["kl"] = settle(f"{name} kl", float(stats.entropy(p, q)), max(kl(P, Q), mpmath.mpf(0)))
        js = (kl(P, middle) + kl(Q, middle)) / 2
        case["js"] = settle(f"{name} js", float(spatial.distance.jensenshannon(p, q)) ** 2, max(js, mpmath.mpf(0)))
        case["tv"] = float(mpmath.fsum(abs(a - b) for a, b in zip(P, Q)) / 2)
        yield case


def binary():
    def cases():
        for n in (1, 2, 30, 200):
            p = rng.uniform(0, 1, n)
            yield f"random {n}", rng.uniform(size=n) < p, p
        yield "coarse", rng.integers(0, 2, 40) > 0, np.round(rng.uniform(0, 1, 40), 1)
        yield "certain", np.array([True, False, True, False]), np.array([1.0, 0.0, 0.0, 1.0])
        yield "nearly certain", np.array([True, False, True, False]), np.array([1 - 1e-12, 1e-12, 1e-18, 1e-300])
        yield "rightly certain", np.array([False, False, False]), np.array([1e-12, 1e-14, 3e-11])
        yield "one outcome", np.ones(10, bool), rng.uniform(0, 1, 10)

    for name, outcomes, p in cases():
        y = outcomes.astype(int)
        brier = mpmath.fsum((mpmath.mpf(a) - int(b)) ** 2 for a, b in zip(p, y)) / len(y)
        eps = float(np.finfo(float).eps)
        clipped = [min(max(v, eps), 1 - eps) for v in p.tolist()]
        loss = -mpmath.fsum(mpmath.log(v) if b else mpmath.log(1 - mpmath.mpf(v)) for v, b in zip(clipped, y)) / len(y)
        yield {
            "name": name,
            "outcomes": outcomes.tolist(),
            "probabilities": p.tolist(),
            "brier": settle(f"{name} brier", metrics.brier_score_loss(y, p, pos_label=1), brier),
            "log_loss": settle(f"{name} log loss", metrics.log_loss(y, p, labels=[0, 1]), loss),
        }


def components(outcomes, scores):
    kernel = lambda x, y: Fraction(2 if x > y else 1 if x == y else 0, 2)
    xs = [s for s, o in zip(scores, outcomes) if o]
    ys = [s for s, o in zip(scores, outcomes) if not o]
    v10 = [sum(kernel(x, y) for y in ys) / len(ys) for x in xs]
    v01 = [sum(kernel(x, y) for x in xs) / len(xs) for y in ys]
    return v10, v01


def variance(v):
    mean = sum(v) / len(v)
    return sum((x - mean) ** 2 for x in v) / (len(v) - 1)


def ranking():
    # Not written: the cases stay as they were drawn.
    for k in (2, 3, 5, 10):
        for n in (1, 12):
            rng.integers(0, k, n), rng.dirichlet([0.5] * k, n)

    def cases():
        for n in (6, 25, 120):
            y = rng.uniform(size=n) < 0.4
            y[:4] = [True, False, True, False]
            yield f"random {n}", y, rng.normal(0, 1, n) + y, rng.normal(0, 1, n) + 0.5 * y
            yield f"tied {n}", y, np.round(rng.normal(0, 1, n) + y), np.round(2 * rng.normal(0, 1, n) + y) / 2
        yield "two", np.array([True, False]), np.array([1.0, 1.0]), np.array([2.0, 1.0])
        yield "one positive", np.array([True, False, False]), np.array([2.0, 1.0, 3.0]), np.array([1.0, 1.0, 3.0])
        y = np.array([True] * 5 + [False] * 5)
        yield "separated", y, np.arange(10.0)[::-1].copy(), np.array([1.0, 0, 1, 0, 1, 0, 1, 0, 0, 0])
        yield "reversed", y, np.arange(10.0), np.arange(10.0)[::-1] * 1e300
        yield "constant", y, np.full(10, 3.0), np.array([3.0, 1, 4, 1, 5, 9, 2, 6, 5, 3])
        yield "signed zeros", y, np.array([0.0, -0.0, 1, 1, 2, -0.0, 0.0, 1, -1, 2]), np.arange(10.0) % 3
        yield "adjacent doubles", y, 1 + np.arange(10) % 4 * 2.0**-52, np.arange(10) % 3 * 5e-324

    for name, outcomes, first, second in cases():
        y = outcomes.astype(int)
        case = {"name": name, "outcomes": outcomes.tolist(), "first": first.tolist(), "second": second.tolist()}
        parts = []
        for key, scores in (("first", first), ("second", second)):
            v10, v01 = components(outcomes, scores.tolist())
            parts.append((v10, v01))
            auc = sum(v10) / len(v10)
            precision, recall, thresholds = metrics.precision_recall_curve(y, scores)
            result = {
                "auroc": settle(f"{name} auroc", metrics.roc_auc_score(y, scores), auc),
                "average_precision": metrics.average_precision_score(y, scores),
                "precision_recall": [precision.tolist(), recall.tolist(), thresholds.tolist()],
            }
            if min(len(v10), len(v01)) > 1:
                var = variance(v10) / len(v10) + variance(v01) / len(v01)
                se = mpmath.sqrt(mpmath.mpf(var.numerator) / var.denominator)
                result["se"] = float(se)
                area, half = mpmath.mpf(auc.numerator) / auc.denominator, mpmath.mpf(stats.norm.ppf(0.975)) * se
                result["wald"] = [float(max(area - half, 0)), float(min(area + half, 1))]
                if 0 < auc < 1:
                    logit, half = mpmath.log(area / (1 - area)), half / (area * (1 - area))
                    result["logit"] = [float(1 / (1 + mpmath.exp(-end))) for end in (logit - half, logit + half)]
            case[f"{key}_expected"] = result
        if min(len(parts[0][0]), len(parts[0][1])) > 1:
            d10, d01 = ([a - b for a, b in zip(*pair)] for pair in zip(*parts))
            var = variance(d10) / len(d10) + variance(d01) / len(d01)
            if var > 0:
                difference = sum(d10) / len(d10)
                se = mpmath.sqrt(mpmath.mpf(var.numerator) / var.denominator)
                z = mpmath.mpf(difference.numerator) / difference.denominator / se
                p = mpmath.erfc(abs(z) / mpmath.sqrt(2))
                case["difference"] = {"estimate": float(difference), "se": float(se), "z": float(z), "p": float(p)}
        yield case


areas = (errors, divergences, binary, ranking)
fixture = {area.__name__: list(area()) for area in areas}
for name, package, true in fallen_short:
    print(f"the package falls short: {name}: {package!r}, not {float(true)!r}")
path = OUT / "prediction.json"
path.write_text(json.dumps(fixture, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")
print(path.name, path.stat().st_size, {key: len(cases) for key, cases in fixture.items()})
