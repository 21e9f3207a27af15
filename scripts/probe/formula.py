"""Features from a formula of integers that the tests of judge-probe repeat (`tests/formula`), so that fixtures need not hold them."""

import numpy as np

UNSEEN = 10


def uniform(seed, counter):
    """SplitMix64's outputs as numbers in [-1, 1)."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + (np.asarray(counter, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(float) / 2.0**52 - 1.0


def features(seed, labels, n_features, signal, column_scales, every_tenth, grid):
    """Noise, plus signal times the label in every fifth feature; rounded down to a grid, if any; then scaled."""
    n = len(labels)
    x = uniform(seed, np.arange(n * n_features)).reshape(n, n_features)
    x[:, ::5] += signal * np.asarray(labels, dtype=float)[:, None]
    if grid is not None:
        x = np.floor(x * grid) / grid
    x *= np.asarray(column_scales)[np.arange(n_features) % len(column_scales)]
    x[::10] *= every_tenth
    return x


def formula(n_rows, n_features, n_classes, seed, signal, column_scales, every_tenth, first_class, grid=None):
    """The settings as the fixtures have them, features and labels to fit, and features of some more rows."""
    # Classes of unequal size: the label is the smaller of two draws; every class occurs.
    draws = np.floor((uniform(seed + 1_000_003, np.arange(2 * (n_rows + UNSEEN))) + 1) / 2 * n_classes).astype(int)
    labels = np.minimum(draws[::2], draws[1::2])
    labels[:n_classes] = np.arange(n_classes)
    labels += first_class
    x = features(seed, labels, n_features, signal, column_scales, every_tenth, grid)
    data = {
        "seed": seed, "n_features": n_features, "signal": signal, "column_scales": list(column_scales), "every_tenth": every_tenth,
        "grid": grid, "labels": labels.tolist(), "n_rows": n_rows,
    }
    return data, x[:n_rows], labels[:n_rows], x[n_rows:]
