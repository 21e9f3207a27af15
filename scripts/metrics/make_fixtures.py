# scipy==1.17.1 numpy==2.4.6 mpmath==1.4.1
"""Writes the fixtures of judge-metrics: what SciPy says of small, tied, large and adversarial columns.

    python scripts/metrics/make_fixtures.py

correlation.json  columns with scipy.stats.pearsonr (and its confidence_interval), spearmanr and kendalltau on them.
bootstrap.json    percentile intervals by NumPy over resamples drawn by an independent ChaCha8.
tail.json         scipy.special.betainc over a grid of correlations and degrees of freedom.

Where a column's offset or magnitude makes SciPy's own Pearson wrong, the coefficient is computed with 60 digits by mpmath and the
case says so. Every other coefficient is checked against mpmath here, so that the fixtures hold true numbers either way.

A p-value depends on the coefficient's last bit where the coefficient is near 1. `p_bounds` are the p-values of the
coefficient moved by four units in the last place either way.
"""

import json
import math
import pathlib
import warnings

import mpmath
import numpy as np
import scipy
from scipy import special, stats

VERSIONS = {"scipy": "1.17.1", "numpy": "2.4.6", "mpmath": "1.4.1"}
for module in (scipy, np, mpmath):
    wanted = VERSIONS[module.__name__]
    print(module.__name__, module.__version__)
    if module.__version__ != wanted:
        raise SystemExit(f"{module.__name__} {wanted} is needed, found {module.__version__}")

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/judge-metrics/tests/fixtures"
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
    asymptotic = None if len(x) == 2 else float(stats.kendalltau(x, y, method="asymptotic").pvalue)
    exact = None if tied or len(x) > 500 else float(stats.kendalltau(x, y, method="exact").pvalue)
    return {"estimate": float(auto.statistic), "auto": float(auto.pvalue), "asymptotic": asymptotic, "exact": exact}


def case(name, x, y, lattices=None, scipy_is_wrong=False):
    x, y = [float(v) for v in x], [float(v) for v in y]
    columns = {"lattices": lattices} if lattices else {"x": x, "y": y}
    xa, ya = np.array(x), np.array(y)
    return {"name": name, **columns, "pearson": pearson(xa, ya, scipy_is_wrong),
            "spearman": spearman(xa, ya), "kendall": kendall(xa, ya)}


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


def chacha8(key, stream, words):
    """The ChaCha stream cipher's key stream with 8 rounds, a 64-bit block counter from 0 and a 64-bit stream number."""
    constants = [int.from_bytes(b"expand 32-byte k"[i : i + 4], "little") for i in range(0, 16, 4)]
    key = [int.from_bytes(key[i : i + 4], "little") for i in range(0, 32, 4)]
    out = []
    for block in range(-(-words // 16)):
        start = constants + key + [block, 0, stream & 0xFFFFFFFF, stream >> 32]
        s = list(start)

        def quarter(a, b, c, d):
            for p, q, r, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                s[p] = (s[p] + s[q]) & 0xFFFFFFFF
                v = s[r] ^ s[p]
                s[r] = (v << turn | v >> (32 - turn)) & 0xFFFFFFFF

        for _ in range(4):
            for i in range(4):
                quarter(i, 4 + i, 8 + i, 12 + i)
            for i in range(4):
                quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
        out += [(u + v) & 0xFFFFFFFF for u, v in zip(s, start)]
    return out[:words]


def resample(seed, n, index):
    words = chacha8(seed.to_bytes(8, "little") + bytes(24), index, 2 * n)
    return [((words[2 * i] | words[2 * i + 1] << 32) * n) >> 64 for i in range(n)]


def bootstrap():
    rng = np.random.default_rng(21)
    cases = []
    for n, seed, resamples, level in ((5, 0, 200, 0.9), (30, 7, 300, 0.95), (40, 2**64 - 1, 101, 0.8)):
        human = rng.integers(1, 4 if n == 5 else 6, size=n).astype(float)
        judge = np.round(human + rng.normal(size=n), 2)
        rows = [resample(seed, n, index) for index in range(resamples)]
        expected = {}
        for name, statistic in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
            values = np.array([float(statistic(judge[r], human[r]).statistic) for r in rows])
            defined = values[~np.isnan(values)]
            low, high = np.quantile(defined, [(1 - level) / 2, 1 - (1 - level) / 2], method="linear")
            expected[name] = {"low": low, "high": high, "undefined": int(np.isnan(values).sum())}
        cases.append({"x": judge.tolist(), "y": human.tolist(), "seed": seed, "resamples": resamples, "level": level,
                      "rows": [0, rows[0], resamples - 1, rows[-1]], **expected})
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


def write(name, call, value):
    rows = ",\n".join(json.dumps(row) for row in value)
    text = json.dumps({"script": "scripts/metrics/make_fixtures.py", "source": call, "versions": VERSIONS})[:-1]
    (OUT / name).write_text(f'{text}, "cases": [\n{rows}\n]}}\n')
    print(name, len(value), "cases", (OUT / name).stat().st_size, "bytes")


write("correlation.json", "scipy.stats.pearsonr, spearmanr, kendalltau", correlation())
write("bootstrap.json", "numpy.quantile(method='linear') of scipy.stats on shared resamples", bootstrap())
write("tail.json", "scipy.special.betainc, mpmath.betainc", tail())
