# numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1 cje-eval==0.9.3
"""Writes the fixture of judge-metrics' calibrated mean.

    python scripts/metrics/calibrated_mean_fixtures.py

calibrated_mean.json
  cases    by the definitions, with sklearn.isotonic.IsotonicRegression(out_of_bounds="clip") in the folds of sklearn's KFold, plain and by
           clusters: the one-step mean, its three errors and Welch's degrees of freedom; the residual and the mean on a target set
  cje      the same labels in the folds of cje-eval's JudgeCalibrator: its jackknife variance of the calibration, the mean of
           calibrated_mean_ci, and mean residual and standard error of transport_audit, which leaves the calibration's own error out
"""

import warnings

import numpy as np
from cje import calibrated_mean_ci, transport_audit
from cje.calibration.judge import JudgeCalibrator
from cje.diagnostics.robust_inference import DirectEvalTable, LabelDesign, direct_oracle_jackknife_estimates, oracle_jackknife_variance
from scipy import stats
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import KFold

from common import require, write

VERSIONS = require()
warnings.filterwarnings("ignore")
rng = np.random.default_rng(2512)


def fit(x, y, increasing=True):
    return IsotonicRegression(increasing=increasing, out_of_bounds="clip").fit(x, y)


def jackknife(estimates):
    k = len(estimates)
    return np.sqrt((k - 1) / k * np.sum((estimates - np.mean(estimates)) ** 2))


def student(value, parts):
    """Estimate, error, degrees of freedom and 95 % interval of a sum with parts of these errors and degrees of freedom."""
    errors, freedom = np.array(parts).T
    error = np.sqrt(np.sum(errors**2))
    freedom = error**4 / np.sum(errors**4 / freedom)
    low, high = stats.t.interval(0.95, freedom, value, error)
    p = 2 * stats.t.sf(abs(value / error), freedom)
    return {"estimate": value, "se": error, "low": low, "high": high, "p": p}


def standard_error(values):
    return np.std(values, ddof=1) / np.sqrt(len(values)), len(values) - 1


def mean(human, judge, rest, fold_of, increasing=True, groups=None, rest_groups=None):
    n, others, folds = len(human), len(rest), np.unique(fold_of)
    maps = [fit(judge[fold_of != k], human[fold_of != k], increasing) for k in folds]
    shares = np.array([np.mean(fold_of == k) for k in folds])
    out_of_fold = np.empty(n)
    for model, k in zip(maps, folds):
        out_of_fold[fold_of == k] = model.predict(judge[fold_of == k])
    averaged = shares @ np.array([model.predict(rest) for model in maps])
    if groups is not None:
        for row, group in enumerate(rest_groups):
            if group in groups:
                k = list(folds).index(fold_of[list(groups).index(group)])
                averaged[row] = maps[k].predict(rest[row : row + 1])[0]
    # One step: the mean of all predictions, and the mean residual.
    value = np.concatenate([out_of_fold, averaged]).mean() + np.mean(human - out_of_fold)
    lam = others / (n + others)
    residuals = human - lam * out_of_fold
    if groups is None:
        parts = [standard_error(lam * averaged), standard_error(residuals)]
    else:
        labelled, unlabelled = np.unique(groups), np.unique(rest_groups)
        g, h = len(labelled), len(unlabelled)
        of_labels = np.sqrt(g / (g - 1)) * (residuals - residuals.mean()) / n
        of_others = np.sqrt(h / (h - 1)) * lam * (averaged - averaged.mean()) / others
        sums = {c: of_labels[groups == c].sum() + of_others[rest_groups == c].sum() for c in np.union1d(groups, rest_groups)}
        with_labels = np.array([sums[c] for c in sums if c in labelled])
        without = np.array([sums[c] for c in sums if c not in labelled])
        parts = [(np.sqrt(np.sum(part**2)), max(len(part) - 1, 1)) for part in (with_labels, without)]
    whole = [lam * (model.predict(rest).mean() - model.predict(judge).mean()) for model in maps]
    calibration = jackknife(np.array(whole))
    parts.append((calibration, len(folds) - 1))
    outside = int(np.sum((rest < judge.min()) | (rest > judge.max())))
    return {**student(value, parts), "calibration": calibration, "outside": outside}


