//! linfa's estimators as probes, and where the one that comes with the crate falls behind ours.
#![cfg(feature = "linfa")]

use crate::fixtures::cases;
use crate::formula::Data;
use judge_probe::testing::check_estimator;
use judge_probe::{Estimator, FittedClassifier, FittedEstimator, LinfaClassifier, LogisticRegression, Matrix};
use linfa_logistic::error::Error as LogisticError;
use linfa_logistic::{LogisticRegression as LinfaLogistic, MultiLogisticRegression};
use serde_json::{Value, from_value};

#[test]
fn linfas_logistic_regression_keeps_the_contract() {
    check_estimator(&LinfaClassifier::logistic(1.0)).unwrap();
}

/// Five classes, 300 rows of 40 features, every tenth row 60 times larger.
fn uneven() -> (Matrix, Data) {
    let case = cases::<Value>("logistic_regression", 14)
        .into_iter()
        .find(|case| case["name"] == "every tenth row 60 times larger")
        .unwrap();
    let data: Data = from_value(case).unwrap();
    (data.features().0, data)
}

fn accuracy(fitted: &impl FittedClassifier, features: &Matrix, labels: &[i64]) -> f64 {
    let predicted = fitted.predict(features).unwrap();
    predicted.iter().zip(labels).filter(|(ours, label)| ours == label).count() as f64 / labels.len() as f64
}

/// Should this fail because linfa-logistic comes as close to the minimum as ours, it has been mended upstream: tell users so.
#[test]
fn linfa_logistic_still_stops_early_where_rows_differ_in_magnitude() {
    let (features, data) = uneven();
    let size = |weights: &mut dyn Iterator<Item = f64>| weights.map(|w| w * w).sum::<f64>().sqrt();
    for c in [1.0, 100.0] {
        let ours = LogisticRegression { c, ..LogisticRegression::default() }.fit(&features, data.labels()).unwrap();
        let theirs = LinfaClassifier::logistic(c).fit(&features, data.labels());
        let our_size = size(&mut ours.coefficients().values().iter().copied());
        let ours = accuracy(&ours, &features, data.labels());
        // A failed line search is another way to fall behind.
        let Ok(theirs) = theirs else { continue };
        let their_size = size(&mut theirs.model().params().iter().copied());
        let theirs = accuracy(&theirs, &features, data.labels());
        assert!(
            their_size < 0.9 * our_size && theirs < ours,
            "c {c}: linfa |W| {their_size}, accuracy {theirs}; ours {our_size}, {ours}"
        );
    }
}

#[test]
fn on_even_rows_it_finds_what_ours_does() {
    let data: Data = cases("logistic_regression", 14).remove(2);
    let (features, unseen) = data.features();
    let ours = LogisticRegression::default().fit(&features, data.labels()).unwrap();
    let theirs = LinfaClassifier::logistic(1.0).fit(&features, data.labels()).unwrap();
    assert_eq!(ours.predict(&unseen).unwrap(), theirs.predict(&unseen).unwrap());
    let weights = theirs.model().params();
    for (class, ours) in ours.coefficients().rows().enumerate() {
        for (feature, ours) in ours.iter().enumerate() {
            assert!((ours - weights[(feature, class)]).abs() < 1e-3);
        }
    }
}

#[test]
fn any_estimator_of_linfas_will_do_and_its_errors_are_told() {
    let features = Matrix::from_rows([[0.0], [1.0], [2.0], [3.0]]).unwrap();
    let binary = LinfaClassifier::<_, LogisticError>::new(LinfaLogistic::default());
    assert_eq!(binary.fit(&features, &[7, 7, 9, 9]).unwrap().predict(&features).unwrap(), [7, 7, 9, 9]);

    let settings = MultiLogisticRegression::default().alpha(-1.0);
    let refused = LinfaClassifier::<_, LogisticError>::new(settings).fit(&features, &[7, 7, 9, 9]).unwrap_err();
    assert!(refused.to_string().starts_with("linfa could not fit 4 rows of 1 features: "), "{refused}");
}
