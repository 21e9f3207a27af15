//! Equality with scikit-learn 1.9.1 on the fixtures of `scripts/probe/logistic_regression_fixtures.py`.

use crate::fixtures::{assert_close, cases};
use crate::formula::Data;
use judge_probe::{
    ClassWeight, Estimator, FittedClassifier, FittedEstimator, LinearClassifier, LogisticRegression, Matrix,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(flatten)]
    data: Data,
    balanced: bool,
    fit_intercept: bool,
    results: Vec<Expected>,
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
        let class_weight = if self.balanced { ClassWeight::Balanced } else { ClassWeight::Uniform };
        let of = |expected: &Expected| LogisticRegression {
            c: expected.c,
            class_weight,
            fit_intercept: self.fit_intercept,
            ..LogisticRegression::default()
        };
        self.results.iter().map(of).collect()
    }

    /// As the documentation of [`LogisticRegression`] has it, from scratch.
    fn objective(&self, features: &Matrix, fitted: &LinearClassifier, c: f64) -> f64 {
        let labels = self.data.labels();
        let count = |label: &i64| labels.iter().filter(|other| *other == label).count() as f64;
        let (mut loss, mut sum) = (0.0, 0.0);
        for (row, label) in features.rows().zip(labels) {
            let dot = |w: &[f64]| w.iter().zip(row).map(|(w, x)| w * x).sum::<f64>();
            let mut logits: Vec<f64> =
                fitted.coefficients().rows().zip(fitted.intercepts()).map(|(w, b)| dot(w) + b).collect();
            if logits.len() == 1 {
                logits.insert(0, 0.0);
            }
            let greatest = logits.iter().copied().fold(f64::MIN, f64::max);
            let normaliser = greatest + logits.iter().map(|z| (z - greatest).exp()).sum::<f64>().ln();
            let own = logits[fitted.classes().binary_search(label).unwrap()];
            let weight =
                if self.balanced { labels.len() as f64 / (fitted.classes().len() as f64 * count(label)) } else { 1.0 };
            loss += weight * (normaliser - own);
            sum += weight;
        }
        (loss + fitted.coefficients().values().iter().map(|w| w * w).sum::<f64>() / (2.0 * c)) / sum
    }

    fn check(&self, fitted: &LinearClassifier, expected: &Expected, features: &Matrix, unseen: &Matrix) {
        let close = |name: &str, ours: &[f64], expected: &[f64], tolerance: f64| {
            assert_close(&format!("{}: {name}", self.name), ours, expected, tolerance);
        };
        let coefficients: Vec<f64> = fitted.coefficients().values().iter().copied().step_by(expected.stride).collect();
        close("coefficients", &coefficients, &expected.coefficients, 2e-6);
        close("intercepts", fitted.intercepts(), &expected.intercepts, 2e-6);
        close("objective", &[self.objective(features, fitted, expected.c)], &[expected.objective], 1e-10);
        assert_eq!(fitted.predict(features).unwrap(), expected.predicted, "{}", self.name);
        assert_eq!(fitted.predict(unseen).unwrap(), expected.unseen_predicted, "{}", self.name);
        let decision = fitted.decision_function(unseen).unwrap();
        close("decision", decision.values(), &expected.unseen_decision, 2e-6);
        let probabilities = fitted.predict_proba(unseen).unwrap().unwrap();
        close("probabilities", probabilities.values(), &expected.unseen_probabilities, 2e-6);
    }
}

#[test]
fn it_equals_scikit_learns() {
    for case in cases::<Case>("logistic_regression", 14) {
        let (features, unseen) = case.data.features();
        for (settings, expected) in case.settings().iter().zip(&case.results) {
            let fitted = settings.fit(&features, case.data.labels()).unwrap();
            case.check(&fitted, expected, &features, &unseen);
        }
    }
}

#[test]
fn settings_fitted_together_give_what_each_gives_alone() {
    for case in cases::<Case>("logistic_regression", 14) {
        let (features, unseen) = case.data.features();
        let mut settings = case.settings();
        settings.reverse();
        settings.insert(1, LogisticRegression { c: -1.0, ..settings[0] });
        let mut together = LogisticRegression::fit_each(&settings, &features, case.data.labels());
        assert!(together.remove(1).is_err());
        for (fitted, expected) in together.iter().rev().zip(&case.results) {
            case.check(fitted.as_ref().unwrap(), expected, &features, &unseen);
        }
    }
}