def transport(human, judge, target_human, target_judge, fold_of, increasing):
    whole = fit(judge, human, increasing).predict(target_judge)
    means = [fit(judge[fold_of != k], human[fold_of != k], increasing).predict(target_judge).mean() for k in np.unique(fold_of)]
    calibration = (jackknife(np.array(means)), len(means) - 1)
    residuals = target_human - whole
    return {
        "residual": student(residuals.mean(), [standard_error(residuals), calibration]),
        "mean": student(whole.mean(), [standard_error(whole), calibration]),
        "calibration": calibration[0],
    }


def draw(n, sign, step, decimals):
    quality = rng.normal(size=n)
    judge = np.round(sign * 10 / (1 + np.exp(-quality - 0.5 * rng.normal(size=n))), decimals)
    human = np.round((1 + 4 / (1 + np.exp(-2 * quality)) + 0.5 * rng.normal(size=n)) / step) * step
    return human, judge


def case(n, others, folds, sign=1, step=0.01, decimals=3, clusters=None):
    human, judge = draw(n, sign, step, decimals)
    _, rest = draw(others, sign, step, decimals)
    target_human, target_judge = draw(n // 2, sign, step, decimals)
    target_human = target_human + 0.25
    found = {"human": human, "judge": judge, "rest": rest, "target_human": target_human, "target_judge": target_judge}
    # Leave-one-out where there is no choice of folds to agree on.
    fold_of = np.arange(n)
    if folds < n:
        for k, (_, rows) in enumerate(KFold(folds, shuffle=True, random_state=7).split(judge)):
            fold_of[rows] = k
    groups = rest_groups = None
    if clusters:
        # Unlabelled items of the first labelled clusters too. Each cluster with labels is a fold.
        groups, rest_groups = np.arange(n) // clusters, (n - clusters + np.arange(others)) // clusters
        fold_of = groups
        found |= {"groups": groups, "rest_groups": rest_groups}
    result = mean(human, judge, rest, fold_of, sign > 0, groups, rest_groups)
    left_out = np.arange(n)
    moved = transport(human, judge, target_human, target_judge, left_out, sign > 0)
    columns = {name: np.asarray(column).tolist() for name, column in found.items()}
    return {**columns, "increasing": sign > 0, "fold_of": fold_of.tolist(), "result": result, "transport": moved}


def cje():
    human, judge = draw(120, 1, 0.01, 3)
    _, rest = draw(600, 1, 0.01, 3)
    human, judge, rest = np.clip(human / 6, 0, 1), judge / 10, rest / 10
    scores = np.concatenate([judge, rest])
    labels = np.concatenate([human, np.full(len(rest), np.nan)])
    mask = ~np.isnan(labels)
    names = [f"row_{row}" for row in range(len(scores))]
    calibrator = JudgeCalibrator(random_seed=42, calibration_mode="monotone")
    fitted = calibrator.fit_cv(judge_scores=scores, oracle_labels=human, oracle_mask=mask, n_folds=5, prompt_ids=names)
    table = DirectEvalTable(
        prompt_ids=np.arange(len(scores)), prompt_id_strings=names, policy_indices=np.zeros(len(scores), dtype=np.int32),
        judge_scores=scores, oracle_labels=labels, oracle_mask=mask, covariates=None, covariate_names=None, policy_names=["policy"],
    )
    estimates = direct_oracle_jackknife_estimates(calibrator, table, LabelDesign("representative"))
    result = calibrated_mean_ci(scores, labels)
    assert result.calibrator.selected_mode == "monotone"
    target_human, target_judge = draw(80, 1, 0.01, 3)
    target_human, target_judge = np.clip(target_human / 6 + 0.03, 0, 1), target_judge / 10
    audit = transport_audit(target_judge, target_human, calibrator)
    return {
        "human": human.tolist(), "judge": judge.tolist(), "rest": rest.tolist(), "fold_of": np.asarray(fitted.fold_ids)[mask].tolist(),
        "target_human": target_human.tolist(), "target_judge": target_judge.tolist(),
        "calibration_variance": oracle_jackknife_variance(estimates[:, 0]), "mean": result.estimate, "se": result.se,
        "residual": audit.delta_hat, "residual_se": audit.delta_se,
    }


cases = [
    case(40, 200, 5),
    case(60, 90, 10, step=1, decimals=0),
    case(31, 100, 4, sign=-1),
    case(24, 50, 24),
    case(48, 120, 12, clusters=4),
]
write("calibrated_mean.json", VERSIONS, cases=cases, cje=cje())
