# crowd-kit==1.4.2 numpy==2.4.6 pandas==3.1.1 scipy==1.17.1
"""Writes the fixture of judge-metrics' aggregation of annotators.

    python scripts/metrics/aggregation_fixtures.py

aggregation.json   crowd-kit's DawidSkene and OneCoinDawidSkene: start and one step, with its floor under probabilities lowered to where it does not count, and run until nothing
                   changes, with the floor of 1e-10 that it has; expectation maximisation without and with smoothing and the log-likelihood, written here on dense arrays;
                   the effective size of panels from covariance matrices, with the jackknife by computing everything anew without each item.
"""

import warnings

import numpy as np
import pandas as pd
from crowdkit.aggregation import DawidSkene, OneCoinDawidSkene
from crowdkit.aggregation.classification import dawid_skene
from scipy import stats

from common import require, write

VERSIONS = require()
# It calls pandas in ways that pandas would rather not have.
warnings.filterwarnings("ignore")

MODELS = {"confusion": DawidSkene, "one_coin": OneCoinDawidSkene}
rng = np.random.default_rng(1979)


def simulated(subjects, labels, accuracies, given):
    """Labels by annotators of these accuracies, who prefer the next label to others where they err; None where they gave none."""
    truth = rng.integers(0, labels, subjects)
    table = []
    for right in truth:
        row = []
        for accuracy in accuracies:
            wrong = (right + rng.choice(np.arange(1, labels), p=np.r_[0.7, np.full(labels - 2, 0.3 / max(labels - 2, 1))] if labels > 2 else [1.0])) % labels
            label = right if rng.random() < accuracy else wrong
            row.append(int(label) if rng.random() < given else None)
        if all(label is None for label in row):
            row[0] = int(right)
        table.append(row)
    return table


def crowd_kit(model, table, labels, n_iter, floor):
    # By its number of iterations: what it calls its loss is no likelihood (it counts prevalences once a rating), may rise, and would end it early.
    rows = [(i, a, label) for i, row in enumerate(table) for a, label in enumerate(row) if label is not None]
    data = pd.DataFrame(rows, columns=["task", "worker", "label"])
    published, dawid_skene._EPS = dawid_skene._EPS, floor
    fit = MODELS[model](n_iter=n_iter, tol=-np.inf).fit(data)
    dawid_skene._EPS = published
    order = list(range(labels))
    errors = fit.errors_.reindex(columns=order)
    annotators = len(table[0])
    # By annotator, right label and given label; a label that an annotator never gave has no row.
    confusion = [[[float(errors[truth].get((a, given), 0.0)) for given in order] for truth in order] for a in range(annotators)]
    return {
        "posteriors": fit.probas_.sort_index().reindex(columns=order).to_numpy().tolist(),
        "prevalences": fit.priors_.reindex(order).to_numpy().tolist(),
        "confusion": confusion,
        "iterations": len(fit.loss_history_),
    }


def by_arrays(model, table, labels, smoothing, iterations=1_000):
    """The same by dense arrays, in other words: votes[i, a, k] is 1 where annotator a gave subject i label k."""
    votes = np.array([[[float(label == k) for k in range(labels)] for label in row] for row in table])
    posterior = votes.sum(1) / votes.sum((1, 2))[:, None]
    for made in range(1, iterations + 1):
        prevalence = posterior.mean(0)
        counts = np.einsum("ic,iak->ack", posterior, votes)
        if model == "confusion":
            confusion = (counts + smoothing) / (counts + smoothing).sum(2, keepdims=True)
        else:
            right = np.einsum("acc->a", counts) + smoothing
            accuracy = right / (counts.sum((1, 2)) + labels * smoothing)
            confusion = np.where(np.eye(labels, dtype=bool), accuracy[:, None, None], ((1 - accuracy) / (labels - 1))[:, None, None])
        with np.errstate(divide="ignore"):
            log_confusion = np.where(confusion > 0, np.log(np.where(confusion > 0, confusion, 1)), -1e6)
            joint = np.log(prevalence) + np.einsum("iak,ack->ic", votes, log_confusion)
        before, posterior = posterior, np.exp(joint - joint.max(1, keepdims=True))
        posterior /= posterior.sum(1, keepdims=True)
        if np.abs(posterior - before).max() < 1e-13:
            break
    else:
        raise SystemExit(f"{model}: not converged in {iterations} iterations: take other data")
    likelihood = (joint.max(1) + np.log(np.exp(joint - joint.max(1, keepdims=True)).sum(1))).sum()
    return {"smoothing": smoothing, "posteriors": posterior.tolist(), "confusion": confusion.tolist(), "prevalences": prevalence.tolist(), "log_likelihood": likelihood, "iterations": made}


