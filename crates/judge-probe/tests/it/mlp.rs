//! The multi-layer perceptron: equality with scikit-learn 1.9.1 on the fixtures of `scripts/probe/mlp_fixtures.py`, and what it refuses.
#![cfg(feature = "mlp")]

use crate::fixtures::{assert_close, cases};
use crate::formula::Data;
use judge_probe::testing::check_estimator;
use judge_probe::{
    DenseClassifier, Error, Estimator, FittedClassifier, FittedEstimator, FittedMlpClassifier, GridSearch, IntoProbe,
    Matrix, MlpClassifier, MlpError, Pipeline, Scoring, StandardScaler, StratifiedKFold, TestSize, cross_val_predict,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    name: String,
    #[serde(flatten)]
    data: Data,
    random_state: u32,
    hidden_layer_sizes: Vec<usize>,
    alpha: f64,
    batch_size: usize,
    learning_rate_init: f64,
    tol: f64,
    n_iter_no_change: usize,
    validation_fraction: Option<f64>,
    loss_curve: Vec<f64>,
    validation_scores: Option<Vec<f64>>,
    layers: Vec<Layer>,
    unseen_predicted: Vec<i64>,
    unseen_probabilities: Vec<f64>,
}

#[derive(Deserialize)]
struct Layer {
    /// Of the weights, unit by unit, the file has every so manieth.
    stride: usize,
    weights: Vec<f64>,
    intercepts: Vec<f64>,
}

impl Case {
    fn settings(&self) -> MlpClassifier {
        MlpClassifier {
            hidden_layer_sizes: self.hidden_layer_sizes.clone(),
            alpha: self.alpha,
            batch_size: self.batch_size,
            learning_rate_init: self.learning_rate_init,
            max_iter: 1000,
            tol: self.tol,
            n_iter_no_change: self.n_iter_no_change,
            early_stopping: self.validation_fraction.map(TestSize::Fraction),
            seed: self.random_state,
        }
    }
}

#[test]
fn it_trains_as_scikit_learns_does() {
    for case in cases::<Case>("mlp", 7) {
        let (features, unseen) = case.data.features();
        let fitted = case.settings().fit(&features, case.data.labels()).unwrap();
        let close = |what: &str, ours: &[f64], expected: &[f64]| {
            assert_close(&format!("{}: {what}", case.name), ours, expected, 1e-11);
        };
        // As many passes, each with its loss.
        close("loss", fitted.loss_curve(), &case.loss_curve);
        assert_eq!(fitted.validation_scores(), case.validation_scores.as_deref(), "{}", case.name);
        let classifier = fitted.classifier();
        let output = (classifier.output().coefficients(), classifier.output().intercepts());
        let layers = classifier.hidden().iter().map(|layer| (layer.weights(), layer.intercepts())).chain([output]);
        assert_eq!(layers.clone().count(), case.layers.len());
        for ((weights, intercepts), expected) in layers.zip(&case.layers) {
            let weights: Vec<f64> = weights.values().iter().step_by(expected.stride).copied().collect();
            close("weights", &weights, &expected.weights);
            close("intercepts", intercepts, &expected.intercepts);
        }
        assert_eq!(fitted.predict(&unseen).unwrap(), case.unseen_predicted, "{}", case.name);
        let probabilities = fitted.predict_proba(&unseen).unwrap().unwrap();
        close("probabilities", probabilities.values(), &case.unseen_probabilities);
    }
}

#[test]
fn it_keeps_the_contract() {
    check_estimator(&MlpClassifier::default()).unwrap();
    let stopping = MlpClassifier {
        hidden_layer_sizes: vec![20, 10],
        learning_rate_init: 0.01,
        early_stopping: Some(TestSize::Count(6)),
        ..MlpClassifier::default()
    };
    check_estimator(&stopping).unwrap();
    check_estimator(&Pipeline { transformer: StandardScaler::default(), estimator: stopping }).unwrap();
}

/// Rows on a ring: which side of it they lie on no linear function tells.
fn ring(n_rows: usize) -> (Matrix, Vec<i64>) {
    let point = |row: usize| {
        let (angle, radius) = (row as f64 * 2.4, 1.0 + (row % 3) as f64);
        [radius * angle.cos(), radius * angle.sin()]
    };
    let labels = (0..n_rows).map(|row| i64::from(row % 3 == 1)).collect();
    (Matrix::from_rows((0..n_rows).map(point)).unwrap(), labels)
}

fn ring_settings(alpha: f64) -> Pipeline<StandardScaler, MlpClassifier> {
    let estimator = MlpClassifier {
        hidden_layer_sizes: vec![16],
        alpha,
        learning_rate_init: 0.02,
        batch_size: 20,
        tol: 1e-3,
        ..MlpClassifier::default()
    };
    Pipeline { transformer: StandardScaler::default(), estimator }
}

