# scipy==1.17.1 numpy==2.4.6 mpmath==1.4.1
"""Writes the fixtures of judge-metrics' correlations: what SciPy says of small, tied, large and adversarial columns.

    python scripts/metrics/correlation_fixtures.py

correlation.json           columns with scipy.stats.pearsonr (and its confidence_interval), spearmanr, kendalltau (both variants),
                           somersd and weightedtau on them.
partial_correlation.json   the formulas of pingouin 0.7.0's partial_corr.
dependent_correlations.json  the published formulas with 60 digits.
tail.json                  scipy.special.betainc over a grid of correlations and degrees of freedom.

Where a column's offset or magnitude makes SciPy's own Pearson wrong, the coefficient is computed with 60 digits by mpmath and the
case says so. Every other coefficient is checked against mpmath here, so that the fixtures hold true numbers either way.

A p-value depends on the coefficient's last bit where the coefficient is near 1. `p_bounds` are the p-values of the
coefficient moved by four units in the last place either way.
"""

import math
import warnings

import mpmath
import numpy as np
from scipy import special, stats

from common import require, write_lines

VERSIONS = require()
warnings.filterwarnings("ignore")
mpmath.mp.dps = 60


def lattice(n, a, m):
    """The columns of the large cases: the Rust test makes the same ones instead of reading them."""
    return [float((i * a) % m) for i in range(n)]


def true_pearson(x, y):
    x, y = [mpmath.mpf(v) for v in x], [mpmath.mpf(v) for v in y]
    mx, my = mpmath.fsum(x) / len(x), mpmath.fsum(y) / len(y)
    xy = mpmath.fsum((a - mx) * (b - my) for a, b in zip(x, y))
    xx, yy = mpmath.fsum((a - mx) ** 2 for a in x), mpmath.fsum((b - my) ** 2 for b in y)
    return float(xy / mpmath.sqrt(xx * yy))


def p_of(r, n):
    """The two-sided p-value that pearsonr and spearmanr share."""
    r = min(abs(r), 1.0)
    return 1.0 if n == 2 else float(special.betainc(n / 2 - 1, 0.5, (1 - r) * (1 + r)))


def close(a, b, rel=1e-10):
    return abs(a - b) <= rel * max(abs(a), abs(b))


def bounds(r, n):
    ulps = 4 * np.finfo(float).eps
    return [p_of(abs(r) * (1 + ulps), n), p_of(abs(r) * (1 - ulps), n)]


def pearson(x, y, scipy_is_wrong):
    n = len(x)
    truth = true_pearson(x, y)
    result = stats.pearsonr(x, y)
    if scipy_is_wrong:
        r, p = truth, p_of(truth, n)
        assert not close(result.statistic, truth, 1e-12), "SciPy is right after all"
        result = stats._stats_py.PearsonRResult(
            statistic=np.float64(r), pvalue=p, alternative="two-sided", n=np.float64(n), x=x, y=y, axis=0)
    else:
        r, p = float(result.statistic), float(result.pvalue)
        assert close(r, truth) or abs(truth) < 1e-12, (r, truth)
        assert close(p, p_of(r, n)) or p < 1e-290, (p, p_of(r, n))
    intervals = []
    for level in (0.5, 0.95, 0.999):
        interval = result.confidence_interval(level)
        intervals.append([level, float(interval.low), float(interval.high)])
    source = "mpmath" if scipy_is_wrong else "scipy"
    return {"source": source, "estimate": r, "p": p, "p_bounds": bounds(r, n), "intervals": intervals}


def spearman(x, y):
    result = stats.spearmanr(x, y)
    r, p = float(result.statistic), float(result.pvalue)
    # With two pairs SciPy has no degree of freedom left and says NaN; the p-value of a sure event is 1.
    p = 1.0 if len(x) == 2 else p
    return {"estimate": r, "p": p, "p_bounds": bounds(r, len(x))}


def kendall(x, y):
    auto = stats.kendalltau(x, y)
    tied = len(set(x)) < len(x) or len(set(y)) < len(y)
    tau_c = stats.kendalltau(x, y, variant="c")
    assert tau_c.pvalue == auto.pvalue
    asymptotic = None if len(x) == 2 else float(stats.kendalltau(x, y, method="asymptotic").pvalue)
    exact = None if tied or len(x) > 500 else float(stats.kendalltau(x, y, method="exact").pvalue)
    return {"estimate": float(auto.statistic), "c": float(tau_c.statistic), "auto": float(auto.pvalue), "asymptotic": asymptotic, "exact": exact}


