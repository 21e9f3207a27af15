//! Equality with scikit-learn 1.9.1 on the fixtures of `scripts/probe/logistic_regression_fixtures.py`.

use crate::fixtures::{assert_close, cases};
use crate::formula;
use judge_probe::{Estimator, FittedClassifier, FittedEstimator, LinearClassifier, LogisticRegression, Matrix};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    #[serde(flatten)]
    of: formula::Case<Expected>,
    fit_intercept: bool,
}

#[derive(Deserialize)]
struct Expected {
    c: f64,
    objective: f64,
    /// Of the coefficients, row by row, the file has every so manieth.
    stride: usize,
    coefficients: Vec<f64>,
    intercepts: Vec<f64>,
    predicted: Vec<i64>,
    unseen_decision: Vec<f64>,
    unseen_probabilities: Vec<f64>,
    unseen_predicted: Vec<i64>,
}

impl Case {
    fn settings(&self) -> Vec<LogisticRegression> {
        let of = |expected: &Expected| LogisticRegression {
            c: expected.c,
            class_weight: self.of.class_weight(),
            fit_intercept: self.fit_intercept,
            ..LogisticRegression::default()
        };
        self.of.results.iter().map(of).collect()
    }

    /// As the documentation of [`LogisticRegression`] has it, from scratch.
    fn objective(&self, features: &Matrix, fitted: &LinearClassifier, c: f64) -> f64 {
        let (mut loss, mut sum) = (0.0, 0.0);
        for ((row, label), weight) in features.rows().zip(self.of.data.labels()).zip(self.of.weights()) {
            let dot = |w: &[f64]| w.iter().zip(row).map(|(w, x)| w * x).sum::<f64>();
            let mut logits: Vec<f64> =
                fitted.coefficients().rows().zip(fitted.intercepts()).map(|(w, b)| dot(w) + b).collect();
            if logits.len() == 1 {
                logits.insert(0, 0.0);
            }
            let greatest = logits.iter().copied().fold(f64::MIN, f64::max);
            let normaliser = greatest + logits.iter().map(|z| (z - greatest).exp()).sum::<f64>().ln();
            let own = logits[fitted.classes().binary_search(label).unwrap()];
            loss += weight * (normaliser - own);
            sum += weight;
        }
        (loss + fitted.coefficients().values().iter().map(|w| w * w).sum::<f64>() / (2.0 * c)) / sum
    }

    fn check(&self, fitted: &LinearClassifier, expected: &Expected, features: &Matrix, unseen: &Matrix) {
        let close = |name: &str, ours: &[f64], expected: &[f64], tolerance: f64| {
            assert_close(&format!("{}: {name}", self.of.name), ours, expected, tolerance);
        };
        let coefficients: Vec<f64> = fitted.coefficients().values().iter().copied().step_by(expected.stride).collect();
        close("coefficients", &coefficients, &expected.coefficients, 2e-6);
        close("intercepts", fitted.intercepts(), &expected.intercepts, 2e-6);
        close("objective", &[self.objective(features, fitted, expected.c)], &[expected.objective], 1e-10);
        assert_eq!(fitted.predict(features).unwrap(), expected.predicted, "{}", self.of.name);
        assert_eq!(fitted.predict(unseen).unwrap(), expected.unseen_predicted, "{}", self.of.name);
        let decision = fitted.decision_function(unseen).unwrap();
        close("decision", decision.values(), &expected.unseen_decision, 2e-6);
        let probabilities = fitted.predict_proba(unseen).unwrap().unwrap();
        close("probabilities", probabilities.values(), &expected.unseen_probabilities, 2e-6);
    }
}

#[test]
fn it_equals_scikit_learns() {
    for case in cases::<Case>("logistic_regression", 14) {
        let (features, unseen) = case.of.data.features();
        for (settings, expected) in case.settings().iter().zip(&case.of.results) {
            let fitted = settings.fit(&features, case.of.data.labels()).unwrap();
            case.check(&fitted, expected, &features, &unseen);
        }
    }
}

#[test]
fn settings_fitted_together_give_what_each_gives_alone() {
    for case in cases::<Case>("logistic_regression", 14) {
        let (features, unseen) = case.of.data.features();
        let mut settings = case.settings();
        settings.reverse();
        settings.insert(1, LogisticRegression { c: -1.0, ..settings[0] });
        let mut together = LogisticRegression::fit_each(&settings, &features, case.of.data.labels());
        assert!(together.remove(1).is_err());
        for (fitted, expected) in together.iter().rev().zip(&case.of.results) {
            case.check(fitted.as_ref().unwrap(), expected, &features, &unseen);
        }
    }
}
