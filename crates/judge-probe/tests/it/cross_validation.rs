//! Cross-validation and grid search: scores, predictions and choices equal scikit-learn's on the fixture of
//! `scripts/probe/cross_validation_fixtures.py`; what cannot be fitted or tested is named.

use crate::fixtures::{cases, count, fixture, list, stir};
use judge_probe::{
    ClassWeight, Error, Estimator, FittedEstimator, GridSearch, KFold, LinearKernelSvc, LogisticRegression, Matrix,
    Pipeline, Predictions, ProbabilityTable, RegressionScoring, Ridge, Scorer, Scoring, SearchScores, Split,
    SplitScores, StandardScaler, StratifiedKFold, TestSize, TrainTestSplit, cross_val_predict, cross_val_score,
};
use serde_json::Value;

type Probe = Pipeline<StandardScaler, LogisticRegression>;

/// `data` of the script.
fn data(n: u64, d: u64, n_classes: u64, signal: f64) -> (Matrix, Vec<i64>) {
    let labels: Vec<i64> = (0..n).map(|row| (stir(row) % n_classes) as i64).collect();
    let value = |row: u64, column: u64| {
        let noise = stir(1_000_003 * (row + 1) + column) as f64 / 2_f64.powi(32);
        let shift = if column.is_multiple_of(3) { signal * labels[row as usize] as f64 } else { 0.0 };
        (noise + shift) * 10_f64.powi((column % 4) as i32)
    };
    let values = (0..n).flat_map(|row| (0..d).map(move |column| (row, column))).map(|(row, column)| value(row, column));
    (Matrix::new(values.collect(), d as usize).unwrap(), labels)
}

/// The data that a case was computed on.
fn data_of(case: &Value) -> (Matrix, Vec<i64>) {
    let number = |name: &str| case[name].as_u64().unwrap();
    data(number("n"), number("d"), number("n_classes"), case["signal"].as_f64().unwrap())
}

fn probe(c: f64, balanced: bool) -> Probe {
    let class_weight = if balanced { ClassWeight::Balanced } else { ClassWeight::Uniform };
    let estimator = LogisticRegression { c, class_weight, ..LogisticRegression::default() };
    Pipeline { transformer: StandardScaler::default(), estimator }
}

fn search(balanced: bool, scoring: Scoring) -> GridSearch<Probe> {
    GridSearch { candidates: [0.001, 0.01, 0.1, 1.0].map(|c| probe(c, balanced)).to_vec(), scoring }
}

/// Scores of equal classes may differ in rounding alone.
const ROUNDING: f64 = 1e-14;
/// Probabilities are those at the optimum but for where each solver ends.
const SOLVERS: f64 = 1e-8;

#[track_caller]
fn assert_close(ours: Option<f64>, expected: &Value, tolerance: f64) {
    match (ours, expected.as_f64()) {
        (Some(ours), Some(expected)) => assert!((ours - expected).abs() < tolerance, "{ours} is not {expected}"),
        (ours, expected) => assert_eq!(ours, expected),
    }
}

#[track_caller]
fn assert_equal(ours: &SearchScores, expected: &Value, tolerance: f64) {
    assert_eq!(ours.candidates.len(), expected["scores"].as_array().unwrap().len());
    for (candidate, scores) in ours.candidates.iter().enumerate() {
        for (split, &score) in scores.by_split.iter().enumerate() {
            assert_close(score, &expected["scores"][candidate][split], tolerance);
        }
        assert_close(scores.mean(), &expected["means"][candidate], tolerance);
        assert_close(scores.deviation(), &expected["deviations"][candidate], tolerance);
    }
    assert_eq!(ours.best as u64, expected["best"].as_u64().unwrap());
    assert_eq!(Some(ours.best_mean), ours.candidates[ours.best].mean());
}

