//! What calibration refuses, and that the error says where.

use judge_metrics::Error;
use judge_metrics::calibration::{
    Binning, Direction, IsotonicRegression, OrdinalConformal, ReliabilityCurve, SplitConformal,
};
use judge_metrics::means::{PredictionPoweredMean, Tuning};

#[test]
fn reliability_curves_check_probabilities_and_bins() {
    for binning in [Binning::default(), Binning::EqualMass { bins: 4 }] {
        let curve = |outcomes: &[bool], p: &[f64]| ReliabilityCurve::new(outcomes, p, binning).unwrap_err();
        assert_eq!(curve(&[], &[]), Error::TooFewItems { required: 1, found: 0 });
        let lengths = Error::LengthMismatch { argument: "probabilities", found: 2, other: "outcomes", expected: 1 };
        assert_eq!(curve(&[true], &[0.1, 0.2]), lengths);
        let negative =
            Error::OutOfRange { argument: "probabilities", index: Some(0), value: -0.1, low: 0.0, high: 1.0 };
        assert_eq!(curve(&[true], &[-0.1]), negative);
        let nan = curve(&[true, true], &[0.1, f64::NAN]);
        assert!(matches!(nan, Error::NonFinite { argument: "probabilities", index: 1, .. }));
    }
    for binning in [Binning::EqualWidth { bins: 0 }, Binning::EqualMass { bins: 0 }] {
        let none = ReliabilityCurve::new(&[true], &[0.5], binning);
        assert!(matches!(none, Err(Error::OutOfRange { argument: "bins", .. })));
    }
    // More bins than memory could hold: only those with items exist.
    for binning in [Binning::EqualWidth { bins: usize::MAX }, Binning::EqualMass { bins: usize::MAX }] {
        let fine = ReliabilityCurve::new(&[true, false, true], &[0.0, 0.4, 1.0], binning).unwrap();
        assert_eq!(fine.bins.len(), 3);
    }
    let ends = ReliabilityCurve::new(&[false, true], &[-0.0, 1.0], Binning::EqualWidth { bins: 10 }).unwrap();
    assert_eq!((ends.bins[0].low, ends.bins[0].high, ends.bins[1].high), (0.0, 0.1, 1.0));
    assert_eq!((ends.expected_calibration_error(), ends.maximum_calibration_error()), (0.0, 0.0));
}

#[test]
fn isotonic_regression_checks_columns_weights_and_bounds() {
    let plain = IsotonicRegression::default();
    assert_eq!(plain.fit(&[], &[]), Err(Error::TooFewItems { required: 1, found: 0 }));
    let lengths = Error::LengthMismatch { argument: "y", found: 1, other: "x", expected: 2 };
    assert_eq!(plain.fit(&[1.0, 2.0], &[1.0]), Err(lengths));
    let infinite = Error::NonFinite { argument: "y", index: 1, value: f64::INFINITY };
    assert_eq!(plain.fit(&[1.0, 2.0], &[1.0, f64::INFINITY]), Err(infinite));
    let lengths = Error::LengthMismatch { argument: "weights", found: 1, other: "x", expected: 2 };
    assert_eq!(plain.fit_weighted(&[1.0, 2.0], &[1.0, 2.0], &[1.0]), Err(lengths));
    let negative = plain.fit_weighted(&[1.0, 2.0], &[1.0, 2.0], &[1.0, -1.0]);
    assert!(matches!(negative, Err(Error::OutOfRange { argument: "weights", index: Some(1), .. })));
    let nan = plain.fit_weighted(&[1.0], &[1.0], &[f64::NAN]);
    assert!(matches!(nan, Err(Error::NonFinite { argument: "weights", index: 0, .. })));
    assert!(plain.fit_weighted(&[1.0, 2.0], &[1.0, 2.0], &[0.0, 0.0]).unwrap_err().is_undefined());
    let overflow = plain.fit(&[1.0, 1.0], &[f64::MAX, f64::MAX]);
    assert!(matches!(overflow, Err(Error::Undefined { .. })));

    // Weights of any size: only their ratios count.
    let (x, y) = ([1.0, 2.0, 3.0, 3.0], [0.9, 0.7, 1.0, 4.0]);
    let even = plain.fit(&x, &y).unwrap();
    for weight in [5e-324, 1e-310, 1e308] {
        let weighted = plain.fit_weighted(&x, &y, &[weight; 4]).unwrap();
        for (ours, even) in weighted.y_thresholds().iter().zip(even.y_thresholds()) {
            assert!((ours - even).abs() < 1e-12, "{weight}: {ours}, not {even}");
        }
    }

    let crossed = IsotonicRegression { y_min: Some(3.0), y_max: Some(2.0), ..plain };
    assert!(matches!(crossed.fit(&[1.0], &[1.0]), Err(Error::OutOfRange { argument: "y_min", value: 3.0, .. })));
    let nan = IsotonicRegression { y_max: Some(f64::NAN), ..plain }.fit(&[1.0], &[1.0]);
    assert!(matches!(nan, Err(Error::NonFinite { argument: "y_max", .. })));

    let one = IsotonicRegression { direction: Direction::Auto, ..plain }.fit(&[1.0], &[4.0]).unwrap();
    assert_eq!(one.predict(&[-7.0, 1.0, f64::MAX]), Ok(vec![4.0; 3]));
    assert_eq!(one.predict(&[]), Ok(vec![]));
    assert!(matches!(one.predict(&[f64::NAN]), Err(Error::NonFinite { argument: "x", index: 0, .. })));
    let wide = plain.fit(&[-f64::MAX, f64::MAX], &[-f64::MAX, f64::MAX]).unwrap();
    assert_eq!(wide.predict(&[-f64::MAX, 0.0, f64::MAX]), Ok(vec![-f64::MAX, 0.0, f64::MAX]));
}