def somers(x, y):
    """D(Y|X) and D(X|Y); SciPy's table has a cell for every pair of values, so large columns go by their counts."""
    results = []
    for a, b in ((x, y), (y, x)):
        if len(set(a)) * len(set(b)) <= 1e5:
            result = stats.somersd(a, b)
            # Where D is 0 and the rows' own surpluses are too, SciPy divides 0 by 0.
            results.append([float(result.statistic), 1.0 if np.isnan(result.pvalue) else float(result.pvalue)])
        else:
            results.append(None)
    return results


def weighted(x, y):
    return [float(stats.weightedtau(x, y, rank=rank).statistic) for rank in (True, None, False)]


def case(name, x, y, lattices=None, scipy_is_wrong=False):
    x, y = [float(v) for v in x], [float(v) for v in y]
    columns = {"lattices": lattices} if lattices else {"x": x, "y": y}
    xa, ya = np.array(x), np.array(y)
    return {"name": name, **columns, "pearson": pearson(xa, ya, scipy_is_wrong),
            "spearman": spearman(xa, ya), "kendall": kendall(xa, ya),
            "somers": somers(xa, ya), "weighted_tau": weighted(xa, ya)}


def correlation():
    rng = np.random.default_rng(20)
    cases = [
        case("two items", [1.0, 4.0], [2.5, 3.0]),
        case("two items, falling", [1.0, 4.0], [3.0, 2.5]),
        case("three items", [1.0, 2.0, 3.0], [2.0, 1.0, 3.5]),
        case("three items, perfect", [1.0, 2.0, 3.0], [2.0, 4.0, 6.0]),
        case("three items, tied", [1.0, 1.0, 3.0], [2.0, 1.0, 3.5]),
        case("four items", [0.1, 0.4, 0.2, 0.9], [3.0, 1.0, 2.0, 5.0]),
        case("four items, no correlation", [-1.0, 1.0, -1.0, 1.0], [1.0, 1.0, -1.0, -1.0]),
    ]
    for n in (5, 10, 33, 34, 60, 150):
        x = rng.normal(size=n)
        for strength in (0.0, 0.6, 3.0):
            cases.append(case(f"normal, n = {n}, strength {strength}", x, strength * x + rng.normal(size=n)))
    x = np.arange(40.0)
    y = x.copy()
    y[[10, 11]] = y[[11, 10]]
    cases += [
        case("sorted", x, x**3),
        case("anti-sorted", x, -x),
        case("one exchange", x, y),
        case("one exchange, falling", x, -y),
        case("anti-sorted, 200 items", np.arange(200.0), -np.exp(np.arange(200.0) / 40)),
        case("nearly straight", x, x + 1e-7 * rng.normal(size=40)),
    ]
    for n in (8, 30, 120):
        human = rng.integers(1, 6, size=n)
        judge = np.clip(human + rng.integers(-1, 2, size=n), 1, 5)
        cases.append(case(f"scores 1 to 5, n = {n}", judge, human))
        cases.append(case(f"continuous judge, scores 1 to 5, n = {n}", human + rng.normal(size=n), human))
    scores = rng.integers(1, 6, size=50)
    cases += [
        case("binary", rng.integers(0, 2, size=50), scores),
        case("all but one equal", [3.0] * 19 + [4.0], rng.normal(size=20)),
        case("signed zeros", [0.0, -0.0, 1.0, -1.0, 2.0], [1.0, 2.0, -0.0, 0.0, 3.0]),
    ]
    x = rng.normal(size=30)
    y = x + rng.normal(size=30)
    cases += [
        case("magnitude 1e200", 1e200 * x, -3e199 * y),
        case("magnitude 1e-200", 1e-200 * x, 1e-190 * y),
        case("magnitudes 1e300 and 1e-300", 1e300 * x, 1e-300 * y),
        case("an outlier", np.append(x, 1e9), np.append(y, -1e9)),
        case("offset 1e6", 1e6 + x, y - 1e6),
        case("offset 1e9", 1e9 + scores, 1e9 + np.clip(scores + rng.integers(-1, 2, size=50), 1, 5)),
        case("steps of one ulp", 1.0 + np.finfo(float).eps * rng.integers(0, 9, size=25), rng.normal(size=25),
             scipy_is_wrong=True),
        case("offset 1e14", 1e14 + scores, 1e14 + np.clip(scores + rng.integers(-1, 2, size=50), 1, 5),
             scipy_is_wrong=True),
        case("a sum that overflows", 1.7e308 * (0.9 + 0.1 * x / abs(x).max()), y, scipy_is_wrong=True),
        case("subnormal", 5e-324 * np.round(100 * x), y, scipy_is_wrong=True),
    ]
    for n, a, b in ((1000, (7919, 1009), (104729, 1013)), (20000, (7919, 20011), (48271, 65537)), (20000, (7919, 101), (17, 6))):
        cases.append(case(f"lattice, n = {n}, moduli {a[1]} and {b[1]}", lattice(n, *a), lattice(n, *b), lattices=[n, a, b]))
    return cases


