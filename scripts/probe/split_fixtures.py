# scikit-learn==1.9.1 numpy==2.4.6
"""Writes the fixture of judge-probe's splits: which rows scikit-learn's splitters learn from and test on.

    python scripts/probe/split_fixtures.py

Labels and groups come from an integer formula that the test repeats, so only the results are stored.
"""

import numpy as np
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, StratifiedGroupKFold, StratifiedKFold, train_test_split

from common import require, write

VERSIONS = require()


def mixed(row, factor, modulus):
    """Row numbers stirred: (row² + factor · row) mod 10007, then mod `modulus`."""
    return (row * row + factor * row) % 10007 % modulus


def labels(n, n_classes):
    return np.array([mixed(row, 31, n_classes) for row in range(n)])


def groups(n, n_groups):
    return np.array([mixed(row, 57, n_groups) for row in range(n)])


def folds(splitter, n, y=None, g=None):
    fold_of_row = np.full(n, -1)
    for fold, (train, test) in enumerate(splitter.split(np.zeros(n), y, g)):
        assert sorted([*train, *test]) == list(range(n)) and list(train) == sorted(train) and list(test) == sorted(test)
        fold_of_row[test] = fold
    return fold_of_row.tolist()


cases = []
for n, n_classes, n_groups, n_splits, seed in [
    (170, 5, 60, 5, 42), (85, 2, 17, 5, 0), (103, 3, 10, 4, 7), (40, 5, 25, 10, 731), (11, 2, 5, 3, 4294967295), (236, 9, 150, 8, 1),
    (300, 12, 33, 9, 20260101), (57, 1, 12, 3, 5),
]:
    y, g = labels(n, n_classes), groups(n, n_groups)
    case = {"n": n, "n_classes": n_classes, "n_groups": n_groups, "n_splits": n_splits, "seed": seed}
    for name, shuffle in [("plain", {}), ("shuffled", {"shuffle": True, "random_state": seed})]:
        case[name] = {
            "k_fold": folds(KFold(n_splits, **shuffle), n),
            "stratified": folds(StratifiedKFold(n_splits, **shuffle), n, y),
            "group": folds(GroupKFold(n_splits, **shuffle), n, y, g),
            "stratified_group": folds(StratifiedGroupKFold(n_splits, **shuffle), n, y, g),
        }
    rows = np.arange(n)
    case["train_test"] = [
        {"test_size": size, "test": test.tolist(), "train": train.tolist()}
        for size in (0.2, 0.37, n_classes + 3)
        for train, test in [train_test_split(rows, test_size=size, random_state=seed)]
    ]
    case["train_test_stratified"] = [
        {"test_size": size, "test": test.tolist(), "train": train.tolist()}
        for size in (0.37, n_classes + 3)
        for train, test in [train_test_split(rows, test_size=size, random_state=seed, stratify=y)]
    ]
    train, test = next(GroupShuffleSplit(1, test_size=0.3, random_state=seed).split(rows, y, g))
    case["train_test_grouped"] = {"test_size": 0.3, "test": test.tolist(), "train": train.tolist()}
    cases.append(case)

write("split.json", VERSIONS, cases, separators=(",", ":"))
