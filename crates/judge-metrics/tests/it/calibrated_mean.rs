//! Calibrated means and their transport, against scikit-learn's isotonic regression and cje-eval
//! (`scripts/metrics/calibrated_mean_fixtures.py`), and how often their intervals hold the truth.

use judge_metrics::calibration::Direction;
use judge_metrics::means::{CalibratedMean, PredictionPoweredMean, TransportVerdict};
use judge_metrics::{Error, Estimate, Proportion};
use serde_json::Value;

use crate::draw::Draw;
use crate::fixtures::{cases, count, counts, fixture, numbers};

#[track_caller]
fn near(ours: f64, expected: &Value) {
    let expected = expected.as_f64().unwrap();
    assert!((ours - expected).abs() <= 1e-10, "{ours}, not {expected}");
}

#[track_caller]
fn equal(ours: &Estimate, expected: &Value) {
    near(ours.estimate, &expected["estimate"]);
    near(ours.standard_error().unwrap(), &expected["se"]);
    near(ours.p_value().unwrap(), &expected["p"]);
    let interval = ours.interval(0.95).unwrap();
    near(interval.low, &expected["low"]);
    near(interval.high, &expected["high"]);
}

#[test]
fn means_and_residuals_equal_the_definitions_in_scikit_learn() {
    for case in cases("calibrated_mean", "cases", 5) {
        let [human, judge, rest, target_human, target_judge] =
            ["human", "judge", "rest", "target_human", "target_judge"].map(|name| numbers(&case[name]));
        let direction =
            if case["increasing"].as_bool().unwrap() { Direction::Increasing } else { Direction::Decreasing };
        let settings = CalibratedMean { direction, folds: human.len(), ..CalibratedMean::default() };
        let found = if case["groups"].is_array() {
            let (groups, others) = (counts(&case["groups"]), counts(&case["rest_groups"]));
            settings.clustered(&human, &judge, &groups, &rest, &others)
        } else {
            settings.in_folds(&human, &judge, &rest, &counts(&case["fold_of"]))
        };
        let found = found.unwrap();
        equal(&found.mean, &case["result"]);
        near(found.calibration_error, &case["result"]["calibration"]);
        let outside = count(&case["result"]["outside"]);
        assert_eq!(found.extrapolated, Proportion { count: outside, n: rest.len() });
        assert_eq!((found.mean.n, found.classical.n), (human.len() + rest.len(), human.len()));

        let check = settings.transport_check(&human, &judge, &target_human, &target_judge).unwrap();
        equal(&check.residual, &case["transport"]["residual"]);
        near(check.calibration_error, &case["transport"]["calibration"]);
        let moved = settings.transported(&human, &judge, &target_judge).unwrap();
        equal(&moved.mean, &case["transport"]["mean"]);
        assert_eq!(moved.calibration_error, check.calibration_error);

        // The direction is found by the data too.
        let auto = CalibratedMean { direction: Direction::Auto, ..settings };
        assert_eq!(auto.transport_check(&human, &judge, &target_human, &target_judge), Ok(check));
    }
}

#[test]
fn parts_equal_cje() {
    let fixture = fixture("calibrated_mean");
    let case = &fixture["cje"];
    let [human, judge, rest, target_human, target_judge] =
        ["human", "judge", "rest", "target_human", "target_judge"].map(|name| numbers(&case[name]));
    let found = CalibratedMean::default().in_folds(&human, &judge, &rest, &counts(&case["fold_of"])).unwrap();
    near(found.calibration_error.powi(2), &case["calibration_variance"]);
    // Its mean predicts unlabelled items by a map of all labels, not by the mean of maps: far nearer than the error.
    let (mean, error) = (case["mean"].as_f64().unwrap(), case["se"].as_f64().unwrap());
    assert!((found.mean.estimate - mean).abs() < 0.1 * error);
    assert!((found.mean.standard_error().unwrap() / error - 1.0).abs() < 0.05);

    // Its audit takes the calibration as known.
    let check = CalibratedMean::default().transport_check(&human, &judge, &target_human, &target_judge).unwrap();
    near(check.residual.estimate, &case["residual"]);
    let of_residuals = (check.residual.standard_error().unwrap().powi(2) - check.calibration_error.powi(2)).sqrt();
    near(of_residuals, &case["residual_se"]);
}

