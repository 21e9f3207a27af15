//! Equality with SciPy 1.17.1 and scikit-learn 1.9.1 on `fixtures/prediction.json`, made by
//! `scripts/metrics/prediction_fixtures.py`, which names the function behind each number.

use judge_metrics::prediction::{
    auroc, auroc_difference, average_precision, bias, brier_score, jensen_shannon_divergence, kl_divergence, log_loss,
    mean_absolute_error, precision_recall_curve, root_mean_squared_error, smoothed, total_variation,
};
use judge_metrics::{Error, Estimate, Interval};
use serde_json::{Value, json};

use crate::fixtures::{cases, flags, numbers};

type Statistic = fn(&[f64], &[f64]) -> Result<Estimate, Error>;

/// 1e-10 relative.
#[track_caller]
fn assert_close(case: &Value, what: &str, ours: f64, expected: &Value) {
    let expected = expected.as_f64().unwrap();
    // A KL divergence of 1e-12 has its ten digits too; other zeros come out of cancellation.
    let floor = if ["KL", "log loss"].contains(&what) { 0.0 } else { 1e-16 };
    let close = (ours - expected).abs() <= 1e-10 * expected.abs() + floor;
    assert!(close, "{}: {what} is {ours:e}, expected {expected:e}", case["name"]);
}

#[track_caller]
fn assert_interval(case: &Value, what: &str, ours: Interval, expected: &Value) {
    // An end near 0 is the difference of two numbers of the size of the interval.
    let floor = 1e-10 * (ours.high - ours.low);
    for (ours, expected) in [ours.low, ours.high].into_iter().zip(numbers(expected)) {
        let close = (ours - expected).abs() <= 1e-10 * expected.abs() + floor;
        assert!(close, "{}: {what} ends at {ours:e}, expected {expected:e}", case["name"]);
    }
}

#[test]
fn errors_equal_sklearns_and_their_intervals_scipys() {
    for case in cases("prediction", "errors", 11) {
        let (predicted, observed) = (numbers(&case["predicted"]), numbers(&case["observed"]));
        let root = root_mean_squared_error(&observed, &predicted).unwrap();
        assert_close(&case, "rmse", root.estimate, &case["rmse"]);
        match case.get("rmse_se") {
            Some(expected) => {
                assert_close(&case, "standard error", root.standard_error().unwrap(), expected);
                match root.interval(0.95) {
                    Ok(interval) => assert_interval(&case, "rmse", interval, &case["rmse_interval"]),
                    Err(error) => assert!(error.is_undefined() && root.standard_error() == Ok(0.0), "{error}"),
                }
            }
            None => assert_eq!(root.interval(0.95), Err(Error::TooFewItems { required: 2, found: 1 })),
        }
        let statistics: [(_, Statistic); 2] = [("mae", mean_absolute_error), ("bias", bias)];
        for (name, statistic) in statistics {
            let ours = statistic(&observed, &predicted).unwrap();
            assert_close(&case, name, ours.estimate, &case[name]);
            assert_eq!(ours.n, predicted.len());
            match ours.standard_error().ok() {
                Some(error) => assert_close(&case, "standard error", error, &case[format!("{name}_se")]),
                None => assert_eq!(ours.interval(0.95), Err(Error::TooFewItems { required: 2, found: 1 })),
            }
            for level in [0.9, 0.95].into_iter().filter(|_| ours.standard_error().is_ok()) {
                if ours.standard_error() == Ok(0.0) {
                    assert!(ours.interval(level).unwrap_err().is_undefined());
                    continue;
                }
                let interval = ours.interval(level).unwrap();
                // SciPy knows no range: an absolute error is at least 0.
                let least = if name == "mae" { 0.0 } else { f64::NEG_INFINITY };
                let ends = numbers(&case[format!("{name}_{level}")]);
                assert_interval(&case, name, interval, &json!([ends[0].max(least), ends[1]]));
                assert_eq!(interval.level, level);
            }
        }
    }
}

