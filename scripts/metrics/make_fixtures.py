# scipy==1.17.1 numpy==2.4.6
"""Writes the fixtures of judge-metrics: bootstrap intervals by NumPy.

    python scripts/metrics/make_fixtures.py

bootstrap.json    percentile intervals by NumPy over resamples drawn by an independent ChaCha8.
"""

import json
import pathlib
import warnings

import numpy as np
import scipy
from scipy import stats

VERSIONS = {"scipy": "1.17.1", "numpy": "2.4.6"}
for module in (scipy, np):
    wanted = VERSIONS[module.__name__]
    print(module.__name__, module.__version__)
    if module.__version__ != wanted:
        raise SystemExit(f"{module.__name__} {wanted} is needed, found {module.__version__}")

OUT = pathlib.Path(__file__).resolve().parents[2] / "crates/judge-metrics/tests/fixtures"
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


def write(name, call, value):
    rows = ",\n".join(json.dumps(row) for row in value)
    text = json.dumps({"script": "scripts/metrics/make_fixtures.py", "source": call, "versions": VERSIONS})[:-1]
    (OUT / name).write_text(f'{text}, "cases": [\n{rows}\n]}}\n')
    print(name, len(value), "cases", (OUT / name).stat().st_size, "bytes")


write("bootstrap.json", "numpy.quantile(method='linear') of scipy.stats on shared resamples", bootstrap())
