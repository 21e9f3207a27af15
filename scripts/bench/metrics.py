# scipy==1.17.1 numpy==2.4.6
"""Times judge-metrics beside SciPy on the same machine, one after the other, and prints a table.

    python scripts/bench/metrics.py [--results FILE]

Both sides compute the statistic with its p-value on the same columns; medians and minima, in milliseconds. Both may use all cores. SciPy's
bootstrap is timed twice: with `spearmanr` as its statistic, as its documentation shows, and with a vectorized one that ranks 100 resamples
in one call. People's scores are means of three whole grades, tied as such are, unless it says otherwise. The load of the machine beforehand
is printed too: an idle machine has nearly none. --results keeps the medians in a file of results/.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import time

import numpy as np
import scipy
from scipy import stats

from results import ROOT, keep, of_checkout, of_results

VERSIONS = {"scipy": "1.17.1", "numpy": "2.4.6"}
ABOUT = {"command": "python scripts/bench/metrics.py", "versions": VERSIONS}
for module in (scipy, np):
    if module.__version__ != VERSIONS[module.__name__]:
        raise SystemExit(f"{module.__name__} {VERSIONS[module.__name__]} is needed, found {module.__version__}")


SIZES = [(f"{n}{ties}", n, not ties) for n in (100, 10_000, 1_000_000) for ties in ("", " without ties")]


def columns(n, grades):
    """As in crates/judge-metrics/benches/against_scipy.rs."""
    state, judge, human = 1, [], []
    for _ in range(n):
        drawn = []
        for _ in range(2):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            drawn.append((state >> 33) / 2**31)
        thirds = drawn[0] * 13
        human.append((int(thirds) if grades else thirds) / 3 + 1)
        judge.append(human[-1] + 3 * drawn[1])
    return np.array(judge), np.array(human)


def milliseconds(run, at_least):
    run()
    times = []
    while len(times) < at_least or sum(times) < 1.0 and len(times) < 1000:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times), 1000 * min(times)


def vectorized(x, y, axis):
    """Spearman's correlation of many resamples at once."""
    x, y = stats.rankdata(x, axis=axis), stats.rankdata(y, axis=axis)
    x, y = x - x.mean(axis, keepdims=True), y - y.mean(axis, keepdims=True)
    return (x * y).sum(axis) / np.sqrt((x * x).sum(axis) * (y * y).sum(axis))


def scipys():
    found = {}
    for size, n, grades in SIZES:
        judge, human = columns(n, grades)
        for name, run in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr), ("kendall", stats.kendalltau)):
            found[f"{size}/{name}"] = milliseconds(lambda: run(judge, human), 3)
    judge, human = columns(2_000, True)
    options = dict(paired=True, n_resamples=10_000, method="percentile", rng=0)
    plain = lambda x, y: stats.spearmanr(x, y).statistic
    found["bootstrap, spearmanr"] = milliseconds(
        lambda: stats.bootstrap((judge, human), plain, vectorized=False, **options), 3)
    found["bootstrap, vectorized"] = milliseconds(
        lambda: stats.bootstrap((judge, human), vectorized, vectorized=True, batch=100, **options), 3)
    return found


def ours():
    subprocess.run(["cargo", "bench", "-q", "-p", "judge-metrics", "--bench", "against_scipy"], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    target = pathlib.Path(json.loads(subprocess.run(
        ["cargo", "metadata", "--format-version=1", "--no-deps"], cwd=ROOT, check=True, capture_output=True).stdout)["target_directory"])

    def times(name):
        """As SciPy's: criterion's samples, each so many runs in a row."""
        sample = json.loads((target / "criterion" / name / "new/sample.json").read_text())
        runs = [time / count / 1e6 for time, count in zip(sample["times"], sample["iters"])]
        return statistics.median(runs), min(runs)

    found = {f"{size}/{name}": times(f"{size}/{name}") for size, _, _ in SIZES for name in ("pearson", "spearman", "kendall")}
    found["bootstrap"] = times("bootstrap/spearman, 10000 resamples of 2000")
    return found


parser = argparse.ArgumentParser()
of_results(parser)
results = parser.parse_args().results
print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
mine, theirs = ours(), scipys()
print("| workload | SciPy, ms (least) | here, ms (least) | ratio of medians | of minima |\n|---|---|---|---|---|")
for name, (median, least) in theirs.items():
    here, here_least = mine[name.split(",")[0]]
    print(f"| {name} | {median:.3g} ({least:.3g}) | {here:.3g} ({here_least:.3g}) | {median / here:.1f} | {least / here_least:.1f} |")
    row = {"theirs_ms": float(f"{median:.3g}"), "here_ms": float(f"{here:.3g}"), "ratio": float(f"{median / here:.2g}")}
    keep(results, "statistics", ABOUT, {"workload": name}, row, built=of_checkout)
