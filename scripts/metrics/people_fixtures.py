# numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
"""Writes the fixture of judge-metrics' agreement with people who disagree.

    python scripts/metrics/people_fixtures.py

people.json   Soft labels: entropies and divergences of SciPy, scikit-learn's log loss and Brier score with the shares as weights of labels. The human ceiling: leaving each annotator out in turn, by plain
              loops, with SciPy's paired t interval.
"""

from collections import Counter

import numpy as np
from scipy import stats
from scipy.spatial.distance import jensenshannon
from sklearn.metrics import log_loss

from common import require, write

VERSIONS = require()
rng = np.random.default_rng(2025)


def mean(values):
    values = np.asarray(values, dtype=float)
    interval = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    return {"mean": values.mean(), "low": interval.low, "high": interval.high}


def table(items, labels, raters, agree, given):
    truth = rng.integers(0, labels, items)
    row = lambda right: [int(right if rng.random() < agree else rng.integers(0, labels)) if rng.random() < given else None for _ in range(raters)]
    ratings = [row(right) for right in truth]
    for right, given in zip(truth, ratings):
        if all(label is None for label in given):
            given[0] = int(right)
    judge = [int(right if rng.random() < 0.7 else rng.integers(0, labels)) for right in truth]
    return ratings, judge


def shares_of(ratings, labels):
    return np.array([[sum(label == k for label in row) for k in range(labels)] for row in ratings], dtype=float)


def soft_labels(items, labels, raters):
    ratings, _ = table(items, labels, raters, 0.5, 1.0)
    counts = shares_of(ratings, labels)
    people, judge = counts / raters, rng.dirichlet(np.full(labels, 0.7), items)
    clip = 0.01
    clipped = np.clip(judge, clip, 1 - clip)
    one_hot = np.eye(labels)
    # One row to each person's label: the same cross entropy from labels, but for scikit-learn's division of clipped rows by their sum.
    rows = [(i, k) for i in range(items) for k in range(labels) for _ in range(int(counts[i, k]))]
    cross = np.array([-(p * np.log(q)).sum() for p, q in zip(people, judge)])
    assert np.isclose(cross.mean(), log_loss([k for _, k in rows], [judge[i] for i, _ in rows], labels=list(range(labels))), rtol=1e-12)
    brier = ((people - judge) ** 2).sum(1)
    # The expected Brier score of a person's label, less what no judge can avoid.
    drawn = np.array([sum(p[k] * ((q - one_hot[k]) ** 2).sum() for k in range(labels)) for p, q in zip(people, judge)])
    assert np.allclose(brier, drawn - (1 - (people**2).sum(1)))
    return {
        "people": people.tolist(), "judge": judge.tolist(), "clip": clip,
        "expected_agreement": mean((people * judge).sum(1)),
        "cross_entropy": mean(cross),
        "clipped_cross_entropy": mean([-(p * np.log(q)).sum() for p, q in zip(people, clipped)]),
        "kl": mean([stats.entropy(p, q) for p, q in zip(people, judge)]),
        "js": mean([jensenshannon(p, q) ** 2 for p, q in zip(people, judge)]),
        "total_variation": mean(np.abs(people - judge).sum(1) / 2),
        "brier": mean(brier),
        "best_agreement": mean(people.max(1)),
        "entropy": mean([stats.entropy(p) for p in people]),
        "chosen": judge.argmax(1).tolist(),
        "chosen_agreement": mean(people[np.arange(items), judge.argmax(1)]),
    }


def label_score(said, rest):
    counts = Counter(rest)
    leaders = [label for label, count in counts.items() if count == max(counts.values())]
    return (said in leaders) / len(leaders)


def ceiling(judge, ratings, score):
    people_of, judge_of, by_annotator = [], [], {}
    for said, row in zip(judge, ratings):
        given = [(a, label) for a, label in enumerate(row) if label is not None]
        if said is None or len(given) < 2:
            continue
        person, machine = [], []
        for a, own in given:
            rest = [label for b, label in given if b != a]
            person.append(score(own, rest))
            machine.append(score(said, rest))
            by_annotator.setdefault(a, []).append((person[-1], machine[-1]))
        people_of.append(np.mean(person))
        judge_of.append(np.mean(machine))
    test = stats.ttest_rel(judge_of, people_of)
    interval = test.confidence_interval(0.95)
    return {
        "judge": judge, "ratings": ratings, "people_figure": mean(people_of), "judge_figure": mean(judge_of),
        "difference": {"mean": np.mean(judge_of) - np.mean(people_of), "low": interval.low, "high": interval.high, "p": test.pvalue}, "n": len(people_of),
        "annotators": [{"annotator": a, "n": len(v), "person": np.mean([x for x, _ in v]), "judge": np.mean([x for _, x in v])} for a, v in sorted(by_annotator.items())],
    }


def label_ceiling(items, labels, raters, given):
    ratings, judge = table(items, labels, raters, 0.6, given)
    judge = [label if rng.random() < 0.95 else None for label in judge]
    return ceiling(judge, ratings, label_score)


def number_ceiling(items, raters, given):
    truth = rng.normal(3, 1, items)
    rating = lambda right: round(float(right + rng.normal(0, 0.7)), 2)
    ratings = [[rating(right) if rng.random() < given else None for _ in range(raters)] for right in truth]
    judge = [rating(right) if rng.random() < 0.95 else None for right in truth]
    return ceiling(judge, ratings, lambda said, rest: abs(said - np.mean(rest)))


write(
    "people.json",
    VERSIONS,
    soft_labels=[soft_labels(40, 3, 5), soft_labels(30, 5, 8)],
    label_ceilings=[label_ceiling(60, 3, 3, 1.0), label_ceiling(80, 4, 5, 0.7)],
    number_ceilings=[number_ceiling(50, 3, 1.0), number_ceiling(70, 6, 0.6)],
)
