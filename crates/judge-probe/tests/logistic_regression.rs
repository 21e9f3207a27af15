//! Equality with scikit-learn 1.9.1 on the fixtures of `scripts/probe/logistic_regression_fixtures.py`.

use judge_probe::{ClassWeight, Classifier, FittedClassifier, FittedLogisticRegression, LogisticRegression, Matrix};
use serde::Deserialize;

#[derive(Deserialize)]
struct Fixture {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    seed: u64,
    n_features: usize,
    signal: f64,
    column_scales: Vec<f64>,
    every_tenth: f64,
    balanced: bool,
    fit_intercept: bool,
    /// Of `n_rows` rows to fit and some more.
    labels: Vec<i64>,
    n_rows: usize,
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

fn cases() -> Vec<Case> {
    let fixture: Fixture = serde_json::from_str(include_str!("fixtures/logistic_regression.json")).unwrap();
    assert_eq!(fixture.cases.len(), 14);
    fixture.cases
}

/// The script's `uniform`.
fn uniform(seed: u64, counter: u64) -> f64 {
    let mut z = seed.wrapping_add((counter + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    (z >> 11) as f64 / 2f64.powi(52) - 1.0
}

impl Case {
    /// The script's `features`: of the rows to fit, and of the others.
    fn features(&self) -> (Matrix, Matrix) {
        let value = |row: usize, feature: usize| {
            let mut value = uniform(self.seed, (row * self.n_features + feature) as u64);
            if feature % 5 == 0 {
                value += self.signal * self.labels[row] as f64;
            }
            value *= self.column_scales[feature % self.column_scales.len()];
            if row % 10 == 0 { value * self.every_tenth } else { value }
        };
        let rows = |range: std::ops::Range<usize>| {
            let values = range.flat_map(|row| (0..self.n_features).map(move |feature| value(row, feature))).collect();
            Matrix::new(values, self.n_features).unwrap()
        };
        (rows(0..self.n_rows), rows(self.n_rows..self.labels.len()))
    }

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
    fn objective(&self, features: &Matrix, fitted: &FittedLogisticRegression, c: f64) -> f64 {
        let labels = &self.labels[..self.n_rows];
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
                if self.balanced { self.n_rows as f64 / (fitted.classes().len() as f64 * count(label)) } else { 1.0 };
            loss += weight * (normaliser - own);
            sum += weight;
        }
        (loss + fitted.coefficients().values().iter().map(|w| w * w).sum::<f64>() / (2.0 * c)) / sum
    }

    fn check(&self, fitted: &FittedLogisticRegression, expected: &Expected, features: &Matrix, unseen: &Matrix) {
        let close = |name: &str, ours: &[f64], expected: &[f64], tolerance: f64| {
            assert_eq!(ours.len(), expected.len(), "{}: {name}", self.name);
            for (i, (ours, expected)) in ours.iter().zip(expected).enumerate() {
                let off = (ours - expected).abs() / expected.abs().max(1.0);
                assert!(off <= tolerance, "{}: {name}[{i}] is {ours}, expected {expected}", self.name);
            }
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
    for case in cases() {
        let (features, unseen) = case.features();
        for (settings, expected) in case.settings().iter().zip(&case.results) {
            let fitted = settings.fit(&features, &case.labels[..case.n_rows]).unwrap();
            case.check(&fitted, expected, &features, &unseen);
        }
    }
}

#[test]
fn settings_fitted_together_give_what_each_gives_alone() {
    for case in cases() {
        let (features, unseen) = case.features();
        let mut settings = case.settings();
        settings.reverse();
        settings.insert(1, LogisticRegression { c: -1.0, ..settings[0] });
        let mut together = LogisticRegression::fit_each(&settings, &features, &case.labels[..case.n_rows]);
        assert!(together.remove(1).is_err());
        for (fitted, expected) in together.iter().rev().zip(&case.results) {
            case.check(fitted.as_ref().unwrap(), expected, &features, &unseen);
        }
    }
}
