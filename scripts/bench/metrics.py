# scipy==1.17.1 numpy==2.4.6
"""Times judge-metrics beside SciPy on the same machine, one after the other, and prints a table.

    python scripts/bench/metrics.py

Both sides compute the statistic with its p-value on the same columns; medians, in milliseconds. Both may use all cores. SciPy's bootstrap
is timed twice: with `spearmanr` as its statistic, as its documentation shows, and with a vectorized one that ranks all resamples in
one call.
"""

import json
import pathlib
import statistics
import subprocess
import time

import numpy as np
import scipy
from scipy import stats

ROOT = pathlib.Path(__file__).resolve().parents[2]
for module, wanted in ((scipy, "1.17.1"), (np, "2.4.6")):
    if module.__version__ != wanted:
        raise SystemExit(f"{module.__name__} {wanted} is needed, found {module.__version__}")


def columns(n):
    """As in crates/judge-metrics/benches/against_scipy.rs."""
    state, judge, human = 1, [], []
    for _ in range(n):
        drawn = []
        for _ in range(2):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            drawn.append((state >> 33) / 2**31)
        human.append(int(drawn[0] * 13) / 3 + 1)
        judge.append(human[-1] + 3 * drawn[1])
    return np.array(judge), np.array(human)


def milliseconds(run, at_least):
    run()
    times = []
    while len(times) < at_least or sum(times) < 1.0 and len(times) < 1000:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times)


def vectorized(x, y, axis):
    """Spearman's correlation of many resamples at once."""
    x, y = stats.rankdata(x, axis=axis), stats.rankdata(y, axis=axis)
    x, y = x - x.mean(axis, keepdims=True), y - y.mean(axis, keepdims=True)
    return (x * y).sum(axis) / np.sqrt((x * x).sum(axis) * (y * y).sum(axis))


def scipys():
    found = {}
    for n in (100, 10_000, 1_000_000):
        judge, human = columns(n)
        for name, run in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr), ("kendall", stats.kendalltau)):
            found[f"{n}/{name}"] = milliseconds(lambda: run(judge, human), 3)
    judge, human = columns(2_000)
    options = dict(paired=True, n_resamples=10_000, method="percentile", rng=0)
    plain = lambda x, y: stats.spearmanr(x, y).statistic
    found["bootstrap, spearmanr"] = milliseconds(
        lambda: stats.bootstrap((judge, human), plain, vectorized=False, **options), 1)
    found["bootstrap, vectorized"] = milliseconds(
        lambda: stats.bootstrap((judge, human), vectorized, vectorized=True, batch=100, **options), 2)
    return found


def ours():
    subprocess.run(["cargo", "bench", "-q", "-p", "judge-metrics", "--bench", "against_scipy"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    target = pathlib.Path(json.loads(subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--no-deps"], cwd=ROOT, check=True, capture_output=True).stdout)["target_directory"])
    median = lambda name: json.loads((target / "criterion" / name / "new/estimates.json").read_text())["median"]["point_estimate"] / 1e6
    found = {f"{n}/{name}": median(f"{n}/{name}") for n in (100, 10_000, 1_000_000) for name in ("pearson", "spearman", "kendall")}
    found["bootstrap"] = median("bootstrap/spearman, 10000 resamples of 2000")
    return found


mine, theirs = ours(), scipys()
print("| workload | SciPy, ms | here, ms | ratio |\n|---|---|---|---|")
for name, time_of_scipy in theirs.items():
    here = mine[name.split(",")[0]]
    print(f"| {name} | {time_of_scipy:.3g} | {here:.3g} | {time_of_scipy / here:.1f} |")