def aggregated(subjects, labels, accuracies, given):
    table = simulated(subjects, labels, accuracies, given)
    case = {"ratings": table, "labels": labels}
    for model in MODELS:
        plain = by_arrays(model, table, labels, 0.0)
        case[model] = {
            "start": crowd_kit(model, table, labels, 0, 1e-300)["confusion"],
            "one_step": crowd_kit(model, table, labels, 1, 1e-300)["posteriors"],
            "published": crowd_kit(model, table, labels, plain["iterations"], 1e-10),
            "without_floor": plain,
            "smoothed": by_arrays(model, table, labels, 0.5),
        }
        print(subjects, labels, model, *(case[model][name]["iterations"] for name in ["published", "without_floor", "smoothed"]), flush=True)
    return case


def effective(errors):
    covariance = np.cov(errors, rowvar=False)
    return np.diag(covariance).mean() / covariance.mean()


def panel(people, ratings):
    errors = np.array(ratings, dtype=float) - np.array(people, dtype=float)[:, None]
    n, k = errors.shape
    size = effective(errors)
    logs = np.log([effective(np.delete(errors, item, axis=0)) for item in range(n)])
    spread = np.sqrt((n - 1) / n * ((logs - logs.mean()) ** 2).sum())
    t = stats.t.ppf(0.975, n - 1)
    covariance, correlation = np.cov(errors, rowvar=False), np.corrcoef(errors, rowvar=False)
    between = ~np.eye(k, dtype=bool)
    return {
        "effective": size, "standard_error": size * spread, "low": size * np.exp(-t * spread), "high": size * np.exp(t * spread),
        "correlation": covariance[between].mean() / np.diag(covariance).mean(), "mean_correlation": correlation[between].mean(),
    }


def scores(n, shared, own):
    people = np.round(rng.normal(3, 1, n), 2)
    common = rng.normal(size=n)
    ratings = np.stack([people + bias + shared * common + spread * rng.normal(size=n) for bias, spread in own], axis=1).round(2)
    return {"people": people.tolist(), "ratings": ratings.tolist(), **panel(people, ratings)}


def verdicts(n, k, shared):
    ability = rng.normal(size=(n, 1)) * shared + rng.normal(size=(n, k)) * (1 - shared)
    right = ability > -0.4
    return {"right": right.tolist(), **panel(np.zeros(n), 1.0 - right)}


write(
    "aggregation.json",
    VERSIONS,
    aggregated=[
        aggregated(150, 4, [0.9, 0.85, 0.8, 0.7, 0.6, 0.75], 0.8),
        aggregated(90, 2, [0.95, 0.9, 0.85], 1.0),
        aggregated(100, 3, [0.95, 0.9, 0.5, 0.45, 0.4], 0.9),
    ],
    scores=[
        scores(40, 0.8, [(0.0, 0.5), (0.5, 0.8), (-0.3, 0.6)]),
        scores(25, 0.0, [(0.0, 0.4), (0.1, 1.0), (0.0, 0.5), (0.2, 0.7), (1.0, 0.6)]),
        scores(60, 1.0, [(0.2, 0.2), (0.0, 0.3)]),
    ],
    verdicts=[verdicts(50, 3, 0.6), verdicts(80, 7, 0.3)],
)
