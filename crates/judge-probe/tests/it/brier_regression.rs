//! Equality with scipy's minima on the fixtures of `scripts/probe/brier_regression_fixtures.py`.

use crate::fixtures::{assert_close, cases};
use crate::formula::Case;
use judge_probe::{
    BrierRegression, Error, Estimator, FittedClassifier, FittedEstimator, LogisticRegression, Matrix, Predictions,
    ProbabilityTable, Scorer, Scoring,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Expected {
    c: f64,
    objective: f64,
    unseen_probabilities: Vec<f64>,
}

#[test]
fn it_equals_the_minimum() {
    for case in cases::<Case<Expected>>("brier_regression", 7) {
        let (features, unseen) = case.data.features();
        let (labels, weights, class_weight) = (case.data.labels(), case.weights(), case.class_weight());
        let of = |expected: &Expected| BrierRegression { c: expected.c, class_weight, ..BrierRegression::default() };
        let settings: Vec<BrierRegression> = case.results.iter().map(of).collect();
        let together = BrierRegression::fit_each(&settings, &features, labels);
        for ((settings, expected), together) in settings.iter().zip(&case.results).zip(together) {
            let fitted = settings.fit(&features, labels).unwrap();
            assert_eq!(together.as_ref().map(|fitted| fitted.classes().to_vec()), Ok(fitted.classes().to_vec()));
            let close = |name: &str, ours: &[f64], expected: &[f64], tolerance: f64| {
                assert_close(&format!("{}, c {}: {name}", case.name, settings.c), ours, expected, tolerance);
            };
            let p = fitted.predict_proba(&unseen).unwrap().unwrap();
            close("probabilities", p.values(), &expected.unseen_probabilities, 1e-6);
            // The objective as the documentation has it, from scratch.
            let p = fitted.predict_proba(&features).unwrap().unwrap();
            let score = |((row, label), weight): ((&[f64], &i64), &f64)| -> f64 {
                let square = |(p, class): (&f64, &i64)| (p - f64::from(u8::from(class == label))).powi(2);
                let skipped = usize::from(row.len() == 2);
                weight * row.iter().zip(fitted.classes()).skip(skipped).map(square).sum::<f64>()
            };
            let scores: f64 = p.rows().zip(labels).zip(&weights).map(score).sum();
            let penalty: f64 = fitted.coefficients().values().iter().map(|w| w * w).sum::<f64>() / (2.0 * settings.c);
            close("objective", &[(scores + penalty) / weights.iter().sum::<f64>()], &[expected.objective], 1e-10);
        }
    }
}

/// Labels that are wrong far out pull the logarithm more.
#[test]
fn a_few_wrong_labels_move_it_less() {
    let features = Matrix::from_rows((0..60).map(|row| [f64::from(row) / 10.0 - 3.0])).unwrap();
    let mut labels: Vec<i64> = (0..60).map(|row| i64::from(row >= 30)).collect();
    (labels[58], labels[59]) = (0, 0);
    let at = Matrix::from_rows([[2.0]]).unwrap();
    let by_brier = BrierRegression { c: 100.0, ..BrierRegression::default() }.fit(&features, &labels).unwrap();
    let by_log = LogisticRegression { c: 100.0, ..LogisticRegression::default() }.fit(&features, &labels).unwrap();
    let p = |fitted: &dyn Fn(&Matrix) -> Option<Matrix>| fitted(&at).unwrap().values()[1];
    let (brier, log) = (p(&|at| by_brier.predict_proba(at).unwrap()), p(&|at| by_log.predict_proba(at).unwrap()));
    assert!(brier > log + 0.01, "{brier} {log}");
    let score = |predictions: Predictions<i64>| Scoring::NegBrierScore.score(&labels, &predictions).unwrap();
    assert!(score(by_brier.predictions(&features).unwrap()) > score(by_log.predictions(&features).unwrap()));
}

/// `sklearn.metrics.brier_score_loss(y, p, labels=…)` of scikit-learn 1.9.
#[test]
fn the_score_is_scikit_learns() {
    let of = |classes: Vec<i64>, truth: &[i64], rows: &[&[f64]]| {
        let n = classes.len();
        let table = ProbabilityTable::new(classes, Matrix::new(rows.concat(), n).unwrap()).unwrap();
        let labels = vec![truth[0]; truth.len()];
        Scoring::NegBrierScore.score(truth, &Predictions { labels, probabilities: Some(table) })
    };
    let two = of(vec![0, 1], &[1, 0, 1], &[&[0.2, 0.8], &[0.7, 0.3], &[0.9, 0.1]]).unwrap();
    assert!((two + (0.04 + 0.09 + 0.81) / 3.0).abs() < 1e-12);
    let three = of(vec![1, 2, 3], &[1, 3], &[&[0.5, 0.3, 0.2], &[0.1, 0.1, 0.8]]).unwrap();
    assert!((three + (0.25 + 0.09 + 0.04 + 0.01 + 0.01 + 0.04) / 2.0).abs() < 1e-12);
    let unlearnt = of(vec![1, 2], &[5], &[&[0.5, 0.5]]).unwrap();
    assert!((unlearnt + 1.5).abs() < 1e-12, "all of it is elsewhere: {unlearnt}");
    assert!(matches!(Scoring::NegBrierScore.score(&[1], &vec![1].into()), Err(Error::NoProbabilities { .. })));
}