#[test]
fn conformal_intervals_say_how_many_items_they_need() {
    let zeros = [0.0; 200];
    for (level, required) in [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19), (0.99, 99)] {
        let conformal = SplitConformal { level };
        assert!(conformal.fit(&zeros[..required], &zeros[..required]).is_ok(), "{level}");
        let few = Err(Error::TooFewItems { required, found: required - 1 });
        assert_eq!(conformal.fit(&zeros[..required - 1], &zeros[..required - 1]), few);
    }
    let conformal = SplitConformal::default();
    assert_eq!(conformal.fit(&[], &[]), Err(Error::TooFewItems { required: 19, found: 0 }));
    let lengths = Error::LengthMismatch { argument: "predicted", found: 0, other: "observed", expected: 1 };
    assert_eq!(conformal.fit(&[0.0], &[]), Err(lengths));
    let nan = conformal.fit(&[0.0], &[f64::NAN]);
    assert!(matches!(nan, Err(Error::NonFinite { argument: "predicted", index: 0, .. })));
    for level in [0.0, 1.0, 95.0] {
        assert_eq!(SplitConformal { level }.fit(&zeros, &zeros), Err(Error::LevelOutOfRange { level }));
    }
    let overflow = SplitConformal { level: 0.5 }.fit(&[-f64::MAX; 3], &[f64::MAX; 3]);
    assert!(matches!(overflow, Err(Error::Undefined { .. })));
    let fitted = conformal.fit(&zeros, &zeros).unwrap();
    assert_eq!(fitted.radius, 0.0);
    assert!(matches!(fitted.interval(f64::INFINITY), Err(Error::NonFinite { argument: "prediction", .. })));
}

