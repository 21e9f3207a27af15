//! The mean of clustered items against statsmodels (`scripts/metrics/clustered_fixtures.py`).

use judge_metrics::Error;
use judge_metrics::means::{clustered_mean, clustered_share, sample_mean};

use crate::fixtures::{counts, fixture, list, numbers};

#[test]
fn it_equals_statsmodels() {
    let fixture = fixture("clustered");
    for case in list(&fixture["cases"]) {
        let (values, groups) = (numbers(&case["values"]), counts(&case["groups"]));
        let mean = clustered_mean(&values, &groups).unwrap();
        let interval = mean.interval(0.95).unwrap();
        for (ours, name) in [
            (mean.estimate, "mean"),
            (mean.standard_error().unwrap(), "se"),
            (interval.low, "low"),
            (interval.high, "high"),
        ] {
            let expected = case[name].as_f64().unwrap();
            let scale = case["se"].as_f64().unwrap();
            assert!((ours - expected).abs() <= 1e-10 * scale, "{name}: {ours}, not {expected}");
        }
    }
}

#[test]
fn a_cluster_for_each_item_is_the_plain_mean() {
    let values = [1.0, 4.0, 2.5, 3.0, 0.5];
    let (clustered, plain) = (clustered_mean(&values, &[5, 4, 3, 2, 1]).unwrap(), sample_mean(&values).unwrap());
    assert!((clustered.standard_error().unwrap() - plain.standard_error().unwrap()).abs() < 1e-15);
    let (ours, theirs) = (clustered.interval(0.9).unwrap(), plain.interval(0.9).unwrap());
    assert!((ours.low - theirs.low).abs() < 1e-14 && (ours.high - theirs.high).abs() < 1e-14);
    // Items that stand twice say no more than once.
    let twice: Vec<f64> = values.iter().flat_map(|x| [*x, *x]).collect();
    let groups: Vec<usize> = (0..10).map(|row| row / 2).collect();
    let doubled = clustered_mean(&twice, &groups).unwrap();
    assert!((doubled.standard_error().unwrap() - clustered.standard_error().unwrap()).abs() < 1e-15);
    assert_eq!(doubled.n, 10);
    // Student's test that the mean is 0, with four degrees of freedom.
    assert!((doubled.p_value().unwrap() - plain.p_value().unwrap()).abs() < 1e-14);
    // A share cannot be below 0, and is not tested for 0.
    let share = clustered_share(&[true, false, true, true], &["a", "a", "b", "b"]).unwrap();
    assert!(share.p_value().unwrap_err().is_undefined() && doubled.within([0.0, 5.0]).p_value().is_err(), "{share:?}");
}

#[test]
fn bad_input_is_refused() {
    let one = clustered_mean(&[1.0, 2.0], &[1, 1]).unwrap_err();
    assert_eq!(one.to_string(), "2 clusters or more are needed, found 1");
    let none = Error::TooFewItems { required: 1, found: 0 };
    assert_eq!(none.to_string(), "1 item or more is needed, found 0");
    assert_eq!(clustered_mean(&[1.0], &[1]), Err(Error::TooFewItems { required: 2, found: 1 }));
    assert!(matches!(clustered_mean(&[1.0, 2.0], &[1]), Err(Error::LengthMismatch { .. })));
    assert!(matches!(clustered_mean(&[1.0, f64::NAN], &[1, 2]), Err(Error::NonFinite { .. })));
    assert!(clustered_mean(&[f64::MAX, f64::MAX], &[1, 2]).unwrap_err().is_undefined());
    assert!(matches!(clustered_mean(&[1.0, 2.0], &[1, 2]).unwrap().interval(1.0), Err(Error::LevelOutOfRange { .. })));
}
