//! Logistic recalibration, against statsmodels (`scripts/metrics/recalibration_fixtures.py`).

use judge_metrics::calibration::LogisticRecalibration;
use judge_metrics::{Error, NullDistribution};

use crate::fixtures::{cases, flags, numbers};

#[track_caller]
fn near(ours: f64, expected: f64) {
    assert!((ours - expected).abs() <= 1e-9 * expected.abs().max(1e-3), "{ours}, not {expected}");
}

#[test]
fn recalibration_equals_statsmodels() {
    for case in cases("recalibration", "cases", 4) {
        let outcomes = flags(&case["outcomes"]);
        let probabilities = numbers(&case["probabilities"]);
        let expected = |name: &str| case[name].as_f64().unwrap();
        // The fixture's own clip, moved here: the function takes no side in it.
        let clip = expected("clip");
        let clipped: Vec<f64> = probabilities.iter().map(|p| p.clamp(clip, 1.0 - clip)).collect();
        let found = LogisticRecalibration::new(&outcomes, &clipped).unwrap();
        assert_eq!((found.intercept.n, found.slope.n), (outcomes.len(), outcomes.len()));
        near(found.intercept.estimate, expected("intercept"));
        near(found.intercept.standard_error().unwrap(), expected("intercept_se"));
        near(found.intercept.p_value().unwrap(), expected("intercept_p"));
        assert_eq!(found.intercept.null_distribution(), Some(NullDistribution::Normal));
        near(found.slope.estimate, expected("slope"));
        near(found.slope.standard_error().unwrap(), expected("slope_se"));
        assert!(found.slope.p_value().unwrap_err().is_undefined());
        let interval = found.slope.interval(0.95).unwrap();
        near(interval.high - interval.low, 2.0 * 1.959_963_984_540_054 * expected("slope_se"));

        // The other event, with the other probability, has the same slope and minus the intercept.
        let opposite: Vec<bool> = outcomes.iter().map(|came| !came).collect();
        let complement: Vec<f64> = clipped.iter().map(|p| 1.0 - p).collect();
        let mirrored = LogisticRecalibration::new(&opposite, &complement).unwrap();
        near(mirrored.slope.estimate, found.slope.estimate);
        near(mirrored.intercept.estimate, -found.intercept.estimate);
        near(mirrored.intercept.standard_error().unwrap(), expected("intercept_se"));
    }
}

#[test]
fn close_and_far_probabilities_are_fitted() {
    let outcomes = [true, false, true, false, true, true, false, false];
    // A billionth apart, and near the ends of what has a logit.
    for step in [1e-9, 0.1] {
        let probabilities: Vec<f64> = (0..8).map(|i| 0.1 + step * f64::from(i)).collect();
        let found = LogisticRecalibration::new(&outcomes, &probabilities).unwrap();
        assert!(found.slope.estimate.is_finite() && found.slope.standard_error().unwrap() > 0.0);
        assert!(found.intercept.standard_error().unwrap() > 0.0);
    }
    let probabilities = [1e-300, 1e-200, 0.5, 1e-100, 0.9, 0.999, 1e-300, 0.99];
    let found = LogisticRecalibration::new(&outcomes, &probabilities).unwrap();
    assert!(found.slope.estimate > 0.0 && found.slope.estimate < 0.1);
}

#[test]
fn what_defines_no_recalibration_is_refused() {
    let fit = LogisticRecalibration::new;
    let outcomes = [false, true, false, true];
    let constant = fit(&outcomes, &[0.3; 4]).unwrap_err();
    assert_eq!(constant, Error::Constant { argument: "probabilities", value: 0.3 });

    let reason = |outcomes: &[bool], p: &[f64]| match fit(outcomes, p).unwrap_err() {
        Error::Undefined { statistic: "logistic recalibration", reason } => reason,
        other => panic!("{other}"),
    };
    // Apart, with ties where they meet, and in reverse.
    for p in [[0.1, 0.8, 0.2, 0.9], [0.1, 0.4, 0.4, 0.9], [0.9, 0.2, 0.8, 0.1], [0.9, 0.4, 0.4, 0.1]] {
        assert!(reason(&outcomes, &p).contains("separates"), "{p:?}");
    }
    for all in [true, false] {
        assert!(reason(&[all; 3], &[0.1, 0.5, 0.9]).contains("on all items or on none"));
    }
    assert!(reason(&outcomes, &[0.0, 0.4, 0.6, 0.3]).contains("0 or 1"));
    assert!(reason(&outcomes, &[0.1, 0.4, 1.0, 0.3]).contains("0 or 1"));

    assert_eq!(fit(&[], &[]), Err(Error::TooFewItems { required: 1, found: 0 }));
    assert_eq!(fit(&[true], &[0.5]), Err(Error::TooFewItems { required: 2, found: 1 }));
    let lengths = Error::LengthMismatch { argument: "probabilities", found: 1, other: "outcomes", expected: 4 };
    assert_eq!(fit(&outcomes, &[0.1]), Err(lengths));
    let nan = fit(&outcomes, &[0.1, 0.2, f64::NAN, 0.3]);
    assert!(matches!(nan, Err(Error::NonFinite { argument: "probabilities", index: 2, .. })));
    let out = fit(&outcomes, &[0.1, 1.2, 0.2, 0.3]);
    assert!(matches!(out, Err(Error::OutOfRange { argument: "probabilities", index: Some(1), .. })));
}