#[test]
fn a_cluster_for_each_item_is_no_cluster_and_folds_are_seeded() {
    let mut draw = Draw::new(2);
    let ((human, judge), (_, rest)) = (draw.bent_items(30), draw.bent_items(90));
    let groups: Vec<usize> = (0..120).collect();
    let (of, others) = groups.split_at(30);
    let settings = CalibratedMean { folds: 5, ..CalibratedMean::default() };
    let plain = settings.estimate(&human, &judge, &rest).unwrap();
    let clustered = settings.clustered(&human, &judge, of, &rest, others).unwrap();
    assert_eq!((plain.folds, clustered.folds), (5, 5));
    assert!((plain.mean.estimate - clustered.mean.estimate).abs() < 1e-12);
    let errors = [plain.mean, clustered.mean].map(|mean| mean.standard_error().unwrap());
    assert!((errors[0] - errors[1]).abs() < 1e-12 && plain.calibration_error == clustered.calibration_error);
    assert_eq!(settings.estimate(&human, &judge, &rest), Ok(plain));
    let other = CalibratedMean { seed: 1, ..settings }.estimate(&human, &judge, &rest).unwrap();
    assert_ne!(other.mean.estimate, plain.mean.estimate);
    assert_eq!(CalibratedMean { folds: 99, ..settings }.estimate(&human, &judge, &rest).unwrap().folds, 30);
}

impl Draw {
    /// Human scores around 1 + 4 / (1 + exp(−2.5 x)), of mean 3, and a judge's x.
    fn bent_items(&mut self, n: usize) -> (Vec<f64>, Vec<f64>) {
        let mut item = || {
            let x = self.normal();
            (1.0 + 4.0 / (1.0 + (-2.5 * x).exp()) + 0.7 * self.normal(), x)
        };
        (0..n).map(|_| item()).unzip()
    }
}

#[test]
fn intervals_hold_and_the_check_rejects_as_often_as_they_say() {
    const RUNS: u64 = 600;
    let settings = CalibratedMean::default();
    let (mut held, mut moved, mut rejected, mut found) = (0.0, 0.0, 0.0, 0.0);
    for run in 0..RUNS {
        let mut draw = Draw::new(run);
        let ((human, judge), (_, rest)) = (draw.bent_items(100), draw.bent_items(1_000));
        let holds = |mean: Estimate| {
            let interval = mean.interval(0.95).unwrap();
            f64::from(interval.low <= 3.0 && 3.0 <= interval.high)
        };
        held += holds(settings.estimate(&human, &judge, &rest).unwrap().mean);
        moved += holds(settings.transported(&human, &judge, &rest).unwrap().mean);
        let (same, scores) = draw.bent_items(100);
        let p_value = |target: &[f64]| {
            settings.transport_check(&human, &judge, target, &scores).unwrap().residual.p_value().unwrap()
        };
        rejected += f64::from(p_value(&same) < 0.05);
        let lower: Vec<f64> = same.iter().map(|score| score - 0.5).collect();
        found += f64::from(p_value(&lower) < 0.05);
    }
    // Four standard errors of a share of .05 in 600 are .036.
    for share in [held, moved].map(|count| count / RUNS as f64) {
        assert!((share - 0.95).abs() < 0.036, "{share}");
    }
    assert!((rejected / RUNS as f64 - 0.05).abs() < 0.036, "{rejected}");
    assert!(found / RUNS as f64 > 0.95, "{found}");
}

#[test]
fn a_bent_scale_costs_it_nothing() {
    const RUNS: u64 = 400;
    // Root mean squared errors of the calibrated mean, the prediction-powered mean and the mean of labels, with a judge's score of x.
    let errors = |score: fn(f64) -> f64, human: fn(f64) -> f64| -> [f64; 3] {
        let mut squares = [0.0; 3];
        for run in 0..RUNS {
            let mut draw = Draw::new(run);
            let mut items = |n: usize| -> (Vec<f64>, Vec<f64>) {
                let mut item = || {
                    let x = draw.normal();
                    (human(x) + 0.7 * draw.normal(), score(x))
                };
                (0..n).map(|_| item()).unzip()
            };
            let ((human, judge), (_, rest)) = (items(100), items(1_000));
            let found = CalibratedMean::default().estimate(&human, &judge, &rest).unwrap();
            let powered = PredictionPoweredMean::default().estimate(&human, &judge, &rest).unwrap();
            for (sum, mean) in squares.iter_mut().zip([found.mean, powered.mean, found.classical]) {
                *sum += (mean.estimate - 3.0).powi(2);
            }
        }
        squares.map(|sum| (sum / RUNS as f64).sqrt())
    };
    let [calibrated, powered, labels] = errors(|x| (2.0 * x).exp(), |x| 1.0 + 4.0 / (1.0 + (-2.5 * x).exp()));
    assert!(calibrated < 0.65 * powered && powered > 0.9 * labels, "{calibrated} {powered} {labels}");
    let [calibrated, powered, labels] = errors(|x| x, |x| 3.0 + x);
    assert!(calibrated < 1.05 * powered && powered < 0.75 * labels, "{calibrated} {powered} {labels}");
}