#[test]
fn scores_and_choices_equal_scikit_learns() {
    for case in cases::<Value>("cross_validation", 5) {
        let (features, labels) = data_of(&case);
        let balanced = case["balanced"].as_bool().unwrap();
        let shuffle = case["shuffle"].as_u64().map(|seed| seed as u32);
        let splits = StratifiedKFold { n_splits: 5, shuffle }.split(&labels).unwrap();
        let select = |rows: &[usize]| rows.iter().map(|&row| labels[row]).collect::<Vec<_>>();

        for (name, scoring) in [
            ("accuracy", Scoring::Accuracy),
            ("balanced_accuracy", Scoring::BalancedAccuracy),
            ("macro_f1", Scoring::MacroF1),
            ("weighted_f1", Scoring::WeightedF1),
            ("spearman", Scoring::Spearman),
            ("expected_spearman", Scoring::ExpectedSpearman),
            ("roc_auc", Scoring::RocAuc),
            ("neg_log_loss", Scoring::NegLogLoss),
            ("quadratic_kappa", Scoring::QuadraticKappa),
            ("neg_mean_absolute_error", Scoring::NegMeanAbsoluteError),
        ] {
            let scores = search(balanced, scoring).scores(&features, &labels, &splits).unwrap();
            assert_equal(
                &scores,
                &case["searches"][name],
                if scoring.needs_probabilities() { SOLVERS } else { ROUNDING },
            );
        }

        let scores = cross_val_score(&probe(0.1, balanced), &features, &labels, &splits, Scoring::MacroF1).unwrap();
        for (ours, expected) in scores.by_split.iter().zip(case["cross_val_score"].as_array().unwrap()) {
            assert_close(*ours, expected, ROUNDING);
        }
        let predicted = cross_val_predict(&probe(0.1, balanced), &features, &labels, &splits).unwrap();
        assert_eq!(predicted.labels, list::<i64>(&case["cross_val_predict"]));
        assert_probabilities(&predicted, &case["probabilities"]);

        let inner = |rows: &[usize]| StratifiedKFold { n_splits: 3, shuffle: None }.split(&select(rows));
        let nested = search(balanced, Scoring::MacroF1).nested(&features, &labels, &splits, inner).unwrap();
        assert_eq!(nested.len(), 5);
        for (ours, expected) in nested.iter().zip(case["nested"].as_array().unwrap()) {
            assert_equal(&ours.search, expected, ROUNDING);
            assert_eq!(ours.predicted.labels, list::<i64>(&expected["predicted"]));
            assert_close(ours.score, &expected["score"], ROUNDING);
        }

        let Split { train, test } =
            TrainTestSplit { test_size: TestSize::Fraction(0.2), seed: 731 }.stratified(&labels).unwrap();
        let (train_features, train_labels) = (features.select_rows(&train).unwrap(), select(&train));
        let folds = StratifiedKFold::default().split(&train_labels).unwrap();
        let refit = search(balanced, Scoring::MacroF1).fit(&train_features, &train_labels, &folds).unwrap();
        assert_equal(&refit.scores, &case["refit"], ROUNDING);
        let predicted = refit.estimator.predict(&features.select_rows(&test).unwrap()).unwrap();
        assert_eq!(predicted, list::<i64>(&case["refit"]["predicted"]));
        assert_eq!(refit.settings, search(balanced, Scoring::MacroF1).candidates[refit.scores.best]);
    }
}

/// Of one class the judge that always gives it is right in all of it.
#[test]
fn a_balanced_accuracy_takes_two_classes() {
    let score = |truth: &[i64], predicted: &[i64]| Scoring::BalancedAccuracy.score(truth, &predicted.to_vec().into());
    for predicted in [[1, 1], [1, 2]] {
        let found = score(&[1, 1], &predicted);
        assert!(matches!(&found, Err(Error::Metric(error)) if error.is_undefined()), "{found:?}");
    }
    assert_eq!(score(&[1, 2], &[1, 1]).unwrap(), 0.5);
}

#[track_caller]
fn assert_probabilities(ours: &Predictions<i64>, expected: &Value) {
    let table = ours.probabilities.as_ref().unwrap();
    let expected = expected.as_array().unwrap();
    assert_eq!(table.probabilities().n_rows(), expected.len());
    for (row, expected) in table.probabilities().rows().zip(expected) {
        row.iter()
            .zip(expected.as_array().unwrap())
            .for_each(|(p, expected)| assert_close(Some(*p), expected, SOLVERS));
    }
}

#[test]
fn a_class_that_a_split_has_not_learnt_has_probability_0() {
    let case = &fixture::<Value>("cross_validation")["missing"];
    let (features, labels) = data_of(case);
    let rows: Vec<usize> = list(&case["rows"]);
    let (features, labels): (_, Vec<i64>) =
        (features.select_rows(&rows).unwrap(), rows.iter().map(|&row| labels[row]).collect());
    let splits = KFold { n_splits: count(&case["n_splits"]), shuffle: None }.split(labels.len()).unwrap();
    let predicted = cross_val_predict(&probe(0.1, true), &features, &labels, &splits).unwrap();
    assert_probabilities(&predicted, &case["probabilities"]);
    let table = predicted.probabilities.as_ref().unwrap();
    assert_eq!(table.classes(), [0, 1, 2]);
    assert!(table.of_class(0).unwrap().iter().filter(|p| **p == 0.0).count() > 10);
    assert_eq!(predicted.expected_classes().unwrap(), table.expected_classes());
}