def residual(column, covariates):
    """Of the least-squares regression on the covariates and a constant, by normal equations with 60 digits."""
    n = len(column)
    design = mpmath.matrix([[1, *(c[i] for c in covariates)] for i in range(n)])
    target = mpmath.matrix([column[i] for i in range(n)])
    return target - design * mpmath.lu_solve(design.T * design, design.T * target)


def partial():
    """What pingouin.partial_corr computes, written out so that pandas is not needed: the correlation of residuals, with 60 digits,
    compared with minus the scaled inverse of the covariance matrix; the t test; Fisher's interval at n - k.

    pingouin 0.7.0 itself gives the same estimates and p-values to 1e-13, and the same intervals rounded to two digits, but
    for two cases: offset columns it refuses as equal, and nearly collinear ones lose it five digits."""
    rng = np.random.default_rng(23)
    cases = []
    for name, n, k, offset in (("one", 4, 1, 0), ("one", 12, 1, 0), ("one", 60, 1, 0), ("two", 5, 2, 0), ("two", 40, 2, 0),
                               ("three", 100, 3, 0), ("tied", 50, 2, 0), ("offset", 30, 2, 1e7), ("nearly collinear", 40, 2, 0)):
        base = rng.normal(size=n)
        columns = [base + rng.normal(size=n) for _ in range(2 + k)]
        if name == "tied":
            columns = [np.clip(np.round(c + 3), 1, 5) for c in columns]
        if name == "nearly collinear":
            columns[3] = columns[2] + 1e-6 * rng.normal(size=n)
        columns = [np.round(c + offset, 9) for c in columns]
        entry = {"name": f"{name}, n = {n}, k = {k}", "columns": [c.tolist() for c in columns]}
        for method in ("pearson", "spearman"):
            data = columns if method == "pearson" else [stats.rankdata(c) for c in columns]
            if name == "nearly collinear" and method == "spearman":
                assert (data[2] == data[3]).all()
                entry[method] = None
                continue
            rows = [[mpmath.mpf(float(v)) for v in c] for c in data]
            left = [residual(rows[0], rows[2:]), residual(rows[1], rows[2:])]
            dot = lambda a, b: (a.T * b)[0]
            truth = float(dot(*left) / mpmath.sqrt(dot(left[0], left[0]) * dot(left[1], left[1])))
            inverse = np.linalg.pinv(np.cov([(c - c.mean()) / c.std(ddof=1) for c in data]), hermitian=True)
            r = float(-inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1]))
            if name != "nearly collinear":
                assert close(r, truth, 1e-7), (entry["name"], method, r, truth)
            dof = n - k - 2
            p = float(2 * stats.t.sf(abs(truth) * math.sqrt(dof / ((1 - truth) * (1 + truth))), dof))
            half = stats.norm.ppf(0.975) / math.sqrt(n - k - 3) if n - k > 3 else math.inf
            interval = [math.tanh(math.atanh(truth) - half), math.tanh(math.atanh(truth) + half)]
            entry[method] = {"estimate": truth, "p": p, "interval": interval}
        cases.append(entry)
    return cases