#[test]
fn ordinal_sets_check_distributions_and_labels() {
    let conformal = OrdinalConformal { level: 0.5 };
    let row = [0.25, 0.5, 0.25];
    let none: [[f64; 3]; 0] = [];
    assert_eq!(conformal.fit(&[], &none), Err(Error::TooFewItems { required: 1, found: 0 }));
    let unknown = Error::UnknownLabel { argument: "observed", index: 0, found: "3".into(), known: "0 to 2".into() };
    assert_eq!(conformal.fit(&[3], &[row]), Err(unknown));
    let lengths = Error::LengthMismatch { argument: "observed", found: 0, other: "distributions", expected: 1 };
    assert_eq!(conformal.fit(&[], &[row]), Err(lengths));
    let sum = Error::NotADistribution { argument: "distributions", sum: 0.5 };
    assert_eq!(conformal.fit(&[0, 0], &[row, [0.0, 0.5, 0.0]]), Err(Error::InRow { row: 1, error: Box::new(sum) }));
    let ragged = conformal.fit(&[0, 0], &[vec![0.25, 0.75], vec![1.0]]).unwrap_err();
    assert!(matches!(&ragged, Error::InRow { row: 1, error } if matches!(**error, Error::LengthMismatch { .. })));
    let sums = conformal.fit(&[0, 0], &[[0.25, 0.75], [0.25, 0.5]]).unwrap_err();
    assert_eq!(sums.to_string(), "row 1: distributions sums to 0.75, not to 1");
    let few = OrdinalConformal { level: 0.9 }.fit(&[1; 8], &[row; 8]);
    assert_eq!(few, Err(Error::TooFewItems { required: 9, found: 8 }));
    assert_eq!(OrdinalConformal { level: 1.0 }.fit(&[0], &[row]), Err(Error::LevelOutOfRange { level: 1.0 }));

    let fitted = conformal.fit(&[1, 0, 2], &[row, row, row]).unwrap();
    // Equally probable neighbours: the lower one joins first.
    assert_eq!(fitted.set(&row).map(|set| (set.low, set.high)), Ok((0, 1)));
    let lengths = Error::LengthMismatch { argument: "distribution", found: 2, other: "the scale", expected: 3 };
    assert_eq!(fitted.set(&[0.5, 0.5]), Err(lengths));
    let sum = Error::NotADistribution { argument: "distribution", sum: 1.5 };
    assert_eq!(fitted.set(&[0.5, 0.5, 0.5]), Err(sum));
}

#[test]
fn prediction_powered_means_check_all_three_columns() {
    let settings = PredictionPoweredMean::default();
    let (labels, judge, unlabelled) = ([1.0, 2.0, 4.0], [1.5, 2.0, 3.0], [2.0, 3.0, 1.0, 2.5]);
    let lengths = Error::LengthMismatch { argument: "predictions", found: 2, other: "labels", expected: 3 };
    assert_eq!(settings.estimate(&labels, &judge[1..], &unlabelled), Err(lengths));
    assert_eq!(settings.estimate(&[], &[], &unlabelled), Err(Error::TooFewItems { required: 2, found: 0 }));
    assert_eq!(settings.estimate(&labels, &judge, &[1.0]), Err(Error::TooFewItems { required: 2, found: 1 }));
    for (column, argument) in ["labels", "predictions", "unlabelled"].into_iter().enumerate() {
        let mut columns = [labels.to_vec(), judge.to_vec(), unlabelled.to_vec()];
        columns[column][1] = f64::INFINITY;
        let infinite = Error::NonFinite { argument, index: 1, value: f64::INFINITY };
        assert_eq!(settings.estimate(&columns[0], &columns[1], &columns[2]), Err(infinite));
    }
    let level = settings.estimate(&labels, &judge, &unlabelled).unwrap().mean.interval(1.0);
    assert_eq!(level, Err(Error::LevelOutOfRange { level: 1.0 }));
    let fixed = |lambda| PredictionPoweredMean { tuning: Tuning::Fixed(lambda) };
    let nan = fixed(f64::NAN).estimate(&labels, &judge, &unlabelled);
    assert!(matches!(nan, Err(Error::NonFinite { argument: "lambda", .. })));
    let constant = settings.estimate(&labels, &[3.0; 3], &[3.0; 4]);
    assert_eq!(constant, Err(Error::Constant { argument: "predictions", value: 3.0 }));
    assert_eq!(fixed(1.0).estimate(&labels, &[3.0; 3], &[3.0; 4]).unwrap().effective_sample_size, Some(3.0));
    let certain = fixed(1.0).estimate(&labels, &labels, &[3.0; 4]).unwrap();
    assert_eq!((certain.mean.estimate, certain.effective_sample_size), (3.0, None), "no variance is left");
    assert!(certain.mean.interval(0.95).unwrap_err().is_undefined() && certain.mean.p_value().is_err());
    let overflow = settings.estimate(&[f64::MAX, 0.0, f64::MAX], &judge, &unlabelled);
    assert!(matches!(overflow, Err(Error::Undefined { .. })));
}