#[test]
fn a_verdict_takes_a_margin() {
    let mut draw = Draw::new(3);
    let ((human, judge), (target, scores)) = (draw.bent_items(200), draw.bent_items(200));
    let check = CalibratedMean::default().transport_check(&human, &judge, &target, &scores).unwrap();
    let interval = check.residual.interval(0.95).unwrap();
    let widest = interval.low.abs().max(interval.high);
    assert_eq!(check.verdict(widest, 0.95), Ok(TransportVerdict::Holds));
    assert_eq!(check.verdict(0.99 * widest, 0.95), Ok(TransportVerdict::Undecided));
    for shift in [-1.0, 1.0] {
        let shifted: Vec<f64> = target.iter().map(|score| score + shift).collect();
        let check = CalibratedMean::default().transport_check(&human, &judge, &shifted, &scores).unwrap();
        assert_eq!(check.verdict(0.5, 0.95), Ok(TransportVerdict::Fails));
        assert_eq!(check.verdict(9.0, 0.95), Ok(TransportVerdict::Holds));
    }
    for margin in [0.0, -1.0] {
        assert!(matches!(check.verdict(margin, 0.95), Err(Error::OutOfRange { argument: "margin", .. })));
    }
    assert!(matches!(check.verdict(f64::NAN, 0.95), Err(Error::NonFinite { argument: "margin", .. })));
    assert_eq!(check.verdict(0.5, 1.0), Err(Error::LevelOutOfRange { level: 1.0 }));
}

#[test]
fn what_defines_no_calibration_is_refused() {
    let settings = CalibratedMean::default();
    let (human, judge) = ([1.0, 2.0, 3.0, 4.0], [0.1, 0.4, 0.3, 0.9]);
    let few = |required, found| Err(Error::TooFewItems { required, found });
    assert_eq!(settings.estimate(&human[..1], &judge[..1], &judge), few(2, 1));
    assert_eq!(settings.estimate(&human, &judge, &judge[..1]), few(2, 1));
    assert_eq!(settings.in_folds(&human, &judge, &judge, &[3; 4]), few(2, 1));
    let one = settings.clustered(&human, &judge, &[0; 4], &judge, &[0, 1, 2, 3]);
    assert_eq!(one, Err(Error::TooFewClusters { required: 2, found: 1 }));
    let lengths = |argument, found, other, expected| Error::LengthMismatch { argument, found, other, expected };
    let short = settings.estimate(&human, &judge[..3], &judge);
    assert_eq!(short, Err(lengths("predictions", 3, "labels", 4)));
    let short = settings.in_folds(&human, &judge, &judge, &[0, 1]);
    assert_eq!(short, Err(lengths("fold_of", 2, "labels", 4)));
    let short = settings.transport_check(&human, &judge, &human, &judge[..2]).unwrap_err();
    assert_eq!(short, lengths("target_predictions", 2, "target_labels", 4));
    let constant = Error::Constant { argument: "predictions", value: 0.5 };
    assert_eq!(settings.estimate(&human, &[0.5; 4], &judge), Err(constant.clone()));
    assert_eq!(settings.transported(&human, &[0.5; 4], &judge).unwrap_err(), constant);
    let one = CalibratedMean { folds: 1, ..settings };
    assert!(matches!(one.estimate(&human, &judge, &judge), Err(Error::OutOfRange { argument: "folds", .. })));
    assert!(matches!(one.transported(&human, &judge, &judge), Err(Error::OutOfRange { argument: "folds", .. })));
    let nan = settings.transport_check(&human, &judge, &[1.0, f64::NAN], &judge[..2]);
    assert!(matches!(nan, Err(Error::NonFinite { argument: "target_labels", index: 1, .. })));
    let vast = settings.transport_check(&human, &judge, &[f64::MAX, 0.9 * f64::MAX], &judge[..2]);
    assert!(matches!(vast, Err(Error::Undefined { .. })), "{vast:?}");

    // People of one mind: a mean without an interval, which would be no interval.
    let equal = settings.estimate(&[2.0; 4], &judge, &judge).unwrap();
    assert_eq!((equal.mean.estimate, equal.effective_sample_size), (2.0, None));
    assert!(equal.mean.interval(0.95).unwrap_err().is_undefined());
}
