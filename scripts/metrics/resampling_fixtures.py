# scipy==1.17.1 numpy==2.4.6
"""Writes the fixtures of judge-metrics' bootstrap and permutation tests.

    python scripts/metrics/resampling_fixtures.py

bootstrap.json    intervals by NumPy and by SciPy's BCa over resamples drawn by an independent ChaCha8, of rows and of clusters.
permutation.json  scipy.stats.permutation_test where it is exact; p-values over arrangements drawn by an independent ChaCha8
                  where it is not.
"""

import warnings

import numpy as np
from scipy import stats
from scipy.stats import _resampling

from common import require, write_lines

VERSIONS = require()
warnings.filterwarnings("ignore")


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


def bca(units, statistic, values, level):
    """SciPy's own BCa levels, for a statistic of units given by their indices, as quantiles of the resamples."""
    of_units = lambda picked, axis=-1: np.apply_along_axis(lambda u: statistic(u.astype(int)), axis, picked)
    moved = _resampling._bca_interval((np.arange(units),), of_units, -1, (1 - level) / 2, values, None, np)[:2]
    levels = [float(np.squeeze(level)) for level in moved]
    return [float(np.quantile(values, level)) for level in levels] if all(map(np.isfinite, levels)) else None


def bootstrap():
    rng = np.random.default_rng(21)
    cases = []
    for n, seed, resamples, level in ((5, 0, 200, 0.9), (30, 7, 300, 0.95), (40, 2**64 - 1, 101, 0.8), (45, 3, 250, 0.99)):
        human = rng.integers(1, 4 if n == 5 else 6, size=n).astype(float)
        judge = np.round(human + rng.normal(size=n), 2)
        if n == 45:
            # A few enormous values on a large common part, and one grade for nearly all.
            judge, human = 1e6 + np.exp(4 * rng.normal(size=n)), np.where(human < 5, 3.0, human)
        rows = [resample(seed, n, index) for index in range(resamples)]
        clusters = np.where(n == 5, np.arange(n) % 3, rng.integers(0, max(3, n // 3), size=n))
        order = list(dict.fromkeys(clusters.tolist()))
        expected = {"groups": clusters.tolist()}
        for name, statistic in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
            values = np.array([float(statistic(judge[r], human[r]).statistic) for r in rows])
            defined = values[~np.isnan(values)]
            low, high = np.quantile(defined, [(1 - level) / 2, 1 - (1 - level) / 2], method="linear")
            expected[name] = {"low": low, "high": high, "undefined": int(np.isnan(values).sum())}
            of = lambda picked: float(statistic(judge[picked], human[picked]).statistic)
            # Of five rows many resamples are the rows as given in another order: whether Pearson's sums then equal the estimate is
            # a matter of rounding, and BCa counts such equalities. Ranks are exact.
            if n > 5 or name == "spearman":
                expected[name]["bca"] = bca(n, of, defined, level)
            of_clusters = lambda picked: of([row for c in picked for row in np.flatnonzero(clusters == order[c])])
            values = np.array([of_clusters(resample(seed, len(order), index)) for index in range(resamples)])
            defined = values[~np.isnan(values)]
            expected[name]["clustered"] = [*np.quantile(defined, [(1 - level) / 2, 1 - (1 - level) / 2])]
            if n > 5 or name == "spearman":
                expected[name]["clustered_bca"] = bca(len(order), of_clusters, defined, level)
            expected[name]["clustered_undefined"] = int(np.isnan(values).sum())
        cases.append({"x": judge.tolist(), "y": human.tolist(), "seed": seed, "resamples": resamples, "level": level,
                      "rows": [0, rows[0], resamples - 1, rows[-1]], **expected})
    return cases


def words64(seed, purpose, index, count):
    words = chacha8(seed.to_bytes(8, "little") + bytes([purpose]) + bytes(23), index, 2 * count)
    return [words[2 * i] | words[2 * i + 1] << 32 for i in range(count)]


def shuffled(values, seed, index):
    values = list(values)
    for place, word in zip(range(len(values) - 1, 0, -1), words64(seed, 1, index, len(values) - 1)):
        other = word * (place + 1) >> 64
        values[place], values[other] = values[other], values[place]
    return values


def drawn_p(seen, null):
    slack = 100 * np.finfo(float).eps * abs(seen)
    less = (np.sum(null <= seen + slack) + 1) / (len(null) + 1)
    greater = (np.sum(null >= seen - slack) + 1) / (len(null) + 1)
    return {"less": less, "greater": greater, "two-sided": min(1.0, 2 * min(less, greater))}


def permutation():
    rng = np.random.default_rng(5)
    difference = lambda x, y: float(np.mean(x) - np.mean(y))
    tau = lambda x, y: float(stats.kendalltau(x, y).statistic)
    kinds = {"paired": ("samples", difference), "independent": ("independent", difference), "pairing": ("pairings", tau)}
    cases = []
    for kind, (scipy_kind, statistic) in kinds.items():
        for n in (4, 6):
            x = np.round(rng.normal(size=n), 1)
            y = np.round(x / 2 + rng.normal(size=n), 1) + (n == 6)
            if kind == "independent":
                y = y[:-1]
            p = {}
            for alternative in ("less", "greater", "two-sided"):
                data = (x, y)
                fixed = statistic
                if kind == "pairing":
                    data, fixed = (y,), lambda shuffled: tau(x, shuffled)
                result = stats.permutation_test(
                    data, fixed, permutation_type=scipy_kind, n_resamples=np.inf, alternative=alternative)
                p[alternative] = float(result.pvalue)
            cases.append({"kind": kind, "x": x.tolist(), "y": y.tolist(), "exact": True, "permutations": 10**6, "seed": 0,
                          "estimate": statistic(x, y), "p": p})
        n, seed, count = 80, 11, 199
        x, y = np.round(rng.normal(size=n), 2), np.round(rng.normal(size=n) + 0.2, 2)
        null = []
        for index in range(count):
            if kind == "paired":
                bits = words64(seed, 1, index, 2)
                swap = np.array([bits[i // 64] >> (i % 64) & 1 for i in range(n)], bool)
                null.append(statistic(np.where(swap, y, x), np.where(swap, x, y)))
            elif kind == "independent":
                both = np.array(shuffled([*x, *y], seed, index))
                null.append(statistic(both[:n], both[n:]))
            else:
                null.append(statistic(x, np.array(shuffled(y, seed, index))))
        cases.append({"kind": kind, "x": x.tolist(), "y": y.tolist(), "exact": False, "permutations": count, "seed": seed,
                      "estimate": statistic(x, y), "p": drawn_p(statistic(x, y), np.array(null))})
    cases += clustered_permutation(rng, difference)
    return cases


def clustered_permutation(rng, statistic):
    """Whole clusters change sides: SciPy permutes cluster numbers, those of the other side counted on from the first's."""
    cases = []
    for n, m, seed, count in ((9, 4, 0, 10**6), (200, 70, 2**40 + 1, 199)):
        groups = rng.integers(0, m, size=n)
        order = list(dict.fromkeys(groups.tolist()))
        place = np.array([order.index(group) for group in groups])
        x, y = np.round(rng.normal(size=n) + 0.3, 2), np.round(rng.normal(size=n), 2)
        sided = lambda swap: statistic(np.where(swap[place], y, x), np.where(swap[place], x, y))
        if n == 9:
            m = len(order)
            p = {alternative: float(stats.permutation_test(
                (np.arange(m), m + np.arange(m)), lambda first, second: sided(first >= m), permutation_type="samples",
                n_resamples=np.inf, alternative=alternative).pvalue) for alternative in ("less", "greater", "two-sided")}
        else:
            words = [words64(seed, 1, index, -(-len(order) // 64)) for index in range(count)]
            swaps = [np.array([w[c // 64] >> (c % 64) & 1 for c in range(len(order))], bool) for w in words]
            p = drawn_p(statistic(x, y), np.array([sided(swap) for swap in swaps]))
        cases.append({"kind": "clustered", "x": x.tolist(), "y": y.tolist(), "groups": groups.tolist(), "exact": n == 9,
                      "permutations": count, "seed": seed, "estimate": statistic(x, y), "p": p})
    return cases


write_lines("bootstrap.json", VERSIONS, source="numpy.quantile(method='linear') of scipy.stats on shared resamples", cases=bootstrap())
write_lines("permutation.json", VERSIONS, source="scipy.stats.permutation_test; arrangements drawn by ChaCha8", cases=permutation())
