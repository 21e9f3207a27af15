//! Equality with statsmodels' ordered model, and with scipy's minimum where there is a penalty, on the fixtures of
//! `scripts/probe/ordinal_regression_fixtures.py`.

use crate::fixtures::{assert_close, cases};
use crate::formula::Case;
use judge_probe::{
    ClassWeight, DecisionRule, Error, Estimator, FittedClassifier, FittedEstimator, LinearClassifier,
    LogisticRegression, Matrix, OrdinalRegression,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Expected {
    /// `None` without a penalty.
    c: Option<f64>,
    objective: f64,
    /// Of the coefficients the file has every so manieth.
    stride: usize,
    coefficients: Vec<f64>,
    thresholds: Vec<f64>,
    predicted: Vec<i64>,
    unseen_probabilities: Vec<f64>,
    unseen_expected: Vec<f64>,
}

/// A penalty too weak to show in any digit compared.
const WITHOUT_PENALTY: f64 = 1e12;

impl Case<Expected> {
    fn settings(&self) -> Vec<OrdinalRegression> {
        let of = |expected: &Expected| OrdinalRegression {
            c: expected.c.unwrap_or(WITHOUT_PENALTY),
            class_weight: self.class_weight(),
            ..OrdinalRegression::default()
        };
        self.results.iter().map(of).collect()
    }

    /// As the documentation of [`OrdinalRegression`] has it, from scratch.
    fn objective(&self, features: &Matrix, fitted: &LinearClassifier, c: f64) -> f64 {
        let sigmoid = |z: f64| 1.0 / (1.0 + (-z).exp());
        let (mut loss, mut sum) = (0.0, 0.0);
        for ((row, label), weight) in features.rows().zip(self.data.labels()).zip(self.weights()) {
            let function: f64 = weights(fitted).iter().zip(row).map(|(w, x)| w * x).sum();
            let class = fitted.classes().binary_search(label).unwrap();
            let high = thresholds(fitted).get(class).map_or(f64::INFINITY, |threshold| threshold - function);
            let low = if class == 0 { f64::NEG_INFINITY } else { thresholds(fitted)[class - 1] - function };
            let p = if low > 0.0 { sigmoid(-low) - sigmoid(-high) } else { sigmoid(high) - sigmoid(low) };
            loss -= weight * p.ln();
            sum += weight;
        }
        (loss + weights(fitted).iter().map(|w| w * w).sum::<f64>() / (2.0 * c)) / sum
    }
}

/// The weight of each feature, which is the same in all functions.
fn weights(fitted: &LinearClassifier) -> &[f64] {
    fitted.coefficients().rows().next().unwrap()
}

/// Where the function passes from one class to the next.
fn thresholds(fitted: &LinearClassifier) -> Vec<f64> {
    fitted.intercepts().iter().map(|intercept| -intercept).collect()
}

#[test]
fn it_equals_the_optimum() {
    for case in cases::<Case<Expected>>("ordinal_regression", 9) {
        let close = |name: &str, ours: &[f64], expected: &[f64], tolerance: f64| {
            assert_close(&format!("{}: {name}", case.name), ours, expected, tolerance);
        };
        let (features, unseen) = case.data.features();
        let together = OrdinalRegression::fit_each(&case.settings(), &features, case.data.labels());
        for ((settings, expected), together) in case.settings().iter().zip(&case.results).zip(together) {
            let fitted = settings.fit(&features, case.data.labels()).unwrap();
            assert_eq!(together.as_ref(), Ok(&fitted));
            let coefficients: Vec<f64> = weights(&fitted).iter().copied().step_by(expected.stride).collect();
            close("coefficients", &coefficients, &expected.coefficients, 1e-6);
            close("thresholds", &thresholds(&fitted), &expected.thresholds, 1e-6);
            close("objective", &[case.objective(&features, &fitted, settings.c)], &[expected.objective], 1e-10);
            assert_eq!(fitted.predict(&features).unwrap(), expected.predicted, "{}", case.name);
            let probabilities = fitted.predict_proba(&unseen).unwrap().unwrap();
            close("probabilities", probabilities.values(), &expected.unseen_probabilities, 1e-6);
            let expected_classes = fitted.expected_classes(&unseen).unwrap().unwrap();
            close("expected classes", &expected_classes, &expected.unseen_expected, 1e-6);
            assert!(thresholds(&fitted).is_sorted_by(|a, b| a < b));
        }
    }
}

fn features() -> Matrix {
    Matrix::from_rows([[1.0, 0.3], [2.0, -0.4], [0.5, 0.9], [3.0, 0.1], [-1.0, 0.0], [0.2, -0.7]]).unwrap()
}

#[test]
fn of_two_classes_it_is_logistic_regression() {
    let labels = [0, 1, 0, 1, 0, 1];
    for class_weight in [ClassWeight::Uniform, ClassWeight::Balanced] {
        let ordinal = OrdinalRegression { c: 2.0, class_weight, ..OrdinalRegression::default() };
        let logistic = LogisticRegression { c: 2.0, class_weight, ..LogisticRegression::default() };
        let ordinal = ordinal.fit(&features(), &labels).unwrap();
        let logistic = logistic.fit(&features(), &labels).unwrap();
        let decisions =
            [ordinal.decision_function(&features()).unwrap(), logistic.decision_function(&features()).unwrap()];
        assert_eq!(decisions[0].n_features(), 1);
        for (ours, theirs) in decisions[0].values().iter().zip(decisions[1].values()) {
            assert!((ours - theirs).abs() < 1e-9);
        }
    }
}

#[test]
fn scores_turned_round_turn_the_probabilities_round() {
    let labels = [1, 4, 2, 5, 1, 4];
    let fitted = OrdinalRegression::default().fit(&features(), &labels).unwrap();
    let turned = OrdinalRegression::default().fit(&features(), &labels.map(|label| -label)).unwrap();
    let (ours, turned) = (fitted.predict_proba(&features()).unwrap(), turned.predict_proba(&features()).unwrap());
    for (ours, turned) in ours.unwrap().rows().zip(turned.unwrap().rows()) {
        for (ours, turned) in ours.iter().zip(turned.iter().rev()) {
            assert!((ours - turned).abs() < 1e-9);
        }
    }
}

#[test]
fn probabilities_far_out_are_still_probabilities() {
    let fitted = OrdinalRegression::default().fit(&features(), &[1, 4, 2, 5, 1, 4]).unwrap();
    let far = Matrix::from_rows([[1e9, 0.0], [-1e9, 0.0], [1e300, 0.0]]).unwrap();
    assert_eq!(fitted.predict(&far).unwrap(), [5, 1, 5]);
    for row in fitted.predict_proba(&far).unwrap().unwrap().rows() {
        assert_eq!(row.iter().sum::<f64>(), 1.0);
    }
    assert_eq!(fitted.expected_classes(&far).unwrap().unwrap(), [5.0, 1.0, 5.0]);
    assert_eq!(fitted.decision_function(&far).unwrap().n_features(), 4);
}

#[test]
fn functions_that_cross_are_refused() {
    let parts = |coefficients: [f64; 2], intercepts: [f64; 2]| {
        let coefficients = Matrix::new(coefficients.to_vec(), 1).unwrap();
        LinearClassifier::from_parts(DecisionRule::Cumulative, vec![1, 2, 3], coefficients, intercepts.to_vec())
    };
    assert!(parts([1.0, 1.0], [1.0, -1.0]).is_ok());
    assert_eq!(parts([1.0, 2.0], [1.0, -1.0]), Err(Error::CumulativeFunctions { first: 0 }));
    assert_eq!(parts([1.0, 1.0], [1.0, 1.0]), Err(Error::CumulativeFunctions { first: 0 }));
}
