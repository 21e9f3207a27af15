//! What the linear classifiers refuse, and that the error says why. What is wrong with labels and shapes is `check_estimator`'s.

use judge_probe::{
    BrierRegression, Error, Estimator, LinearClassifier, LinearKernelSvc, LogisticRegression, Matrix, OrdinalRegression,
};

const POSITIVE: &str = "be a positive finite number";

/// c, tol and max_iter, of which each has some that are usual for it.
type Settings = (f64, Option<f64>, Option<usize>);

/// What each of them makes of features and labels of two classes.
fn fits(features: &Matrix, labels: &[i64], (c, tol, max_iter): Settings) -> [Result<LinearClassifier, Error>; 4] {
    let (tol, max_iter) = (|usual| tol.unwrap_or(usual), |usual| max_iter.unwrap_or(usual));
    let logistic = LogisticRegression::default();
    let brier = BrierRegression::default();
    let ordinal = OrdinalRegression::default();
    let svc = LinearKernelSvc::default();
    [
        LogisticRegression { c, tol: tol(logistic.tol), max_iter: max_iter(logistic.max_iter), ..logistic }
            .fit(features, labels),
        BrierRegression { c, tol: tol(brier.tol), max_iter: max_iter(brier.max_iter), ..brier }.fit(features, labels),
        OrdinalRegression { c, tol: tol(ordinal.tol), max_iter: max_iter(ordinal.max_iter), ..ordinal }
            .fit(features, labels),
        LinearKernelSvc { c, tol: tol(svc.tol), max_iter: max_iter(svc.max_iter), ..svc }.fit(features, labels),
    ]
}

#[test]
fn they_refuse_what_they_cannot_fit() {
    let features = Matrix::from_rows([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0], [0.0, 1.0]]).unwrap();
    let labels = [0, 1, 1, 0];
    for c in [0.0, -1.0, f64::INFINITY] {
        for fitted in fits(&features, &labels, (c, None, None)) {
            assert_eq!(fitted, Err(Error::OutOfRange { setting: "c", range: POSITIVE, found: c }));
        }
    }
    for fitted in fits(&features, &labels, (f64::NAN, None, None)) {
        assert!(matches!(fitted, Err(Error::OutOfRange { setting: "c", .. })), "{fitted:?}");
    }
    for tol in [0.0, -1.0] {
        for fitted in fits(&features, &labels, (1.0, Some(tol), None)) {
            assert_eq!(fitted, Err(Error::OutOfRange { setting: "tol", range: POSITIVE, found: tol }));
        }
    }
    for fitted in fits(&features, &labels, (100.0, None, Some(1))) {
        let Err(Error::NotConverged { n_iter: 1, max_iter: 1, gap, tol }) = fitted else { panic!("{fitted:?}") };
        assert!(gap > tol, "{gap}");
    }
    let huge = Matrix::from_rows([[1.0, 1e200], [2.0, 0.0]]).unwrap();
    for fitted in fits(&huge, &[0, 1], (1.0, None, None)) {
        assert_eq!(fitted, Err(Error::Overflow { feature: 1 }));
    }
}