#[test]
fn regressors_are_chosen_as_scikit_learn_chooses_them() {
    let case = &fixture::<Value>("cross_validation")["regression"];
    let (features, _) = data_of(case);
    let labels: Vec<f64> = list(&case["labels"]);
    let splits = KFold { n_splits: 5, shuffle: Some(count(&case["shuffle"]) as u32) }.split(labels.len()).unwrap();
    let ridge = |alpha: f64| Pipeline {
        transformer: StandardScaler::default(),
        estimator: Ridge { alpha, ..Ridge::default() },
    };
    for (name, scoring) in [
        ("spearman", RegressionScoring::Spearman),
        ("pearson", RegressionScoring::Pearson),
        ("neg_mean_absolute_error", RegressionScoring::NegMeanAbsoluteError),
        ("neg_root_mean_squared_error", RegressionScoring::NegRootMeanSquaredError),
    ] {
        let candidates = list(&case["alphas"]).into_iter().map(ridge).collect();
        let search = GridSearch { candidates, scoring };
        let found = search.fit(&features, &labels, &splits).unwrap();
        assert_equal(&found.scores, &case["searches"][name], 1e-12);
        assert_eq!(found.settings, search.candidates[found.scores.best]);
    }
    let predicted = cross_val_predict(&ridge(10.0), &features, &labels, &splits).unwrap();
    assert_eq!(predicted.probabilities, None);
    for (ours, expected) in predicted.labels.iter().zip(list::<f64>(&case["cross_val_predict"])) {
        assert!((ours - expected).abs() < 1e-12);
    }
}

#[test]
fn scores_of_probabilities_need_them_and_scores_are_numbers() {
    let (features, labels) = data(40, 2, 2, 0.5);
    let splits = StratifiedKFold { n_splits: 2, shuffle: None }.split(&labels).unwrap();
    let in_first = |error: Error| Error::InSplit { split: 0, error: Box::new(error) };
    for scoring in [Scoring::ExpectedSpearman, Scoring::RocAuc, Scoring::NegLogLoss, Scoring::NegMeanAbsoluteError] {
        let scores = cross_val_score(&LinearKernelSvc::default(), &features, &labels, &splits, scoring);
        assert_eq!(scores, Err(in_first(Error::NoProbabilities { scoring })));
    }
    let infinite = |_: &[i64], _: &Predictions<i64>| -> Result<f64, Error> { Ok(f64::INFINITY) };
    let scores = cross_val_score(&Constant(0), &features, &labels, &splits, infinite);
    assert_eq!(scores, Err(in_first(Error::NonFiniteScore { score: f64::INFINITY })));
    // A class that was not learnt counts with the least probability there is.
    let table = ProbabilityTable::new(vec![0, 1], Matrix::from_rows([[0.5, 0.5], [0.25, 0.75]]).unwrap()).unwrap();
    let predictions = Predictions { labels: vec![0, 1], probabilities: Some(table) };
    let score = Scoring::NegLogLoss.score(&[0, 2], &predictions).unwrap();
    assert!((score - (0.5_f64.ln() + f64::EPSILON.ln()) / 2.0).abs() < 1e-12);
    assert!(matches!(Scoring::NegLogLoss.score(&[0], &predictions), Err(Error::Metric(_))));
    for scoring in [Scoring::RocAuc, Scoring::QuadraticKappa] {
        let alike = Predictions { labels: vec![0, 0], ..predictions.clone() };
        assert!(matches!(scoring.score(&[0, 0], &alike), Err(Error::Metric(error)) if error.is_undefined()));
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let (features, labels) = data(80, 6, 3, 0.1);
    let splits = StratifiedKFold::default().split(&labels).unwrap();
    let scores = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| search(true, Scoring::Spearman).fit(&features, &labels, &splits)).unwrap()
    };
    let alone = scores(1);
    for n_threads in [2, 5] {
        assert_eq!(scores(n_threads), alone);
    }
}

#[test]
fn a_tie_goes_to_the_first() {
    let (features, labels) = data(60, 3, 2, 9.0);
    let splits = StratifiedKFold::default().split(&labels).unwrap();
    let scores = search(true, Scoring::MacroF1).scores(&features, &labels, &splits).unwrap();
    assert!(scores.candidates.iter().all(|scores| scores.mean() == Some(1.0)));
    assert_eq!(scores.best, 0);
}

