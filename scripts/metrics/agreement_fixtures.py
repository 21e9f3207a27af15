# numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 statsmodels==0.15.0 krippendorff==0.9.0 pingouin==0.7.0 irrCAC==0.4.4
"""Writes the fixtures of judge-metrics' agreement statistics.

    python scripts/metrics/agreement_fixtures.py

agreement.json    labels.*: sklearn.metrics.precision_recall_fscore_support, balanced_accuracy_score, matthews_corrcoef,
                  cohen_kappa_score and statsmodels.stats.inter_rater.cohens_kappa; raters.*: krippendorff.alpha,
                  statsmodels fleiss_kappa, irrCAC CAC.gwet, CAC.krippendorff and CAC.fleiss; subjects.*: pingouin.intraclass_corr.

pingouin rounds intervals; the unrounded ones are computed here by McGraw and Wong's formulas and must round to its figures.
"""

import warnings

import krippendorff
import numpy as np
import pandas as pd
import pingouin
from irrCAC.raw import CAC
from scipy import stats
from sklearn import metrics
from statsmodels.stats import inter_rater

from common import require, write_lines

VERSIONS = require()
warnings.filterwarnings("ignore")


def scores(truth, predicted, labels, **options):
    p, r, f, _ = metrics.precision_recall_fscore_support(truth, predicted, labels=labels, zero_division=0, **options)
    return {"precision": p.tolist() if hasattr(p, "tolist") else p, "recall": r.tolist() if hasattr(r, "tolist") else r,
            "f1": f.tolist() if hasattr(f, "tolist") else f}


def kappas(matrix, truth, predicted, labels, values):
    out = {}
    n = len(labels)
    place = np.arange(n)
    kinds = {"identity": None, "linear": "linear", "quadratic": "quadratic"}
    for name, wt in kinds.items():
        found = inter_rater.cohens_kappa(matrix, wt=wt, return_results=True)
        sk = metrics.cohen_kappa_score(truth, predicted, labels=labels, weights=wt)
        assert abs(found.kappa - sk) < 1e-12, (found.kappa, sk)
        out[name] = {"kappa": found.kappa, "se": found.std_kappa, "se0": found.std_kappa0, "p": found.pvalue_two_sided}
    for name, power in (("linear_of", 1), ("quadratic_of", 2)):
        distance = np.abs(np.subtract.outer(values, values)) ** power
        found = inter_rater.cohens_kappa(matrix, weights=distance / distance.max(), return_results=True)
        out[name] = {"kappa": found.kappa, "se": found.std_kappa, "se0": found.std_kappa0, "p": found.pvalue_two_sided}
    return out


def class_means(shares):
    """Averages over classes and Matthews' correlation as functions of the shares of cells, which may be complex."""
    rows, columns, right = shares.sum(1), shares.sum(0), np.diag(shares)
    ratio = lambda above, below: np.array([a / b if b.real > 0 else 0 for a, b in zip(above, below)])
    scores = {"precision": ratio(right, columns), "recall": ratio(right, rows), "f1": ratio(2 * right, rows + columns)}
    out = {("macro", name): score.mean() for name, score in scores.items()}
    out |= {("weighted", name): (rows * score).sum() for name, score in scores.items()}
    out["balanced", ""] = scores["recall"][rows.real > 0].mean()
    of_rows, of_columns = 1 - (rows**2).sum(), 1 - (columns**2).sum()
    if of_rows.real > 0 and of_columns.real > 0:
        out["matthews", ""] = (right.sum() - (rows * columns).sum()) / np.sqrt(of_rows) / np.sqrt(of_columns)
    return out


def spreads(matrix, case):
    """Delta method over multinomial counts, derivatives by complex steps."""
    n, step = matrix.sum(), 1e-30
    shares = (matrix / n).astype(complex)
    at = np.argwhere(matrix > 0)
    slopes = []
    for i, j in at:
        moved = shares.copy()
        moved[i, j] += 1j * step
        slopes.append({name: value.imag / step for name, value in class_means(moved).items()})
    p = np.array([matrix[i, j] / n for i, j in at])
    out = {"macro": {}, "weighted": {}}
    for (kind, name), value in class_means(shares).items():
        assert abs(value.real - (case[kind][name] if name else case[kind])) < 1e-12, (kind, name)
        slope = np.array([slope[kind, name] for slope in slopes])
        error = np.sqrt((p * (slope - p @ slope) ** 2).sum() / n)
        if name:
            out[kind][name] = error
        else:
            out[kind] = error
    return out


