//! The debiased squared calibration error against the program of its authors (`scripts/metrics/debiased_fixtures.py`), what it refuses, and
//! how much less than the plain one it depends on chance.

use judge_metrics::calibration::{Binning, ReliabilityCurve};
use serde_json::Value;

use crate::draw::Draw;
use crate::fixtures::{count, fixture, flags, list, numbers};

#[track_caller]
fn close(ours: f64, expected: &Value) {
    let expected = expected.as_f64().unwrap();
    assert!((ours - expected).abs() <= 1e-12 * expected.abs() + 1e-16, "{ours}, not {expected}");
}

#[test]
fn debiased_errors_equal_the_authors() {
    let fixture = fixture("debiased_calibration");
    let cases = list(&fixture["cases"]);
    assert!(cases.len() >= 6);
    for case in cases {
        let outcomes = flags(&case["outcomes"]);
        let bins = count(&case["bins"]);
        let binning = if case["kind"] == "mass" { Binning::EqualMass { bins } } else { Binning::EqualWidth { bins } };
        let curve = ReliabilityCurve::new(&outcomes, &numbers(&case["probabilities"]), binning).unwrap();
        let squares: f64 = curve.bins.iter().map(|bin| bin.gap().powi(2) * bin.count as f64).sum();
        close(squares / curve.n as f64, &case["plain"]);
        let debiased = curve.debiased_squared_error().unwrap();
        close(debiased.estimate, &case["debiased"]);
        close(debiased.standard_error().unwrap(), &case["se"]);
        assert_eq!(debiased.n, outcomes.len());
        let interval = debiased.interval(0.95).unwrap();
        assert!(interval.low <= debiased.estimate && debiased.estimate < interval.high);
        assert!(interval.low >= 0.0 || interval.low == debiased.estimate);
    }
}

#[test]
fn a_bin_of_one_item_and_bins_of_one_outcome_say_too_little() {
    let single =
        ReliabilityCurve::new(&[true, false, true], &[0.2, 0.3, 0.9], Binning::EqualWidth { bins: 2 }).unwrap();
    let error = single.debiased_squared_error().unwrap_err();
    assert!(error.is_undefined() && error.to_string().contains("fewer bins"), "{error}");
    let pure = ReliabilityCurve::new(&[true, true], &[0.9, 0.7], Binning::EqualWidth { bins: 1 }).unwrap();
    let pure = pure.debiased_squared_error().unwrap();
    assert!((pure.estimate - 0.04).abs() < 1e-15 && pure.interval(0.95).unwrap_err().is_undefined());
}

/// Confidences uniform on [½, 1], in 10 bins of equal mass. Of a calibrated judge the plain error is far above 0 and the debiased one is
/// not; of one that is right in 10 % fewer cases than it says, the interval holds the true error.
#[test]
fn chance_adds_nothing_to_a_debiased_error() {
    const RUNS: u64 = 400;
    const N: usize = 200;
    for excess in [0.0, 0.1] {
        let (mut plain, mut debiased, mut covered) = (0.0, 0.0, 0);
        for run in 0..RUNS {
            let mut draw = Draw::new(run);
            let (outcomes, confidences): (Vec<bool>, Vec<f64>) = (0..N)
                .map(|_| {
                    let confidence = 0.5 + draw.uniform() / 2.0;
                    (draw.uniform() < confidence - excess, confidence)
                })
                .unzip();
            let curve = ReliabilityCurve::new(&outcomes, &confidences, Binning::EqualMass { bins: 10 }).unwrap();
            plain += curve.bins.iter().map(|bin| bin.gap().powi(2) * bin.count as f64).sum::<f64>() / N as f64;
            let found = curve.debiased_squared_error().unwrap();
            debiased += found.estimate;
            let interval = found.interval(0.95).unwrap();
            covered += usize::from(interval.low <= excess * excess && excess * excess <= interval.high);
        }
        let runs = RUNS as f64;
        let (plain, debiased, covered) = (plain / runs, debiased / runs, covered as f64 / runs);
        let truth = excess * excess;
        assert!((debiased - truth).abs() < 0.001, "{excess}: {debiased}");
        assert!(plain - truth > 0.007, "{excess}: {plain}");
        // Of a calibrated judge the error is at the end of its range, and the interval is wider than it need be.
        assert!(covered > 0.91 && (excess == 0.0 || covered < 0.99), "{excess}: {covered}");
    }
}
