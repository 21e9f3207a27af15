//! Equality with scikit-learn 1.9.1, MAPIE 1.5.0, ppi-python 0.2.3 and definitions on `fixtures/calibration.json`, made
//! by `scripts/metrics/calibration_fixtures.py`, which names the function behind each number.

use judge_metrics::Interval;
use judge_metrics::calibration::{
    Binning, Direction, IsotonicRegression, OrdinalConformal, ReliabilityCurve, SplitConformal,
};
use judge_metrics::means::{PredictionPoweredMean, Tuning};
use serde_json::Value;

use crate::fixtures::{cases, count, counts, flags, list, numbers};

fn table(rows: &Value) -> Vec<Vec<f64>> {
    list(rows).iter().map(numbers).collect()
}

/// 1e-10 relative; `floor` is what the arithmetic loses where a result is small beside what it is made of.
#[track_caller]
fn assert_close(case: &Value, what: &str, ours: f64, expected: f64, floor: f64) {
    let close = (ours - expected).abs() <= 1e-10 * expected.abs() + floor;
    assert!(close, "{}: {what} is {ours:e}, expected {expected:e}", case["name"]);
}

#[test]
fn reliability_curves_equal_sklearns() {
    for case in cases("calibration", "reliability", 7) {
        let outcomes = flags(&case["outcomes"]);
        let probabilities = numbers(&case["probabilities"]);
        for expected in list(&case["curves"]) {
            let bins = count(&expected["bins"]);
            let width = expected["kind"] == "width";
            let binning = if width { Binning::EqualWidth { bins } } else { Binning::EqualMass { bins } };
            let curve = ReliabilityCurve::new(&outcomes, &probabilities, binning).unwrap();
            assert_eq!(curve.bins.iter().map(|bin| bin.count).collect::<Vec<_>>(), counts(&expected["counts"]));
            let (accuracy, confidence) = (numbers(&expected["accuracy"]), numbers(&expected["confidence"]));
            for ((bin, accuracy), confidence) in curve.bins.iter().zip(accuracy).zip(confidence) {
                assert_close(&case, "accuracy", bin.accuracy(), accuracy, 0.0);
                assert_close(&case, "confidence", bin.confidence, confidence, 0.0);
                assert!(bin.low <= confidence + 1e-15 && confidence <= bin.high + 1e-15);
            }
            let (ece, mce) = (expected["ece"].as_f64().unwrap(), expected["mce"].as_f64().unwrap());
            assert_close(&case, "ECE", curve.expected_calibration_error(), ece, 1e-16);
            assert_close(&case, "maximum", curve.maximum_calibration_error(), mce, 1e-16);
            assert_eq!(curve.n, outcomes.len());
        }
    }
}

#[test]
fn isotonic_fits_equal_sklearns() {
    for case in cases("calibration", "isotonic", 12) {
        let [x, y, weights, at] = ["x", "y", "weights", "at"].map(|key| numbers(&case[key]));
        for expected in list(&case["fits"]) {
            let bounded = expected["bounded"].as_bool().unwrap();
            let bound = |i: usize| bounded.then(|| case["bounds"][i].as_f64().unwrap());
            let direction = match expected["direction"].as_str().unwrap() {
                "increasing" => Direction::Increasing,
                "decreasing" => Direction::Decreasing,
                _ => Direction::Auto,
            };
            let settings = IsotonicRegression { direction, y_min: bound(0), y_max: bound(1) };
            let fitted = settings.fit_weighted(&x, &y, &weights).unwrap();
            for (ours, expected) in fitted.predict(&at).unwrap().into_iter().zip(numbers(&expected["predicted"])) {
                assert_close(&case, "prediction", ours, expected, 1e-15);
            }
            assert!(fitted.x_thresholds().is_sorted_by(|a, b| a < b));
            let flat = fitted.y_thresholds().windows(2).all(|pair| pair[0] == pair[1]);
            assert!(flat || fitted.is_increasing() == expected["increasing"].as_bool().unwrap());
            if weights.iter().all(|&weight| weight == 1.0) {
                assert_eq!(settings.fit(&x, &y), Ok(fitted));
            }
        }
    }
}

#[test]
fn conformal_intervals_equal_mapies() {
    let mut by_mapie = 0;
    for case in cases("calibration", "split", 10) {
        let [predicted, observed] = ["predicted", "observed"].map(|key| numbers(&case[key]));
        let level = case["level"].as_f64().unwrap();
        let fitted = SplitConformal { level }.fit(&observed, &predicted).unwrap();
        assert_close(&case, "radius", fitted.radius, case["radius"].as_f64().unwrap(), 0.0);
        assert_eq!((fitted.level, fitted.n), (level, predicted.len()));
        if let Some(interval) = case.get("mapie") {
            let ours = fitted.interval(0.0).unwrap();
            let [low, high] = [0, 1].map(|i| interval[i].as_f64().unwrap());
            assert_eq!(ours, Interval { low, high, level });
            by_mapie += 1;
        }
    }
    assert!(by_mapie >= 7, "{by_mapie}");
}

#[test]
fn ordinal_sets_are_those_of_lu_et_al() {
    for case in cases("calibration", "ordinal", 6) {
        let level = case["level"].as_f64().unwrap();
        let fitted =
            OrdinalConformal { level }.fit(&counts(&case["observed"]), &table(&case["distributions"])).unwrap();
        assert_close(&case, "threshold", fitted.threshold, case["threshold"].as_f64().unwrap(), 1e-15);
        for (row, expected) in table(&case["new"]).iter().zip(list(&case["sets"])) {
            let set = fitted.set(row).unwrap();
            assert_eq!([set.low, set.high], counts(expected)[..], "{}", case["name"]);
            let mass: f64 = row[set.low..=set.high].iter().sum();
            assert!((set.probability - mass).abs() < 1e-15 && set.size() == set.high - set.low + 1);
        }
    }
}

#[test]
fn prediction_powered_means_equal_ppi_pythons_with_welchs_interval() {
    for case in cases("calibration", "powered", 9) {
        let [labels, predictions, unlabelled] = ["labels", "predictions", "unlabelled"].map(|key| numbers(&case[key]));
        for expected in list(&case["results"]) {
            let level = expected["level"].as_f64().unwrap();
            let tuning = expected["fixed"].as_f64().map_or(Tuning::Optimal, Tuning::Fixed);
            let ours = PredictionPoweredMean { tuning }.estimate(&labels, &predictions, &unlabelled).unwrap();
            // Estimates are differences of means: what those lose is theirs.
            let largest = labels.iter().chain(&predictions).fold(0.0, |a: f64, b| a.max(b.abs()));
            let close = |what: &str, ours: f64, key: &str| {
                assert_close(&case, what, ours, expected[key].as_f64().unwrap(), 1e-15 * largest);
            };
            let interval = ours.mean.interval(level).unwrap();
            close("estimate", ours.mean.estimate, "estimate");
            close("low", interval.low, "low");
            close("high", interval.high, "high");
            if tuning == Tuning::Optimal {
                assert_close(&case, "lambda", ours.lambda, expected["lambda"].as_f64().unwrap(), 0.0);
            }
            let classical = ours.classical.interval(level).map(|interval| [interval.low, interval.high]).unwrap();
            for (ours, expected) in classical.into_iter().zip(numbers(&expected["classical"])) {
                assert_close(&case, "classical", ours, expected, 1e-15 * largest);
            }
        }
    }
}