def labels():
    rng = np.random.default_rng(3)
    cases = []
    for n, k, agree in ((40, 2, 0.7), (200, 3, 0.5), (500, 5, 0.4), (30, 4, 0.9), (2000, 3, 0.97), (60, 5, 0.0), (12, 6, 0.3)):
        truth = rng.choice(k, size=n, p=rng.dirichlet(np.ones(k) * 2))
        predicted = np.where(rng.random(n) < agree, truth, rng.integers(0, k, size=n))
        all_labels = list(range(k))
        matrix = metrics.confusion_matrix(truth, predicted, labels=all_labels)
        values = np.sort(np.round(rng.normal(size=k) * 3, 2)).tolist()
        cases.append({
            "labels": all_labels, "values": values, "truth": truth.tolist(), "predicted": predicted.tolist(),
            "matrix": matrix.tolist(), "accuracy": metrics.accuracy_score(truth, predicted),
            "by_class": scores(truth, predicted, all_labels), "macro": scores(truth, predicted, all_labels, average="macro"),
            "weighted": scores(truth, predicted, all_labels, average="weighted"),
            "micro": scores(truth, predicted, all_labels, average="micro"),
            "balanced": metrics.balanced_accuracy_score(truth, predicted), "matthews": metrics.matthews_corrcoef(truth, predicted),
            "kappa": kappas(matrix, truth, predicted, all_labels, values),
        })
        cases[-1]["spread"] = spreads(matrix, cases[-1])
    return cases


def gwet(table, weights):
    """irrCAC rounds to five digits: its figures are checked, the unrounded ones computed (Gwet, 2008)."""
    n, q = table.shape
    totals = table.sum(1)
    weighted = table @ weights
    agree = (table * (weighted - 1)).sum(1)
    several = totals >= 2
    own = np.where(several, agree / np.maximum(totals * (totals - 1), 1), 0)
    seen = own[several].mean()
    shares = table / totals[:, None]
    p = shares.mean(0)
    factor = weights.sum() / (q * (q - 1))
    chance = factor * (p * (1 - p)).sum()
    estimate = (seen - chance) / (1 - chance)
    point = np.where(several, n / several.sum() * (own - chance) / (1 - chance), 0)
    own_chance = factor * (shares * (1 - p)).sum(1)
    point = point - 2 * (1 - estimate) * (own_chance - chance) / (1 - chance)
    se = np.sqrt(((point - estimate) ** 2).sum() / (n * (n - 1)))
    t = estimate / se
    half = stats.t.ppf(0.975, n - 1) * se
    return {"estimate": estimate, "se": se, "p": 2 * stats.t.sf(abs(t), n - 1), "low": estimate - half, "high": min(1, estimate + half)}


def spread(found):
    """What irrCAC says of a coefficient, with as many digits as it has."""
    low, high = found["confidence_interval"]
    return {"estimate": found["coefficient_value"], "se": found["se"], "p": found["p_value"], "low": low, "high": high}


def krippendorff_spreads(ratings, alphas):
    """By irrCAC, whose ordinal weights are others: those of Krippendorff's ordinal distances come as a matrix."""
    values, counts = np.unique(ratings[:, (~np.isnan(ratings)).sum(0) >= 2], return_counts=True)
    values, counts = values[~np.isnan(values)], counts[: (~np.isnan(values)).sum()]
    ranks = np.cumsum(counts) - counts / 2
    distance = np.subtract.outer(ranks, ranks) ** 2
    weights = {"nominal": "identity", "ordinal": 1 - distance / distance.max(), "interval": "quadratic", "ratio": "ratio"}
    out = {}
    for level, matrix in weights.items():
        out[level] = spread(CAC(pd.DataFrame(ratings.T), weights=matrix, categories=values.tolist(), digits=17).krippendorff()["est"])
        assert abs(out[level]["estimate"] - alphas[level]) < 1e-12, (level, out[level], alphas[level])
    return out