#[test]
fn a_candidate_that_cannot_be_fitted_is_named() {
    let (features, labels) = data(60, 3, 2, 0.2);
    let splits = StratifiedKFold::default().split(&labels).unwrap();
    let candidates = vec![probe(1.0, true), probe(-1.0, true)];
    let error = GridSearch { candidates, scoring: Scoring::Accuracy }.fit(&features, &labels, &splits).unwrap_err();
    let cause = Error::OutOfRange { setting: "c", range: "be a positive finite number", found: -1.0 };
    assert_eq!(
        error,
        Error::InSplit { split: 0, error: Box::new(Error::InCandidate { candidate: 1, error: Box::new(cause) }) }
    );
    assert_eq!(error.to_string(), "split 0: candidate 1: c must be a positive finite number, found -1");

    // Of several splits that fail, the first is named.
    let mut splits = splits;
    for split in &mut splits[2..] {
        split.train.retain(|&row| labels[row] == 0);
    }
    let error = cross_val_score(&probe(1.0, true), &features, &labels, &splits, Scoring::Accuracy).unwrap_err();
    assert_eq!(error, Error::InSplit { split: 2, error: Box::new(Error::OneClass { class: 0 }) });
}

/// Predicts one class, whatever it learnt.
#[derive(Clone)]
struct Constant(i64);

/// The class, and how many features there are.
struct FittedConstant(i64, usize);

impl Estimator for Constant {
    type Label = i64;
    type Fitted = FittedConstant;

    fn fit(&self, features: &Matrix, _: &[i64]) -> Result<FittedConstant, Error> {
        Ok(FittedConstant(self.0, features.n_features()))
    }
}

impl FittedEstimator for FittedConstant {
    type Label = i64;

    fn n_features(&self) -> usize {
        self.1
    }

    fn predict(&self, features: &Matrix) -> Result<Vec<i64>, Error> {
        Ok(vec![self.0; features.n_rows()])
    }

    fn predictions(&self, features: &Matrix) -> Result<Predictions<i64>, Error> {
        Ok(self.predict(features)?.into())
    }
}

#[test]
fn an_undefined_score_is_no_number_and_is_not_chosen() {
    let (features, labels) = data(40, 2, 3, 0.0);
    let splits = StratifiedKFold { n_splits: 2, shuffle: None }.split(&labels).unwrap();
    let search = GridSearch { candidates: vec![Constant(0), Constant(1)], scoring: Scoring::Spearman };
    let error = search.scores(&features, &labels, &splits).unwrap_err();
    assert_eq!(error, Error::NoScore { n_candidates: 2, n_splits: 2 });
    assert_eq!(SplitScores { by_split: vec![Some(1.0), None] }.mean(), None);
    assert_eq!(SplitScores { by_split: vec![] }.deviation(), None);
    let none = GridSearch { candidates: Vec::<Constant>::new(), scoring: Scoring::Accuracy };
    assert_eq!(none.scores(&features, &labels, &splits), Err(Error::NoScore { n_candidates: 0, n_splits: 2 }));
    let unsplit = GridSearch { candidates: vec![Constant(0)], scoring: Scoring::Accuracy };
    assert_eq!(unsplit.scores(&features, &labels, &[]), Err(Error::NoScore { n_candidates: 1, n_splits: 0 }));
}

#[test]
fn splits_that_do_not_fit_the_rows_are_refused() {
    let (features, labels) = data(6, 2, 2, 0.0);
    let score = |train: &[usize], test: &[usize]| {
        let splits = [Split { train: train.to_vec(), test: test.to_vec() }];
        cross_val_score(&Constant(0), &features, &labels, &splits, Scoring::Accuracy).unwrap_err()
    };
    assert_eq!(score(&[0, 1], &[]).to_string(), "split 0 has no rows to test on");
    assert_eq!(score(&[], &[0]).to_string(), "split 0 has no rows to train on");
    assert_eq!(score(&[0, 6], &[1]).to_string(), "split 0 names row 6 of 6");
    assert_eq!(score(&[0, 1], &[2, 1]).to_string(), "split 0 both learns from row 1 and tests on it");
    let splits = [Split { train: vec![0, 1], test: vec![2, 3, 4] }];
    let predicted = cross_val_predict(&Constant(0), &features, &labels, &splits);
    assert_eq!(predicted, Err(Error::TestedTimes { row: 0, times: 0 }));
    let scores = cross_val_score(&Constant(0), &features, &labels[1..], &splits, Scoring::Accuracy);
    assert_eq!(scores, Err(Error::RowCount { n_rows: 6, what: "labels", found: 5 }));
}