#[test]
fn it_stands_in_cross_validation_and_grid_search() {
    let (features, labels) = ring(90);
    let splits = StratifiedKFold { n_splits: 3, shuffle: Some(1) }.split(&labels).unwrap();
    let predicted = cross_val_predict(&ring_settings(1e-4), &features, &labels, &splits).unwrap();
    let right = predicted.labels.iter().zip(&labels).filter(|(ours, label)| ours == label).count();
    // 60 are of the commoner class, and a linear function does no better.
    assert!(right > 75, "{right} of 90");

    // A penalty of 1,000 leaves nothing but the commoner class.
    let search = GridSearch { candidates: vec![ring_settings(1e3), ring_settings(1e-4)], scoring: Scoring::MacroF1 };
    let found = search.fit(&features, &labels, &splits).unwrap();
    assert_eq!(found.scores.best, 1);
    let fitted = found.estimator;
    let probe = fitted.clone().into_probe().unwrap();
    assert_eq!(probe.hidden_layers().len(), 1);
    assert_eq!(probe.predict(&features).unwrap(), fitted.predict(&features).unwrap());
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (n_rows, n_features) = (200, 512);
    let value = |i: usize| ((i * i + 31 * i) % 1009) as f64 / 500.0 - 1.0;
    let features = Matrix::new((0..n_rows * n_features).map(value).collect(), n_features).unwrap();
    let labels: Vec<i64> = (0..n_rows).map(|row| (row * row % 7 % 3) as i64).collect();
    // Products of more than 192³ multiplications are shared out by Burn.
    let settings = MlpClassifier { tol: 10.0, n_iter_no_change: 3, ..MlpClassifier::default() };
    let with_threads = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| settings.fit(&features, &labels).unwrap())
    };
    let alone = with_threads(1);
    assert_eq!(alone.loss_curve().len(), 5);
    assert_eq!(alone, with_threads(2));
    assert_eq!(alone, with_threads(5));
}

#[track_caller]
fn problem(fitted: Result<FittedMlpClassifier, Error>) -> MlpError {
    match fitted {
        Err(Error::Mlp(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_says_what_it_cannot_do() {
    let (features, labels) = ring(30);
    let fit = |settings: MlpClassifier| settings.fit(&features, &labels);
    let default = MlpClassifier::default;

    let settings = MlpClassifier { hidden_layer_sizes: vec![4, 0], ..default() };
    assert_eq!(problem(fit(settings)), MlpError::NoUnits { layer: 1 });
    let settings = MlpClassifier { hidden_layer_sizes: vec![usize::MAX / 4], ..default() };
    assert_eq!(problem(fit(settings)), MlpError::NoRoom { n_units: usize::MAX / 4, n_inputs: 2 });
    assert_eq!(problem(fit(MlpClassifier { batch_size: 0, ..default() })), MlpError::NoBatch);
    for learning_rate_init in [0.0, -1.0, f64::INFINITY] {
        let settings = MlpClassifier { learning_rate_init, ..default() };
        let (setting, range) = ("learning_rate_init", "be a positive finite number");
        assert_eq!(fit(settings), Err(Error::OutOfRange { setting, range, found: learning_rate_init }));
    }
    let out_of_range = |settings| fit(settings).unwrap_err().to_string();
    let alpha = out_of_range(MlpClassifier { alpha: -1.0, ..default() });
    assert_eq!(alpha, "alpha must be a finite number of at least 0, found -1");
    let tol = out_of_range(MlpClassifier { tol: 0.0, ..default() });
    assert_eq!(tol, "tol must be a positive finite number, found 0");
    let held_out = |size| fit(MlpClassifier { early_stopping: Some(size), ..default() });
    let share = held_out(TestSize::Fraction(1.0)).unwrap_err().to_string();
    assert_eq!(share, "the share tested on must lie strictly between 0 and 1, found 1");
    let small = Error::SmallPart { part: "test", n_rows: 1, n_classes: 2 };
    assert_eq!(held_out(TestSize::Count(1)), Err(small));

    let hurried = problem(fit(MlpClassifier { max_iter: 3, ..default() }));
    assert_eq!(hurried, MlpError::NotSettled { max_iter: 3, n_idle: 0, n_iter_no_change: 10, tol: 1e-4 });
    let settings = MlpClassifier { learning_rate_init: 1e200, ..default() };
    assert!(matches!(problem(fit(settings)), MlpError::Diverged { .. }));
    let huge = Matrix::from_rows([[1e200], [-1e200]]).unwrap();
    assert_eq!(default().fit(&huge, &[1, 2]), Err(Error::Overflow { feature: 0 }));
}

#[test]
fn without_hidden_layers_it_is_linear() {
    let (features, labels) = ring(30);
    let settings = MlpClassifier { hidden_layer_sizes: vec![], learning_rate_init: 0.01, ..MlpClassifier::default() };
    let fitted = settings.fit(&features, &labels).unwrap();
    let dense = DenseClassifier::from(fitted.clone());
    assert_eq!(dense, DenseClassifier::from(dense.output().clone()));
    assert_eq!(fitted.decision_function(&features).unwrap(), dense.output().decision_function(&features).unwrap());
}