def raters():
    rng = np.random.default_rng(8)
    cases = []
    for n_raters, n_units, k, missing, noise in ((2, 20, 3, 0.0, 0.3), (4, 30, 4, 0.2, 0.4), (3, 50, 5, 0.0, 0.6), (5, 15, 3, 0.4, 0.2), (6, 12, 2, 0.1, 0.3)):
        truth = rng.integers(1, k + 1, size=n_units)
        ratings = np.where(rng.random((n_raters, n_units)) < noise, rng.integers(1, k + 1, size=(n_raters, n_units)), truth).astype(float)
        ratings[rng.random(ratings.shape) < missing] = np.nan
        if missing:
            ratings[1:, 0] = np.nan
            ratings[0, 0] = 1
        domain = list(range(1, k + 1))
        case = {"ratings": [[None if np.isnan(x) else x for x in row] for row in ratings], "labels": domain}
        case["krippendorff"] = {level: krippendorff.alpha(ratings, level_of_measurement=level)
                                for level in ("nominal", "ordinal", "interval", "ratio")}
        case["krippendorff_spread"] = krippendorff_spreads(ratings, case["krippendorff"])
        table = np.array([[np.sum(ratings[:, u] == value) for value in domain] for u in range(n_units)])
        table = table[table.sum(1) > 0]
        if not missing:
            case["fleiss"] = inter_rater.fleiss_kappa(table, method="fleiss")
            case["fleiss_spread"] = spread(CAC(pd.DataFrame(ratings.T), categories=domain, digits=17).fleiss()["est"])
            assert abs(case["fleiss_spread"]["estimate"] - case["fleiss"]) < 1e-12
            p = table.sum(0) / table.sum()
            pq = (p * (1 - p)).sum()
            case["fleiss_se0"] = float(np.sqrt(2 / (pq**2 * n_units * n_raters * (n_raters - 1)) * (pq**2 - (p * (1 - p) * (1 - 2 * p)).sum())))
        place = np.arange(k)
        gap = np.abs(np.subtract.outer(place, place))
        weights = {"identity": np.eye(k), "linear": 1 - gap / max(k - 1, 1), "quadratic": 1 - gap**2 / max((k - 1) ** 2, 1),
                   "ordinal": 1 - gap * (gap + 1) / (k * (k - 1))}
        case["gwet"] = {}
        for name, matrix in weights.items():
            ours = gwet(table, matrix)
            theirs = CAC(pd.DataFrame(ratings.T), weights=name, categories=domain).gwet()["est"]
            assert abs(ours["estimate"] - theirs["coefficient_value"]) < 6e-6, (name, ours, theirs)
            assert abs(ours["se"] - theirs["se"]) < 6e-6, (name, ours, theirs)
            case["gwet"][name] = ours
        cases.append(case)
    return cases


def icc_intervals(x):
    n, k = x.shape
    grand = x.mean()
    msb = k * ((x.mean(1) - grand) ** 2).sum() / (n - 1)
    msj = n * ((x.mean(0) - grand) ** 2).sum() / (k - 1)
    sse = ((x - x.mean(1, keepdims=True) - x.mean(0) + grand) ** 2).sum()
    mse, msw = sse / ((n - 1) * (k - 1)), ((x - x.mean(1, keepdims=True)) ** 2).sum() / (n * (k - 1))
    q = lambda a, b: stats.f.ppf(0.975, a, b)
    out = []
    f1 = msb / msw
    f1l, f1u = f1 / q(n - 1, n * (k - 1)), f1 * q(n * (k - 1), n - 1)
    f3 = msb / mse
    d = (n - 1) * (k - 1)
    f3l, f3u = f3 / q(n - 1, d), f3 * q(d, n - 1)
    single = lambda f: (f - 1) / (f + k - 1)
    icc2 = (msb - mse) / (msb + (k - 1) * mse + k * (msj - mse) / n)
    a, b = k * icc2 * msj / mse, n * (1 + (k - 1) * icc2) - k * icc2
    v = d * (a + b) ** 2 / ((n - 1) * a**2 + b**2)
    fu, fl = q(n - 1, v), q(v, n - 1)
    rest = k * msj + (k * n - k - n) * mse
    low, high = n * (msb - fu * mse) / (fu * rest + n * msb), n * (fl * msb - mse) / (rest + n * fl * msb)
    stepped = lambda r: k * r / (1 + (k - 1) * r)
    return [[single(f1l), single(f1u)], [low, high], [single(f3l), single(f3u)], [1 - 1 / f1l, 1 - 1 / f1u],
            [stepped(low), stepped(high)], [1 - 1 / f3l, 1 - 1 / f3u]]


def subjects():
    rng = np.random.default_rng(13)
    cases = []
    for n, k, shift, noise in ((6, 4, 1.0, 1.0), (20, 3, 0.0, 0.5), (50, 2, 2.0, 1.0), (8, 5, 0.3, 3.0)):
        x = np.round(rng.normal(size=(n, 1)) * 2 + rng.normal(size=k) * shift + rng.normal(size=(n, k)) * noise, 2) + 1e4 * (n == 8)
        data = pd.DataFrame([(i, j, x[i, j]) for i in range(n) for j in range(k)], columns=["subject", "rater", "score"])
        found = pingouin.intraclass_corr(data=data, targets="subject", raters="rater", ratings="score")
        intervals = icc_intervals(x)
        forms = []
        for row, interval in zip(found.to_dict("records"), intervals):
            theirs = row.get("CI95", row.get("CI95%"))
            assert np.allclose(theirs, interval, atol=0.006), (theirs, interval)
            forms.append({"icc": row["ICC"], "f": row["F"], "dof": [row["df1"], row["df2"]], "p": row["pval"], "interval": interval})
        cases.append({"ratings": x.tolist(), "forms": forms})
    return cases


def default(value):
    return value.item() if hasattr(value, "item") else value.tolist()


write_lines("agreement.json", VERSIONS, default=default, labels=labels(), raters=raters(), subjects=subjects())
