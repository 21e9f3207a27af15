# scikit-learn==1.9.1 numpy==2.4.6
"""Times a scan of layers with logistic probes here and in scikit-learn, alternately on the same two cores, and prints a table.

    python scripts/bench/probe.py [--views 56] [--rows 1000] [--features 2048] [--classes 2] [--repeats 2] [--tol 1e-4]

For every view (28 layers × 2 poolings): five stratified folds, a StandardScaler fitted inside the fold, four values of C with balanced weights.
Both sides run two views at a time, each on one thread, which is what scikit-learn is fastest with, on features that are in memory already;
scikit-learn's solver is its default, lbfgs, at its default tolerance unless told otherwise, while ours runs to convergence. The scaler is fitted
once a fold on both sides. Predictions are compared too: those that differ are counted.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402, after the threads are set
import sklearn  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import StratifiedKFold  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/probe"))
from formula import uniform  # noqa: E402

for module, wanted in ((sklearn, "1.9.1"), (np, "2.4.6")):
    if module.__version__ != wanted:
        raise SystemExit(f"{module.__name__} {wanted} is needed, found {module.__version__}")

CS = (0.001, 0.01, 0.1, 1.0)
FACTORS = 64
THREADS = 2
parser = argparse.ArgumentParser()
parser.add_argument("--views", type=int, default=56)
parser.add_argument("--rows", type=int, default=1000)
parser.add_argument("--features", type=int, default=2048)
parser.add_argument("--classes", type=int, default=2)
parser.add_argument("--repeats", type=int, default=2)
parser.add_argument("--tol", type=float, default=1e-4, help="scikit-learn's")
options = parser.parse_args()


def features(view):
    """As in crates/judge-probe/benches/layer_scan.rs."""
    n, d = options.rows, options.features
    x = uniform(2_000 + view, np.arange(n * d)).reshape(n, d)
    factors = 8 * uniform(7, np.arange(n * FACTORS)).reshape(n, FACTORS) / (1 + np.arange(FACTORS))
    return x + factors @ uniform(1_000 + view, np.arange(FACTORS * d)).reshape(FACTORS, d)


def labels():
    factors = uniform(7, np.arange(options.rows * FACTORS)).reshape(options.rows, FACTORS)
    score = factors[:, :8].sum(axis=1) + 2 * uniform(11, np.arange(options.rows))
    return np.clip(np.floor((score + 2) / 4 * options.classes), 0, options.classes - 1).astype(int)


def scan(x):
    predicted = np.zeros((len(CS), len(LABELS)), dtype=int)
    for train, test in StratifiedKFold(5).split(x, LABELS):
        scaler = StandardScaler().fit(x[train])
        fit, held_out = scaler.transform(x[train]), scaler.transform(x[test])
        for i, c in enumerate(CS):
            model = LogisticRegression(C=c, class_weight="balanced", max_iter=2000, tol=options.tol).fit(fit, LABELS[train])
            predicted[i, test] = model.predict(held_out)
    return predicted


def scan_view(view):
    return scan(VIEWS[view])


def theirs():
    # Forked, so that the features are there without a copy.
    with multiprocessing.get_context("fork").Pool(THREADS) as pool:
        start = time.perf_counter()
        predicted = pool.map(scan_view, range(options.views), chunksize=1)
        return time.perf_counter() - start, np.array(predicted)


def ours():
    shape = [str(number) for number in (options.views, options.rows, options.features, options.classes)]
    out = subprocess.run([BENCH, *shape], check=True, capture_output=True, text=True, env={**os.environ, "RAYON_NUM_THREADS": str(THREADS)})
    found = json.loads(out.stdout)
    assert found["threads"] == THREADS
    return found["seconds"], np.array(found["predicted"])


built = subprocess.run(["cargo", "bench", "-q", "-p", "judge-probe", "--bench", "layer_scan", "--no-run", "--message-format=json"], cwd=ROOT,
                       check=True, capture_output=True, text=True).stdout
BENCH = [line["executable"] for line in map(json.loads, built.splitlines()) if line.get("executable") and line["target"]["name"] == "layer_scan"][0]
LABELS = labels()
VIEWS = [features(view) for view in range(options.views)]

print(f"{options.views} views of {options.rows} rows × {options.features}, {options.classes} classes, scikit-learn's tol {options.tol:g}; "
      f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
print("| run | scikit-learn, s | here, s | ratio | predictions that differ |\n|---|---|---|---|---|")
for run in range(options.repeats):
    (here, mine), (there, others) = ours(), theirs()
    print(f"| {run + 1} | {there:.2f} | {here:.2f} | {there / here:.1f} | {(mine != others).sum()} of {mine.size} |", flush=True)
