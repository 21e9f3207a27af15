//! Equality with scikit-learn 1.9.1 on the fixtures of `scripts/probe/linear_svc_fixtures.py`, but for intercepts that rounding decides
//! there.

use crate::fixtures::{assert_close, cases};
use crate::formula;
use judge_probe::{
    ClassWeight, DecisionRule, Estimator, FittedClassifier, FittedEstimator, LinearClassifier, LinearKernelSvc, Matrix,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    #[serde(flatten)]
    of: formula::Case<Expected>,
    /// Of libsvm's results, which it optimises by products in single precision.
    tolerance: f64,
}

#[derive(Deserialize)]
struct Expected {
    c: f64,
    /// Of the coefficients, row by row, the file has every so manieth.
    stride: usize,
    coefficients: Vec<f64>,
    intercepts: Vec<f64>,
    predicted: Vec<i64>,
    unseen_decision: Vec<f64>,
    unseen_predicted: Vec<i64>,
}

#[test]
fn it_equals_scikit_learns() {
    for Case { of: case, tolerance } in cases("linear_svc", 10) {
        let (features, unseen) = case.data.features();
        let class_weight = case.class_weight();
        let settings: Vec<LinearKernelSvc> = case
            .results
            .iter()
            .map(|expected| LinearKernelSvc { c: expected.c, class_weight, tol: 1e-10, ..LinearKernelSvc::default() })
            .collect();
        let together = LinearKernelSvc::fit_each(&settings, &features, case.data.labels());
        for ((settings, expected), fitted) in settings.iter().zip(&case.results).zip(together) {
            let fitted = fitted.unwrap();
            assert_eq!(fitted, settings.fit(&features, case.data.labels()).unwrap());

            let close = |name: &str, ours: Vec<f64>, expected: &[f64]| {
                assert_close(&format!("{}, c {}: {name}", case.name, settings.c), &ours, expected, tolerance);
            };
            // scikit-learn negates the one function of two classes.
            let sign = if fitted.classes().len() == 2 { -1.0 } else { 1.0 };
            let coefficients = fitted.coefficients().values().iter().step_by(expected.stride);
            close("coefficients", coefficients.map(|value| sign * value).collect(), &expected.coefficients);
            let intercepts = fitted.intercepts().iter();
            close("intercepts", intercepts.map(|value| sign * value).collect(), &expected.intercepts);
            close("decision", fitted.decision_function(&unseen).unwrap().values().to_vec(), &expected.unseen_decision);
            assert_eq!(fitted.predict(&features).unwrap(), expected.predicted, "{}", case.name);
            assert_eq!(fitted.predict(&unseen).unwrap(), expected.unseen_predicted, "{}", case.name);
            assert_eq!(fitted.predict_proba(&unseen).unwrap(), None);
        }
    }
}

/// With balanced weights and a small c all multipliers are at their bounds, up to the rounding of the weights, which decided the intercept.
#[test]
fn an_intercept_that_no_row_decides_is_the_middle_of_its_interval() {
    let svc = LinearKernelSvc { c: 0.001, class_weight: ClassWeight::Balanced, ..LinearKernelSvc::default() };
    for (first, second) in (3..12).flat_map(|first| (3..12).map(move |second| (first, second))) {
        let value =
            |i: usize| (((i * 7_919 + first * 104_729 + second * 1_299_709) % 1_009) as f64 / 504.5 - 1.0) * 2.0;
        let labels: Vec<i64> = (0..first + second).map(|row| i64::from(row >= first)).collect();
        let row =
            |row: usize| (0..8).map(move |feature| value(row * 8 + feature) + if row < first { 0.5 } else { 0.0 });
        let features = Matrix::new((0..first + second).flat_map(row).collect(), 8).unwrap();
        let fitted = svc.fit(&features, &labels).unwrap();
        let of_row = |(row, label): (&[f64], &i64)| {
            let product: f64 = row.iter().zip(fitted.coefficients().values()).map(|(x, w)| x * w).sum();
            (*label, if *label == 0 { 1.0 - product } else { -1.0 - product })
        };
        let (mut least, mut most) = (f64::NEG_INFINITY, f64::INFINITY);
        for (label, intercept) in features.rows().zip(&labels).map(of_row) {
            match label {
                0 => most = intercept.min(most),
                _ => least = intercept.max(least),
            }
        }
        let (found, middle) = (fitted.intercepts()[0], f64::midpoint(least, most));
        assert!(
            (found - middle).abs() < 1e-9,
            "{first} and {second} rows: {found}, not in the middle of {least} and {most}"
        );
    }
}

/// Each of three classes wins once: the first is predicted, as by libsvm, and the clearest has the greatest decision, as in scikit-learn.
#[test]
fn tied_votes_are_told_apart_by_the_decision_alone() {
    let functions = Matrix::new(vec![0.1, -5.0, 0.1], 1).unwrap();
    let svc = LinearClassifier::from_parts(DecisionRule::OneVsOne, vec![1, 2, 3], functions, vec![0.0; 3]).unwrap();
    let row = Matrix::new(vec![1.0], 1).unwrap();
    assert_eq!(svc.predict(&row).unwrap(), [1]);
    let decisions = svc.decision_function(&row).unwrap();
    assert!(decisions.values().is_sorted_by(|a, b| a < b), "{decisions:?}");
    assert!(decisions.values().iter().all(|decision| (decision - 1.0).abs() < 1.0 / 3.0));
}
