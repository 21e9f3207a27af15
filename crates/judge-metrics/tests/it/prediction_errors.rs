//! What the statistics of `prediction` refuse, and that the error says where.

use judge_metrics::means::sample_mean;
use judge_metrics::prediction::{
    auroc, auroc_difference, average_precision, bias, bias_in_words, brier_score, jensen_shannon_divergence,
    kl_divergence, log_loss, mean_absolute_error, precision_recall_curve, root_mean_squared_error, smoothed,
    total_variation,
};
use judge_metrics::{Error, Estimate};

type Columns = fn(&[f64], &[f64]) -> Result<f64, Error>;
type Scores = fn(&[bool], &[f64]) -> Result<f64, Error>;

#[test]
fn a_bias_has_two_digits_in_words() {
    for (bias, size) in [
        (1234.5, "1234"),
        (99.6, "100"),
        (9.97, "10"),
        (9.94, "9.9"),
        (0.996, "1.0"),
        (0.0995, "0.10"),
        (0.001, "0.0010"),
        (0.000_012_3, "0.000012"),
        (1.04e-14, "1e-14"),
        (4e300, "4e300"),
    ] {
        assert_eq!(bias_in_words(bias), format!("on average {size} higher than people's"));
        assert_eq!(bias_in_words(-bias), format!("on average {size} lower than people's"));
    }
}

#[test]
fn errors_refuse_unusable_columns() {
    let statistics = [mean_absolute_error, bias, root_mean_squared_error]
        .map(|of| of as fn(&[f64], &[f64]) -> Result<Estimate, Error>);
    for statistic in statistics {
        let statistic = |observed: &[f64], predicted: &[f64]| Ok(statistic(observed, predicted)?.estimate);
        assert_eq!(statistic(&[], &[]), Err(Error::TooFewItems { required: 1, found: 0 }));
        let lengths = Error::LengthMismatch { argument: "predicted", found: 1, other: "observed", expected: 2 };
        assert_eq!(statistic(&[1.0, 2.0], &[1.0]), Err(lengths));
        let infinite = Error::NonFinite { argument: "predicted", index: 1, value: f64::INFINITY };
        assert_eq!(statistic(&[1.0, 2.0], &[1.0, f64::INFINITY]), Err(infinite));
        let nan = statistic(&[f64::NAN], &[1.0]);
        assert!(matches!(nan, Err(Error::NonFinite { argument: "observed", index: 0, .. })));
        assert!(
            matches!(statistic(&[f64::MAX], &[-f64::MAX]), Err(Error::Undefined { .. })),
            "the difference overflows"
        );
        assert_eq!(statistic(&[7.0; 4], &[7.0; 4]), Ok(0.0));
    }
    // No error at all, and errors whose squares are no numbers.
    let none = root_mean_squared_error(&[7.0; 4], &[7.0; 4]).unwrap();
    assert!(none.interval(0.95).unwrap_err().is_undefined() && none.standard_error() == Ok(0.0));
    let [plain, large, small] = [1.0, 1e200, 1e-200].map(|unit| {
        let error = root_mean_squared_error(&[0.0, 0.0, 0.0], &[unit, -2.0 * unit, 4.0 * unit]).unwrap();
        (error.estimate / unit, error.standard_error().unwrap() / unit, error.interval(0.9).unwrap().high / unit)
    });
    for (a, b) in [(large, plain), (small, plain)] {
        assert!((a.0 - b.0).abs() < 1e-14 && (a.1 - b.1).abs() < 1e-14 && (a.2 - b.2).abs() < 1e-13, "{a:?}, {b:?}");
    }
    assert_eq!(sample_mean(&[]), Err(Error::TooFewItems { required: 1, found: 0 }));
    assert!(matches!(sample_mean(&[f64::MAX, f64::MAX, 0.0]), Err(Error::Undefined { .. })));
    let mean = sample_mean(&[1.0, 2.0]).unwrap();
    for level in [0.0, 1.0, 95.0, -1.0] {
        assert_eq!(mean.interval(level), Err(Error::LevelOutOfRange { level }));
    }
    assert!(matches!(mean.interval(f64::NAN), Err(Error::LevelOutOfRange { .. })));
    assert!(sample_mean(&[3.0; 5]).unwrap().interval(0.95).unwrap_err().is_undefined());
}

#[test]
fn what_is_no_distribution_is_refused() {
    let half = [0.5, 0.5];
    let statistics: [Columns; 3] = [kl_divergence, jensen_shannon_divergence, total_variation];
    for statistic in statistics {
        assert_eq!(statistic(&[], &[]), Err(Error::TooFewItems { required: 1, found: 0 }));
        let lengths = Error::LengthMismatch { argument: "q", found: 1, other: "p", expected: 2 };
        assert_eq!(statistic(&half, &[1.0]), Err(lengths));
        assert_eq!(statistic(&half, &[0.5, 0.25]), Err(Error::NotADistribution { argument: "q", sum: 0.75 }));
        assert_eq!(statistic(&[0.0, 0.0], &half), Err(Error::NotADistribution { argument: "p", sum: 0.0 }));
        let negative = Error::OutOfRange { argument: "p", index: Some(1), value: -0.5, low: 0.0, high: 1.0 };
        assert_eq!(statistic(&[1.5 - 0.5, -0.5], &half), Err(negative));
        let large = Error::OutOfRange { argument: "q", index: Some(0), value: 1.5, low: 0.0, high: 1.0 };
        assert_eq!(statistic(&half, &[1.5, 0.5]), Err(large));
        let nan = statistic(&half, &[0.5, f64::NAN]);
        assert!(matches!(nan, Err(Error::NonFinite { argument: "q", index: 1, .. })));
        // Softmax in single precision.
        assert!(statistic(&half, &[0.5 + 1e-7, 0.5]).is_ok());
        assert_eq!(statistic(&[1.0 + 1e-7], &[1.0]), Ok(0.0));
    }
    assert_eq!(
        kl_divergence(&half, &[0.0, 1.0]),
        Err(Error::Undefined { statistic: "KL divergence", reason: "q is 0 where p is not" })
    );
    for pseudo in [-0.1, f64::INFINITY, f64::NAN] {
        assert!(matches!(smoothed(&half, pseudo), Err(Error::OutOfRange { argument: "pseudo", .. })));
    }
    assert_eq!(smoothed(&[1.0, 0.0], 0.5), Ok(vec![0.75, 0.25]));
}