#[test]
fn divergences_equal_scipys() {
    let mut infinite = 0;
    for case in cases("prediction", "divergences", 21) {
        let [p, q] = ["p", "q"].map(|key| numbers(&case[key]));
        match case.get("kl") {
            Some(expected) => assert_close(&case, "KL", kl_divergence(&p, &q).unwrap(), expected),
            None => {
                let refused = kl_divergence(&p, &q).unwrap_err();
                assert!(refused.is_undefined(), "{refused}");
                assert!(kl_divergence(&p, &smoothed(&q, 1e-9).unwrap()).unwrap() > 10.0);
                infinite += 1;
            }
        }
        assert_close(&case, "JS", jensen_shannon_divergence(&p, &q).unwrap(), &case["js"]);
        assert_close(&case, "TV", total_variation(&p, &q).unwrap(), &case["tv"]);
    }
    assert_eq!(infinite, 1);
}

#[test]
fn binary_scores_equal_sklearns() {
    for case in cases("prediction", "binary", 9) {
        let (outcomes, probabilities) = (flags(&case["outcomes"]), numbers(&case["probabilities"]));
        assert_close(&case, "Brier", brier_score(&outcomes, &probabilities).unwrap().estimate, &case["brier"]);
        let loss = log_loss(&outcomes, &probabilities, f64::EPSILON).unwrap();
        assert_close(&case, "log loss", loss.estimate, &case["log_loss"]);
    }
}

#[test]
fn areas_and_curves_equal_sklearns_and_standard_errors_delongs() {
    let (mut with_error, mut compared) = (0, 0);
    for case in cases("prediction", "ranking", 13) {
        let outcomes = flags(&case["outcomes"]);
        let scores = ["first", "second"].map(|key| numbers(&case[key]));
        for (key, scores) in ["first_expected", "second_expected"].into_iter().zip(&scores) {
            let expected = &case[key];
            let ours = auroc(&outcomes, scores).unwrap();
            assert_close(&case, "AUROC", ours.estimate, &expected["auroc"]);
            assert_eq!(ours.standard_error().is_ok(), expected.get("se").is_some());
            if let Ok(error) = ours.standard_error() {
                assert_close(&case, "standard error", error, &expected["se"]);
                match expected.get("logit") {
                    Some(ends) if error > 0.0 => assert_interval(&case, "logit", ours.interval(0.95).unwrap(), ends),
                    _ => assert!(ours.interval(0.95).unwrap_err().is_undefined()),
                }
                with_error += 1;
            }
            let precision = average_precision(&outcomes, scores).unwrap();
            assert!(precision.interval(0.95).unwrap_err().is_undefined());
            assert_close(&case, "average precision", precision.estimate, &expected["average_precision"]);
            assert_curve(&case, &outcomes, scores, expected);
        }
        match case.get("difference") {
            Some(expected) => {
                let ours = auroc_difference(&outcomes, &scores[0], &scores[1]).unwrap();
                assert_close(&case, "difference", ours.estimate, &expected["estimate"]);
                assert_close(&case, "standard error", ours.standard_error().unwrap(), &expected["se"]);
                assert_close(&case, "z", ours.estimate / ours.standard_error().unwrap(), &expected["z"]);
                assert_close(&case, "p", ours.p_value().unwrap(), &expected["p"]);
                let interval = ours.interval(0.9).unwrap();
                assert!(interval.low <= ours.estimate && ours.estimate <= interval.high && interval.level == 0.9);
                compared += 1;
            }
            // A difference without an error has no interval; where it is 0, the scores order alike.
            None => {
                let alike = |ours: Estimate| {
                    ours.standard_error() == Ok(0.0) && (ours.p_value() == Ok(1.0)) == (ours.estimate == 0.0)
                };
                assert!(auroc_difference(&outcomes, &scores[0], &scores[1]).map_or(true, alike));
            }
        }
    }
    assert!(with_error >= 20 && compared >= 9, "{with_error} with standard errors, {compared} compared");
}

fn assert_curve(case: &Value, outcomes: &[bool], scores: &[f64], expected: &Value) {
    let mut curve = precision_recall_curve(outcomes, scores).unwrap();
    curve.reverse();
    let [mut precision, mut recall, thresholds] = [0, 1, 2].map(|i| numbers(&expected["precision_recall"][i]));
    assert_eq!((precision.pop(), recall.pop()), (Some(1.0), Some(0.0)), "the end that no threshold reaches");
    assert_eq!(curve.iter().map(|point| point.threshold).collect::<Vec<_>>(), thresholds, "{}", case["name"]);
    for (point, (precision, recall)) in curve.iter().zip(precision.iter().zip(recall)) {
        assert!((point.precision - precision).abs() < 1e-15 && (point.recall - recall).abs() < 1e-15);
    }
}
