# scikit-learn==1.9.1 numpy==2.4.6 scipy==1.17.1
"""Writes the fixture of judge-probe's layer selection: the scan, the ranking and the greedy steps as scikit-learn's parts give them.

    python scripts/probe/layer_selection_fixtures.py

States and labels come from an integer formula that the test repeats, so only the results are stored.
"""

import numpy as np
from scipy.special import entr, softmax
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from common import require, write

VERSIONS = require()
GRID = [0.01, 1.0]
N, D = 150, 7


def stir(number):
    """32 bits that look random."""
    number = number * 2654435761 % 2**32
    number ^= number >> 15
    number = number * 2246822519 % 2**32
    return number ^ number >> 13


def states(layer, pooling, n_classes, signal):
    """Noise in [-1, 1); coordinate `layer` mod D tells class `layer` mod n_classes from the others, more so in later layers."""
    labels = np.array([stir(row) % n_classes for row in range(N)])
    noise = [[stir(1000003 * (row + 1) + 1009 * layer + 101 * pooling + column) / 2**31 - 1 for column in range(D)] for row in range(N)]
    x = np.array(noise)
    x[:, layer % D] += signal * (layer + 1 - 0.5 * pooling) / 6 * (labels == layer % n_classes)
    return x, labels


def statistics(x):
    p = softmax(np.clip(x, -50, 50), axis=1)
    return np.column_stack([np.linalg.norm(x, axis=1), x.var(axis=1), entr(p).sum(axis=1)])


FAMILIES = {"state": FunctionTransformer(), "statistics": FunctionTransformer(statistics), "pca": PCA(3, svd_solver="full")}


def score(views, n_classes, signal, cv):
    parts = [states(layer, pooling, n_classes, signal) for layer, pooling, _ in views]
    x, y = np.hstack([part[0] for part in parts]), parts[0][1]
    blocks = [(str(i), FAMILIES[family], slice(D * i, D * (i + 1))) for i, (_, _, family) in enumerate(views)]
    classifier = LogisticRegression(class_weight="balanced", solver="newton-cholesky", tol=1e-12, max_iter=200)
    probe = Pipeline([("blocks", ColumnTransformer(blocks)), ("scaler", StandardScaler()), ("lr", classifier)])
    search = GridSearchCV(probe, {"lr__C": GRID}, scoring="f1_macro", cv=cv).fit(x, y)
    return {
        "means": search.cv_results_["mean_test_score"].tolist(), "best": int(search.best_index_),
        "deviation": float(search.cv_results_["std_test_score"][search.best_index_]),
    }


def quality(scores):
    return max(scores["means"]), -scores["deviation"]


cases = []
for n_classes, signal, top_k, seed in [(5, 2.0, 5, 42), (2, 0.6, 3, 7), (3, 9.0, 4, 0)]:
    cv = StratifiedKFold(5, shuffle=True, random_state=seed)
    views = [(layer, pooling, family) for layer in range(6) for pooling in range(2) for family in FAMILIES]
    scan = [score([view], n_classes, signal, cv) for view in views]
    ranking = []
    for view in sorted(range(len(views)), key=lambda view: quality(scan[view]), reverse=True):
        if len(ranking) < top_k and all(views[view][0] != views[other][0] for other in ranking):
            ranking.append(view)
    chosen, best = ranking[:1], scan[ranking[0]]
    steps = [{"views": chosen, **best, "kept": True}]
    for view in ranking[1:]:
        tried = score([views[i] for i in [*chosen, view]], n_classes, signal, cv)
        kept = quality(tried) > quality(best)
        steps.append({"views": [*chosen, view], **tried, "kept": kept})
        if kept:
            chosen, best = [*chosen, view], tried
    cases.append({
        "n_classes": n_classes, "signal": signal, "top_k": top_k, "seed": seed, "scan": scan, "ranking": ranking, "steps": steps,
        "chosen": chosen, "classifier": best["best"],
    })
    print(ranking, chosen, [round(max(step["means"]), 4) for step in steps])

write("layer_selection.json", VERSIONS, cases, grid=GRID)