#[test]
fn probabilities_of_one_event_are_checked() {
    let scores: [Scores; 2] =
        [|o, p| Ok(brier_score(o, p)?.estimate), |o, p| Ok(log_loss(o, p, f64::EPSILON)?.estimate)];
    for score in scores {
        assert_eq!(score(&[], &[]), Err(Error::TooFewItems { required: 1, found: 0 }));
        let lengths = Error::LengthMismatch { argument: "probabilities", found: 1, other: "outcomes", expected: 2 };
        assert_eq!(score(&[true, false], &[0.5]), Err(lengths));
        let large = Error::OutOfRange { argument: "probabilities", index: Some(1), value: 1.5, low: 0.0, high: 1.0 };
        assert_eq!(score(&[true, false], &[0.5, 1.5]), Err(large));
        let nan = score(&[true], &[f64::NAN]);
        assert!(matches!(nan, Err(Error::NonFinite { argument: "probabilities", index: 0, .. })));
    }
    for clip in [-0.1, 0.5, f64::INFINITY] {
        assert!(matches!(log_loss(&[true], &[0.5], clip), Err(Error::OutOfRange { argument: "clip", .. })));
    }
    assert!(matches!(log_loss(&[true], &[0.5], f64::NAN), Err(Error::OutOfRange { .. })));
    for (outcome, p) in [(true, 0.0), (false, 1.0)] {
        assert!(log_loss(&[outcome], &[p], 0.0).unwrap_err().is_undefined(), "an infinite loss");
        assert_eq!(log_loss(&[!outcome], &[p], 0.0).unwrap().estimate, 0.0);
    }
}

#[test]
fn areas_need_both_outcomes() {
    for alike in [[true, true], [false, false]] {
        assert!(auroc(&alike, &[1.0, 2.0]).unwrap_err().is_undefined());
    }
    assert!(matches!(auroc(&[], &[]), Err(Error::TooFewItems { found: 0, .. })));
    let lengths = Error::LengthMismatch { argument: "scores", found: 1, other: "outcomes", expected: 2 };
    assert_eq!(auroc(&[true, false], &[1.0]), Err(lengths));
    let infinite = Error::NonFinite { argument: "scores", index: 0, value: f64::NEG_INFINITY };
    assert_eq!(auroc(&[true, false], &[f64::NEG_INFINITY, 1.0]), Err(infinite));
    assert!(average_precision(&[false, false], &[1.0, 2.0]).unwrap_err().is_undefined());
    assert!(average_precision(&[true, true], &[1.0, 2.0]).unwrap_err().is_undefined(), "any scores reach 1");
    assert_eq!(precision_recall_curve(&[], &[]), Err(Error::TooFewItems { required: 1, found: 0 }));

    let few = auroc(&[true, false, false], &[1.0, 2.0, 0.0]).unwrap();
    assert_eq!((few.standard_error(), few.n), (Err(Error::TooFewItems { required: 2, found: 1 }), 3));
    assert_eq!(few.interval(0.95), Err(Error::TooFewItems { required: 2, found: 1 }));
    let outcomes = [true, true, false, false];
    let ours = auroc(&outcomes, &[1.0, 4.0, 2.0, 3.0]).unwrap();
    assert_eq!(ours.interval(1.0), Err(Error::LevelOutOfRange { level: 1.0 }));
    let apart = auroc(&outcomes, &[4.0, 4.0, 2.0, 3.0]).unwrap();
    assert!(apart.interval(0.95).unwrap_err().is_undefined(), "nothing varies");
    assert_eq!(apart.standard_error(), Ok(0.0));
    let twice = auroc_difference(&outcomes, &[1.0, 4.0, 2.0, 3.0], &[10.0, 40.0, 20.0, 30.0]);
    assert_eq!(
        twice.as_ref().map(|twice| (twice.estimate, twice.p_value())),
        Ok((0.0, Ok(1.0))),
        "the same order twice"
    );
    assert!(twice.unwrap().interval(0.95).unwrap_err().is_undefined());
    let few = auroc_difference(&[true, false, false], &[1.0, 2.0, 0.0], &[1.0, 2.0, 3.0]);
    assert_eq!(few, Err(Error::TooFewItems { required: 2, found: 1 }));
    let second = auroc_difference(&outcomes, &[1.0; 4], &[1.0; 3]);
    assert_eq!(second, Err(Error::LengthMismatch { argument: "second", found: 3, other: "outcomes", expected: 4 }));
}
