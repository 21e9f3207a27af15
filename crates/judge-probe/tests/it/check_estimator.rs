//! Every classifier keeps the contract, and broken ones are found out.

use judge_probe::testing::{ContractBreach, check_estimator};
use judge_probe::{
    Block, Blocks, BrierRegression, ClassWeight, Error, Estimator, FeatureFamily, FittedClassifier, FittedEstimator,
    LinearClassifier, LinearKernelSvc, LogisticRegression, Matrix, OrdinalRegression, Pca, Pipeline, Predictions,
    RidgeToClass, StandardScaler,
};

#[test]
fn classifiers_keep_their_contract() {
    for class_weight in [ClassWeight::Uniform, ClassWeight::Balanced] {
        check_estimator(&LogisticRegression { class_weight, ..LogisticRegression::default() }).unwrap();
        check_estimator(&OrdinalRegression { class_weight, ..OrdinalRegression::default() }).unwrap();
        check_estimator(&LinearKernelSvc { class_weight, ..LinearKernelSvc::default() }).unwrap();
    }
    check_estimator(&LogisticRegression { fit_intercept: false, ..LogisticRegression::default() }).unwrap();
    check_estimator(&BrierRegression::default()).unwrap();
    check_estimator(&RidgeToClass::default()).unwrap();
}

#[test]
fn pipelines_keep_the_contract() {
    let scaled = Pipeline { transformer: StandardScaler::default(), estimator: LogisticRegression::default() };
    check_estimator(&scaled).unwrap();
    check_estimator(&Pipeline { transformer: Pca { n_components: 2 }, estimator: scaled }).unwrap();
    let block = |transformer| Block { n_features: 2, transformer };
    let blocks = [FeatureFamily::State, FeatureFamily::Pca { n_components: 1 }].map(block).to_vec();
    let layers = Pipeline { transformer: Blocks { blocks }, estimator: OrdinalRegression::default() };
    check_estimator(&layers).unwrap();
}

/// Logistic regression with one thing wrong.
#[derive(Clone, Copy, PartialEq)]
enum Broken {
    NoLabelsMissed,
    ClassesUnsorted,
    BatchDependent,
    OneColumnTooMany,
    ProbabilitiesOfOthers,
    AlwaysTheFirst,
    AnyWidth,
}

struct FittedBroken {
    fault: Broken,
    sound: LinearClassifier,
    classes: Vec<i64>,
}

impl Estimator for Broken {
    type Label = i64;
    type Fitted = FittedBroken;

    fn fit(&self, features: &Matrix, labels: &[i64]) -> Result<FittedBroken, Error> {
        let mut labels = labels.to_vec();
        if *self == Broken::NoLabelsMissed {
            labels.resize(features.n_rows(), 0);
        }
        let sound = LogisticRegression::default().fit(features, &labels)?;
        let mut classes = sound.classes().to_vec();
        if *self == Broken::ClassesUnsorted {
            classes.reverse();
        }
        Ok(FittedBroken { fault: *self, sound, classes })
    }
}

impl FittedEstimator for FittedBroken {
    type Label = i64;

    fn n_features(&self) -> usize {
        self.sound.n_features()
    }

    fn predict(&self, features: &Matrix) -> Result<Vec<i64>, Error> {
        match self.fault {
            Broken::AlwaysTheFirst => Ok(vec![self.classes[0]; features.n_rows()]),
            Broken::AnyWidth if features.n_features() != self.n_features() => Ok(vec![self.classes[0]]),
            _ => self.sound.predict(features),
        }
    }

    fn predictions(&self, features: &Matrix) -> Result<Predictions<i64>, Error> {
        Predictions::of_classifier(self, features)
    }
}

impl FittedClassifier for FittedBroken {
    fn classes(&self) -> &[i64] {
        &self.classes
    }

    fn decision_function(&self, features: &Matrix) -> Result<Matrix, Error> {
        let decisions = self.sound.decision_function(features)?;
        match self.fault {
            Broken::BatchDependent => {
                let factor = 1.0 + features.n_rows() as f64;
                Matrix::new(decisions.values().iter().map(|value| value * factor).collect(), decisions.n_features())
            }
            Broken::OneColumnTooMany => Matrix::beside(&[decisions.clone(), decisions]),
            Broken::AlwaysTheFirst => Matrix::new(vec![-1.0; decisions.n_rows()], 1),
            _ => Ok(decisions),
        }
    }

    fn predict_proba(&self, features: &Matrix) -> Result<Option<Matrix>, Error> {
        let reversed = |row: &[f64]| row.iter().rev().copied().collect::<Vec<f64>>();
        match self.fault {
            Broken::AlwaysTheFirst => Ok(None),
            Broken::ProbabilitiesOfOthers => {
                let probabilities = self.sound.predict_proba(features)?;
                probabilities.map(|probabilities| Matrix::from_rows(probabilities.rows().map(reversed))).transpose()
            }
            _ => self.sound.predict_proba(features),
        }
    }
}

fn breach(broken: Broken) -> ContractBreach {
    match check_estimator(&broken) {
        Err(Error::Contract(breach)) => breach,
        other => panic!("{other:?}"),
    }
}

#[test]
fn broken_classifiers_are_found_out() {
    use ContractBreach::{Changed, Classes, Disagreement, NotLearnt, Refusal, Shape};

    assert!(matches!(breach(Broken::NoLabelsMissed), Refusal { given: "too few labels", found: None, .. }));
    assert_eq!(breach(Broken::ClassesUnsorted), Classes { expected: vec![3, 9], found: vec![9, 3] });
    assert!(matches!(
        breach(Broken::BatchDependent),
        Changed { method: "decision_function", when: "alone", row: 0, .. }
    ));
    let shape = Shape { method: "decision_function", expected: (36, 1), found: (36, 2) };
    assert_eq!(breach(Broken::OneColumnTooMany), shape);
    assert!(matches!(breach(Broken::ProbabilitiesOfOthers), Disagreement { method: "predict_proba", row: 0, .. }));
    assert!(matches!(breach(Broken::AlwaysTheFirst), NotLearnt { n_rows: 36, .. }));
    assert!(matches!(breach(Broken::AnyWidth), Refusal { given: "another number of features", found: None, .. }));
}
