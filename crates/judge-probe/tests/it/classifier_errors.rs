//! What the linear classifiers refuse, and that the error says why.

use judge_probe::{
    Classifier, Error, Estimator, FittedClassifier, FittedEstimator, LinearKernelSvc, LogisticRegression, Matrix,
};

fn features() -> Matrix {
    Matrix::from_rows([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0], [0.0, 1.0]]).unwrap()
}

fn refuses_bad_data<C: Classifier + Default>()
where
    C::Fitted: std::fmt::Debug + PartialEq,
{
    let classifier = C::default();
    assert_eq!(classifier.fit(&features(), &[0, 1, 1]), Err(Error::LabelCount { n_rows: 4, n_labels: 3 }));
    assert_eq!(classifier.fit(&features(), &[7; 4]), Err(Error::OneClass { class: 7 }));
    let huge = Matrix::from_rows([[1.0, 1e200], [2.0, 0.0]]).unwrap();
    assert_eq!(classifier.fit(&huge, &[0, 1]), Err(Error::Overflow { feature: 1 }));
    let fitted = classifier.fit(&features(), &[0, 1, 1, 0]).unwrap();
    let other = Matrix::new(vec![1.0; 3], 3).unwrap();
    assert_eq!(fitted.predict(&other), Err(Error::FeatureCount { expected: 2, found: 3 }));
    assert_eq!((fitted.classes(), fitted.n_features()), (&[0, 1][..], 2));
}

#[test]
fn they_refuse_bad_data() {
    refuses_bad_data::<LogisticRegression>();
    refuses_bad_data::<LinearKernelSvc>();
}

#[test]
fn they_refuse_bad_settings() {
    let labels = [0, 1, 1, 0];
    for c in [0.0, -1.0, f64::INFINITY] {
        let refused = LogisticRegression { c, ..LogisticRegression::default() }.fit(&features(), &labels);
        assert_eq!(refused, Err(Error::InvalidC { c }));
        assert_eq!(
            LinearKernelSvc { c, ..LinearKernelSvc::default() }.fit(&features(), &labels),
            Err(Error::InvalidC { c })
        );
    }
    let tol = 0.0;
    let refused = LogisticRegression { tol, ..LogisticRegression::default() }.fit(&features(), &labels);
    assert_eq!(refused, Err(Error::InvalidTol { tol }));
    assert_eq!(
        LinearKernelSvc { tol, ..LinearKernelSvc::default() }.fit(&features(), &labels),
        Err(Error::InvalidTol { tol })
    );
}

#[test]
fn they_say_when_they_have_not_converged() {
    let labels = [0, 1, 1, 0];
    let logistic = LogisticRegression { max_iter: 2, ..LogisticRegression::default() }.fit(&features(), &labels);
    let Err(Error::NotConverged { n_iter: 2, max_iter: 2, gap, tol: 1e-14 }) = logistic else {
        panic!("{logistic:?}");
    };
    assert!(gap > 1e-14 && gap < 1.0);
    let svc = LinearKernelSvc { max_iter: 1, c: 100.0, ..LinearKernelSvc::default() }.fit(&features(), &labels);
    assert!(matches!(svc, Err(Error::NotConverged { n_iter: 1, max_iter: 1, .. })), "{svc:?}");
}

#[test]
fn a_row_is_judged_alike_alone_and_among_others() {
    let fitted = LogisticRegression::default().fit(&features(), &[3, 1, 2, 1]).unwrap();
    let together = fitted.decision_function(&features()).unwrap();
    for (row, decision) in features().rows().zip(together.rows()) {
        let alone = fitted.decision_function(&Matrix::from_rows([row]).unwrap()).unwrap();
        assert_eq!(alone.values(), decision);
    }
}