def dependent():
    """The tests' formulas as the papers print them, with 60 digits: correlations of the variables j and k, j and h, k and h."""
    mp = mpmath
    cases = []
    triples = [(0.3, 0.4, 0.5, 100), (0.5, 0.6, 0.7, 100), (0.4, 0.5, 0.1, 103), (0.63, -0.03, -0.19, 15), (0.396, 0.179, 0.088, 66),
               (0.5, 0.2, 0.5, 50), (0.7, 0.4, 0.8, 50), (0.7, 0.4, 0.0, 50), (-0.2, 0.35, -0.6, 4), (0.99, 0.985, 0.97, 20),
               (0.6, 0.6, 0.3, 30), (0.0, 0.0, 0.0, 10), (0.999999, 0.2, 0.2005, 1000000), (-0.8, -0.75, 0.9, 250)]
    for r_jk, r_jh, r_kh, n in triples:
        a, b, c = mp.mpf(r_jk), mp.mpf(r_jh), mp.mpf(r_kh)
        matrix = mp.matrix([[1, a, b], [a, 1, c], [b, c, 1]])
        mean = (a + b) / 2
        williams = (a - b) * mp.sqrt((n - 1) * (1 + c) / (2 * mp.mpf(n - 1) / (n - 3) * mp.det(matrix) + mean**2 * (1 - c) ** 3))
        tail = mp.betainc(mp.mpf(n - 3) / 2, 0.5, 0, (n - 3) / (n - 3 + williams**2), regularized=True)
        difference = mp.atanh(a) - mp.atanh(b)

        def psi(u, v):
            return c * (1 - u**2 - v**2) - u * v * (1 - u**2 - v**2 - c**2) / 2

        steiger = difference * mp.sqrt(n - 3) / mp.sqrt(2 - 2 * psi(mean, mean) / (1 - mean**2) ** 2)
        correlation = psi(a, b) / (1 - a**2) / (1 - b**2)
        dunn = difference * mp.sqrt(n - 3) / mp.sqrt(2 - 2 * correlation)
        squares = (a**2 + b**2) / 2
        f = min(mp.mpf(1), (1 - c) / (2 * (1 - squares)))
        h = 1 + squares / (1 - squares) * (1 - f)
        meng = difference * mp.sqrt((n - 3) / (2 * (1 - c) * h))
        z = mp.sqrt(2) * mp.erfinv(mp.mpf(0.95))
        half = z * mp.sqrt(2 * (1 - c) * h / (n - 3))
        (l1, u1), (l2, u2) = [[mp.tanh(mp.atanh(r) + s * z / mp.sqrt(n - 3)) for s in (-1, 1)] for r in (a, b)]
        low = a - b - mp.sqrt((a - l1) ** 2 + (u2 - b) ** 2 - 2 * correlation * (a - l1) * (u2 - b))
        high = a - b + mp.sqrt((u1 - a) ** 2 + (b - l2) ** 2 - 2 * correlation * (u1 - a) * (b - l2))
        row = {"r12": r_jk, "r13": r_jh, "r23": r_kh, "n": n, "williams": [williams, tail]}
        for name, statistic in (("steiger", steiger), ("dunn_clark", dunn), ("meng", meng)):
            row[name] = [statistic, mp.erfc(abs(statistic) / mp.sqrt(2))]
        row |= {"meng_interval": [difference - half, difference + half], "zou_interval": [low, high]}
        cases.append({key: [float(v) for v in value] if isinstance(value, list) else value for key, value in row.items()})
    return cases


def tail():
    grid = []
    for dof in (1, 2, 3, 4, 7, 19, 60, 61, 62, 100, 998, 9998, 99998, 999998, 99999998):
        for t in (1e-9, 1e-3, 0.1, 0.5, 1.0, 1.3, 1.7, 2.5, 5.0, 10.0, 20.0, 35.0):
            r = t / math.sqrt(dof + t * t)
            if r * r < 0.5:  # 1 - r² would round away what a small correlation has to say
                p = 1 - special.betainc(0.5, dof / 2, r * r) if t < 1 else special.betaincc(0.5, dof / 2, r * r)
            else:
                p = special.betainc(dof / 2, 0.5, (1 - r) * (1 + r))
            if dof <= 998:
                rest = (1 - mpmath.mpf(r)) * (1 + mpmath.mpf(r))
                exact = float(mpmath.betainc(mpmath.mpf(dof) / 2, 0.5, 0, rest, regularized=True))
                assert close(p, exact, 1e-12), (dof, t, p, exact)
                p = exact
            grid.append([r, dof, float(p)])
    return grid


write_lines("correlation.json", VERSIONS, source="scipy.stats.pearsonr, spearmanr, kendalltau, somersd, weightedtau", cases=correlation())
write_lines("partial_correlation.json", VERSIONS, source="pingouin.partial_corr's formulas", cases=partial())
write_lines("dependent_correlations.json", VERSIONS, source="the papers' formulas with mpmath", cases=dependent())
write_lines("tail.json", VERSIONS, source="scipy.special.betainc, mpmath.betainc", cases=tail())
