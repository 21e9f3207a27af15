//! Equality with scikit-learn 1.9.1 on the fixtures of `scripts/probe/make_fixtures.py`.

use crate::fixtures::{cases, count, numbers};
use judge_probe::{Estimator, FittedEstimator, Matrix, Ridge, StandardScaler};
use serde_json::Value;

fn matrix(case: &Value, name: &str) -> Matrix {
    Matrix::new(numbers(&case[name]), count(&case["n_features"])).unwrap()
}

/// 1e-10 relative; numbers that are 0 but for rounding are compared on the scale of `unit`.
#[track_caller]
fn assert_close(case: &Value, name: &str, ours: &[f64], unit: f64) {
    let expected = numbers(&case[name]);
    assert_eq!(ours.len(), expected.len(), "{}: {name}", case["name"]);
    for (index, (ours, expected)) in ours.iter().zip(expected).enumerate() {
        let difference = (ours - expected).abs();
        let name = format!("{}: {name}[{index}]", case["name"]);
        assert!(difference <= 1e-10 * expected.abs() + 1e-14 * unit, "{name} is {ours:e}, expected {expected:e}");
    }
}

#[test]
fn standard_scaler_equals_scikit_learns() {
    for case in cases::<Value>("standard_scaler", 11) {
        let settings = StandardScaler {
            with_mean: case["with_mean"].as_bool().unwrap(),
            with_std: case["with_std"].as_bool().unwrap(),
        };
        let features = matrix(&case, "x");
        let scaler = settings.fit(&features).unwrap();
        assert_close(&case, "mean", scaler.mean(), 0.0);
        assert_close(&case, "scale", scaler.scale(), 0.0);
        // A deviation is as exact as the value it is taken from, seen through the scale.
        let unit = features.values().iter().fold(0.0, |unit: f64, value| unit.max(value.abs()))
            / scaler.scale().iter().fold(f64::INFINITY, |unit: f64, scale| unit.min(*scale));
        assert_close(&case, "transformed", scaler.transform(&features).unwrap().values(), unit);
        assert_close(&case, "unseen_transformed", scaler.transform(&matrix(&case, "unseen")).unwrap().values(), unit);
    }
}

#[test]
fn ridge_equals_scikit_learns() {
    for case in cases::<Value>("ridge", 14) {
        let settings =
            Ridge { alpha: case["alpha"].as_f64().unwrap(), fit_intercept: case["fit_intercept"].as_bool().unwrap() };
        let features = matrix(&case, "x");
        let ridge = settings.fit(&features, &numbers(&case["y"])).unwrap();
        assert_close(&case, "coefficients", ridge.coefficients(), 1.0);
        assert_close(&case, "intercept", &[ridge.intercept()], 10.0);
        assert_close(&case, "predicted", &ridge.predict(&features).unwrap(), 10.0);
    }
}
