//! From graded rows to a saved probe, on signals that are made up so that the right outcome is known.

use std::collections::BTreeMap;

use crate::fixtures::fixture;
use crate::made::model;
use judge_core::{
    Layer, Prompt,
    request::{Pooling, Signal},
};
use judge_metrics::calibration::{CalibrationReport, Calibrator};
use judge_metrics::comparison::Statistic;
use judge_probe::training::{
    GradeScale, GradedRow, Grading, Outcome, ProbeCalibration, ProbeClassifier, ProbeTraining, RowSignals,
    TrainedProbe, TrainingError, TrainingOrigin, View,
};
use judge_probe::{Error, FittedClassifier, FittedEstimator, Matrix, ProbedModel, SavedProbe};
use serde_json::Value;

const D_MODEL: usize = 2;

/// Signals in which the grade shows in layer 2 only, in every pooling, halved and with noise added.
struct Told<'a> {
    rows: &'a [GradedRow],
    unread: Vec<usize>,
    /// Of how many grades a row has logits; 0 for no logits.
    logits: usize,
    /// If there is a tuned model: how many of the tested rows it gives no answer for.
    untuned: Option<usize>,
}

impl<'a> Told<'a> {
    fn new(rows: &'a [GradedRow]) -> Self {
        Self { rows, unread: Vec::new(), logits: 0, untuned: None }
    }
}

impl RowSignals for Told<'_> {
    type Error = Error;

    fn is_read(&self, row: usize) -> bool {
        !self.unread.contains(&row)
    }

    fn matrix(&self, of: &[usize], layer: Layer, signals: &[Signal]) -> Result<Matrix, Error> {
        let value = |row: usize, k: usize| {
            let told = if layer == Layer(2) && k == 0 { self.rows[row].grade / 2.0 } else { 0.0 };
            told + ((row * 7919 + k * 31 + layer.0) % 97) as f64 / 97.0
        };
        let row = |&row: &usize| {
            assert!(self.is_read(row));
            (0..signals.len() * D_MODEL).map(|k| value(row, k)).collect::<Vec<_>>()
        };
        Matrix::from_rows(of.iter().map(row))
    }

    fn grade_logits(&self, row: usize) -> Result<Option<Vec<f64>>, Error> {
        // Of the grades 1 to 4 the one above the true one is said, and of 4 itself 4.
        let said = (self.rows[row].grade as usize).min(3);
        let logits = (0..self.logits).map(|grade| if grade == said { 3.0 } else { 0.0 }).collect();
        Ok((self.logits > 0).then_some(logits))
    }

    fn tuned_grade_logits(&self, train: &[usize], tested: &[usize]) -> Result<Option<Vec<Vec<f64>>>, Error> {
        let Some(untuned) = self.untuned else { return Ok(None) };
        assert!(tested.iter().all(|row| !train.contains(row)));
        let of_grade = |row: usize, grade: i32| -3.0 * (self.rows[row].grade - f64::from(grade)).abs();
        let logits = |&row: &usize| (1..=4).map(|grade| of_grade(row, grade)).collect();
        Ok(Some(tested.iter().skip(untuned).map(logits).collect()))
    }
}

/// Grades 1 to 4 over questions of three rows each.
fn rows(n: usize) -> Vec<GradedRow> {
    (0..n)
        .map(|i| {
            let grade = [1.0, 2.0, 3.0, 4.0][(i * i + i / 3) % 4];
            let question = format!("Question {}?", i / 3);
            let response = format!("Answer {}", i % 11);
            GradedRow {
                question: question.clone(),
                response,
                group: question,
                ..GradedRow::new(i as u64, Prompt::user(format!("Row {i}")), grade)
            }
        })
        .collect()
}

fn training() -> ProbeTraining {
    let c = vec![0.01, 1.0];
    ProbeTraining { layers: [0, 1, 2].map(Layer).to_vec(), folds: 3, c, ..ProbeTraining::default() }
}

fn origin() -> TrainingOrigin {
    let model = ProbedModel { n_heads: Some(D_MODEL), ..model(D_MODEL) };
    let notes = BTreeMap::from([("program".to_owned(), "test 1".to_owned())]);
    TrainingOrigin { model, aspect: "fluency".into(), template_id: Some("t".into()), notes }
}

fn train(training: &ProbeTraining, rows: &[GradedRow]) -> TrainedProbe {
    training.train(rows, &Told::new(rows), &origin()).unwrap()
}

#[track_caller]
fn refused(training: &ProbeTraining, rows: &[GradedRow]) -> TrainingError {
    let checked = training.check(rows);
    match training.train(rows, &Told::new(rows), &origin()) {
        Err(Error::Training(error)) => {
            // By their text: a grade of NaN is not equal to itself.
            let told = checked.unwrap_err().to_string();
            assert_eq!(told, error.to_string(), "before signals are asked for");
            error
        }
        other => panic!("{other:?}"),
    }
}

/// As `GridSearchCV` finds it over `TfidfVectorizer` and `LogisticRegression`, without a scaler: see `scripts/probe/tfidf_fixtures.py`.
#[test]
fn the_baseline_of_words_is_scikit_learns() {
    let fixture: Value = fixture("tfidf_logistic");
    let expected = &fixture["baseline"];
    let part = |split: &str, texts: &Value, labels: &Value| -> Vec<GradedRow> {
        let graded = texts.as_array().unwrap().iter().zip(labels.as_array().unwrap()).enumerate();
        graded
            .map(|(i, (text, label))| GradedRow {
                split: Some(split.to_owned()),
                ..GradedRow::new(
                    format!("{split}-{i}"),
                    Prompt::Raw(text.as_str().unwrap().to_owned()),
                    label.as_f64().unwrap(),
                )
            })
            .collect()
    };
    let learnt = part("train", &fixture["texts"], &expected["labels"]);
    let tested = part("test", &fixture["unseen"], &expected["unseen_labels"]);
    let TrainedProbe { report, .. } = train(&ProbeTraining { folds: 5, ..training() }, &[learnt, tested].concat());
    let found = &report.splits["test"].predictors["tfidf"];
    for (name, found) in
        [("weighted_f1", &found.weighted_f1), ("macro_f1", &found.macro_f1), ("accuracy", &found.accuracy)]
    {
        let (found, expected) = (found.estimate().unwrap(), expected[name].as_f64().unwrap());
        assert!((found - expected).abs() < 1e-12, "{name}: {found}, expected {expected}");
    }
}

#[test]
fn answers_of_one_character_have_no_baseline_of_words() {
    let mut rows = rows(120);
    rows.iter_mut().enumerate().for_each(|(i, row)| row.response = ["A", "B", "是"][i % 3].to_owned());
    let TrainedProbe { report, .. } = train(&training(), &rows);
    assert_eq!(report.splits["test"].predictors.keys().collect::<Vec<_>>(), ["majority", "probe", "surface"]);
    let artefacts = &report.artefacts["test"].baselines;
    assert_eq!(artefacts.iter().map(|baseline| baseline.name.as_str()).collect::<Vec<_>>(), ["surface"]);
}

#[test]
fn the_layer_that_tells_is_chosen_and_saved_with_its_provenance() {
    let rows = rows(120);
    let TrainedProbe { probe, report } = train(&training(), &rows);
    assert_eq!((report.n, report.unscored, report.rounded, report.n_train, report.folds), (120, 0, 0, 96, 3));
    assert_eq!(report.chosen[0].layer, Layer(2));
    assert_eq!(report.selection.scan.len(), 6, "two poolings of three layers");
    let test = &report.splits["test"];
    assert_eq!(test.n, 24);
    assert_eq!(test.predictors.keys().collect::<Vec<_>>(), ["majority", "probe", "surface", "tfidf"]);
    assert_eq!(Outcome::of(&test.gain_over["majority"].weighted_f1), Outcome::Better);
    assert!(
        test.findings(str::to_owned)[0].starts_with("the probe beats majority"),
        "{:?}",
        test.findings(str::to_owned)
    );
    // No question is on both sides.
    assert_eq!(report.artefacts["test"].questions.found, []);

    let origin = probe.origin();
    let signals: Vec<(Layer, Signal)> =
        report.chosen.iter().flat_map(|view| view.pooling.signals().map(|signal| (view.layer, signal))).collect();
    assert_eq!(origin.signals, signals);
    // What it stores is what it came to on rows that had no part in the choice, not the best of the search.
    let validation = origin.validation.as_ref().unwrap();
    assert_eq!(Some(validation.mean), test.predictors["probe"].macro_f1.estimate());
    assert_eq!((validation.folds.len(), validation.scoring.as_str()), (1, "f1_macro"));
    let note = |name: &str| origin.notes.get(name).map(String::as_str);
    assert_eq!([note("aspect"), note("template_id"), note("program")], [Some("fluency"), Some("t"), Some("test 1")]);
    assert_eq!([note("classification"), note("n_train")], [Some("multi"), Some("96")]);
    assert!(["0.01", "1"].contains(&note("c").unwrap()));
    assert_eq!(SavedProbe::from_bytes(&probe.to_bytes().unwrap()).unwrap(), probe);

    // The report has names where files had bare lists.
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["chosen"][0]["layer"], 2);
    assert!(json["chosen"][0]["pooling"].is_string());
    assert_eq!(json["selection"]["scan"][0]["view"]["reading"], "last");
}

#[test]
fn the_probe_is_kept_with_a_calibrator_of_the_grades() {
    let rows = rows(240);
    let TrainedProbe { probe, report } = train(&training(), &rows);
    let Some(ProbeCalibration::Kept { out_of_fold, held_out }) = &report.calibration else {
        panic!("{:?}", report.calibration)
    };
    assert_eq!((out_of_fold.n, out_of_fold.level), (report.n_train, 0.9));
    assert!((0.8..=1.0).contains(&out_of_fold.coverage.estimate().unwrap()), "{out_of_fold:?}");
    assert_eq!(held_out.keys().collect::<Vec<_>>(), ["test"]);
    let test = held_out["test"];
    assert_eq!(test.coverage.n, report.splits["test"].n);
    assert!(test.coverage.estimate().unwrap() > 0.75, "{test:?}");
    // Closer to the grades than their own mean is (1 on average), and intervals on the scale.
    assert!(test.error < 0.7 && 0.0 < test.width && test.width <= 4.0, "{test:?}");

    let calibrator = probe.calibrator().unwrap();
    assert_eq!(calibrator.n(), report.n_train);
    for number in [-9.0, 1.0, 2.5, 9.0] {
        let found = calibrator.calibrate(number).unwrap();
        assert!(1.0 <= found.interval.low && found.interval.high <= 5.0, "{found:?}");
    }
    assert_eq!(SavedProbe::from_bytes(&probe.to_bytes().unwrap()).unwrap(), probe);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["calibration"]["out_of_fold"]["n"], report.n_train);
    assert_eq!(json["calibration"]["held_out"]["test"]["coverage"]["n"], report.splits["test"].n);

    // Two classes are calibrated to the grades too, not to 0 and 1.
    let binary = train(&ProbeTraining { grading: Grading::AtLeast(3.0), ..training() }, &rows);
    let high = binary.probe.calibrator().unwrap().calibrate(1.0).unwrap();
    assert!((2.8..=4.0).contains(&high.value), "{high:?}");

    let off = train(&ProbeTraining { calibration: None, ..training() }, &rows);
    assert_eq!((off.probe.calibrator(), &off.report.calibration), (None, &None));
    assert!(serde_json::to_value(&off.report).unwrap().get("calibration").is_none());
    assert_eq!(off.probe, probe.without_calibrator());
}

#[test]
fn why_there_is_no_calibrator_is_said() {
    let undefined = |training: &ProbeTraining, rows: &[GradedRow]| {
        let TrainedProbe { probe, report } = train(training, rows);
        assert_eq!(probe.calibrator(), None);
        match report.calibration {
            Some(ProbeCalibration::Undefined { undefined }) => undefined,
            other => panic!("{other:?}"),
        }
    };
    let svm = ProbeTraining { classifier: ProbeClassifier::LinearKernelSvc, ..training() };
    assert!(undefined(&svm, &rows(60)).contains("no number to calibrate"));
    let strict = Calibrator { level: 0.99, ..Calibrator::default() };
    let strict = ProbeTraining { calibration: Some(strict), ..training() };
    assert!(undefined(&strict, &rows(60)).contains("48"));
    // A setting that is wrong whatever the rows is an error.
    let none = Calibrator { level: 1.5, ..Calibrator::default() };
    let none = ProbeTraining { calibration: Some(none), ..training() };
    let rows = rows(60);
    let refused = none.train(&rows, &Told::new(&rows), &origin());
    assert!(matches!(refused, Err(Error::Metric(_))), "{refused:?}");
}

#[test]
fn equal_rows_give_equal_bytes_and_other_grades_another_hash() {
    let mut rows = rows(90);
    let (first, again) = (train(&training(), &rows), train(&training(), &rows));
    assert_eq!(first, again);
    assert_eq!(first.probe.to_bytes().unwrap(), again.probe.to_bytes().unwrap());
    rows[0].prompt = Prompt::user("another");
    let hash = |trained: &TrainedProbe| trained.probe.origin().data_hash.clone();
    let other = train(&training(), &rows);
    let trained_on = other.report.n_train;
    assert!(trained_on < 90);
    // Row 0 is in the training part, so its prompt is part of the hash.
    assert_ne!(hash(&first), hash(&other));
}

#[test]
fn a_closure_is_enough() {
    let rows = rows(60);
    let told = Told::new(&rows);
    let states = |of: &[usize], layer: Layer, signals: &[Signal]| told.matrix(of, layer, signals);
    let trained = training().train(&rows, &states, &origin()).unwrap();
    assert_eq!(trained, train(&training(), &rows));
}

#[test]
fn rows_that_could_not_be_read_are_counted_and_left_out() {
    let rows = rows(120);
    let signals = Told { unread: vec![0, 5, 119], ..Told::new(&rows) };
    let report = training().train(&rows, &signals, &origin()).unwrap().report;
    assert_eq!((report.n, report.unscored), (120, 3));
    assert_eq!(report.n_train + report.splits["test"].n, 117);
    let none = Told { unread: (0..120).collect(), ..Told::new(&rows) };
    let error = training().train(&rows, &none, &origin()).unwrap_err();
    assert_eq!(error, Error::Training(TrainingError::NothingRead { n_rows: 120 }));
}

/// What has learned the same rows elsewhere is compared as the model's own score is, and must answer for every row.
#[test]
fn a_tuned_model_is_a_baseline_where_there_is_one() {
    let rows = rows(120);
    let tuned = |untuned| Told { untuned: Some(untuned), ..Told::new(&rows) };
    let report = training().train(&rows, &tuned(0), &origin()).unwrap().report;
    assert_eq!(report.splits["test"].predictors["tuned"].accuracy.estimate(), Some(1.0));
    assert!(report.splits["test"].gain_over.contains_key("tuned"));
    let error = training().train(&rows, &tuned(1), &origin()).unwrap_err();
    assert!(matches!(error, Error::Training(TrainingError::TunedRows { .. })), "{error}");
}

#[test]
fn the_models_own_score_is_a_baseline_where_it_was_read() {
    let rows = rows(120);
    let signals = Told { logits: 4, ..Told::new(&rows) };
    let report = training().train(&rows, &signals, &origin()).unwrap().report;
    let prompted = report.splits["test"].predictors["prompted"].accuracy.estimate().unwrap();
    let tested: Vec<usize> = report.artefacts["test"].label_counts.iter().map(|&(_, n)| n).collect();
    assert_eq!(tested.len(), 4);
    // Right where the grade is 4, one too high elsewhere; the share of grade 4 among the rows tested on is not known here.
    assert!(prompted < 0.5, "{prompted}");
    // For two classes the probabilities of the grades are added up: 4 is said of 3 and 4 alone, so that only 3 is wrong.
    let binary = ProbeTraining { grading: Grading::AtLeast(4.0), ..training() };
    let report = binary.train(&rows, &signals, &origin()).unwrap().report;
    let accuracy = report.splits["test"].predictors["prompted"].accuracy.estimate().unwrap();
    assert!(accuracy > prompted, "{accuracy} {prompted}");

    let wrong = Told { logits: 3, ..Told::new(&rows) };
    let error = training().train(&rows, &wrong, &origin()).unwrap_err();
    assert!(matches!(error, Error::Training(TrainingError::GradeLogits { expected: 4, found: 3, .. })), "{error}");
}

/// A row that alone has its class cannot be on both sides: it is learnt from, and the report says that it is not tested.
#[test]
fn a_class_of_one_row_is_trained_on_and_not_tested() {
    let alone = |n: usize| -> Vec<GradedRow> {
        rows(n).into_iter().enumerate().map(|(i, row)| GradedRow { group: format!("{i}"), ..row }).collect()
    };
    let mut rows = alone(60);
    let before = train(&training(), &rows);
    assert_eq!(before.report.untested, [0; 0]);
    assert!(serde_json::to_value(&before.report).unwrap().get("untested").is_none());
    rows[31].grade = 5.0;
    let TrainedProbe { probe, report } = train(&training(), &rows);
    assert_eq!((&report.untested[..], report.n_train, report.splits["test"].n), (&[5][..], 48, 12));
    assert_eq!(judge_core::inspector::Probe::classes(&probe), [1, 2, 3, 4, 5]);
    // Of two classes the rare one is in one fold, and nothing is learnt in the fold that tests on it.
    let rare = 7;
    let mut two = alone(60);
    two.iter_mut().enumerate().for_each(|(i, row)| row.grade = if i == rare { 4.0 } else { 2.0 });
    let expected = TrainingError::OneClassFold { class: 2, ids: vec![(rare as u64).into()] };
    assert_eq!(refused(&training(), &two), expected);
    // The same where the data say what is trained on.
    two.iter_mut().enumerate().for_each(|(i, row)| row.split = Some(["test", "train"][i % 2].to_owned()));
    assert_eq!(refused(&training(), &two), expected);
    // Where every class is such, nothing can be drawn.
    let mut each = alone(4);
    each.iter_mut().enumerate().for_each(|(i, row)| row.grade = 1.0 + i as f64);
    assert!(matches!(training().check(&each), Err(Error::SmallClass { n_rows: 1, required: 2, .. })));
}

#[test]
fn named_splits_are_kept_to() {
    let mut rows = rows(120);
    for (i, row) in rows.iter_mut().enumerate() {
        row.split = Some(["train", "train", "train", "new", "old"][i / 24].to_owned());
    }
    let report = train(&training(), &rows).report;
    assert_eq!(report.n_train, 72);
    assert_eq!(
        report.splits.iter().map(|(name, of)| (name.as_str(), of.n)).collect::<Vec<_>>(),
        [("new", 24), ("old", 24)]
    );

    rows[7].split = None;
    assert_eq!(refused(&training(), &rows), TrainingError::NoSplit { id: 7_u64.into() });
    rows.iter_mut().for_each(|row| row.split = Some("train".into()));
    assert_eq!(refused(&training(), &rows), TrainingError::NoTestRows);
    rows.iter_mut().for_each(|row| row.split = Some("a".into()));
    assert_eq!(refused(&training(), &rows), TrainingError::NoTrainRows { found: vec!["a".into()] });
}

#[test]
fn grades_are_checked_against_their_scale_and_rounding_is_counted() {
    let mut rows = rows(120);
    rows[11].grade = 2.5;
    rows[12].grade = 3.25;
    assert_eq!(train(&training(), &rows).report.rounded, 2);
    let binary = ProbeTraining { grading: Grading::AtLeast(3.0), ..training() };
    let report = train(&binary, &rows).report;
    assert_eq!((report.rounded, report.artefacts["test"].label_counts.len()), (0, 2));

    for grade in [0.0, 5.5, 70.0, f64::NAN, f64::INFINITY] {
        rows[30].grade = grade;
        let error = refused(&training(), &rows);
        assert!(matches!(error, TrainingError::OffScale { ref id, .. } if *id == 30_u64.into()), "{error}");
        assert!(error.to_string().contains("the grade of 30 is") && error.to_string().ends_with("the scale 1-5"));
    }
    rows[30].grade = 7.0;
    let wide = ProbeTraining { scale: GradeScale { low: 1.0, high: 7.0 }, ..training() };
    assert_eq!(refused(&training(), &rows).to_string(), "the grade of 30 is 7, expected one on the scale 1-5");
    assert!(!matches!(
        wide.train(&rows, &Told::new(&rows), &origin()),
        Err(Error::Training(TrainingError::OffScale { .. }))
    ));

    rows.iter_mut().for_each(|row| row.grade = 3.0);
    assert_eq!(refused(&training(), &rows), TrainingError::OneClass { class: 3, n_rows: 120 });
    assert_eq!(refused(&training(), &[]), TrainingError::NoRows);
    rows.iter_mut().enumerate().for_each(|(i, row)| row.grade = (i % 25) as f64);
    let percent = ProbeTraining { scale: GradeScale { low: 0.0, high: 100.0 }, ..training() };
    assert_eq!(refused(&percent, &rows), TrainingError::ManyClasses { found: 25, most: 20 });
}

#[test]
fn a_support_vector_machine_and_entropies_can_be_trained() {
    let rows = rows(90);
    let settings = ProbeTraining {
        classifier: ProbeClassifier::LinearKernelSvc,
        attention_entropy: true,
        views: vec![View::Concat],
        ..training()
    };
    let trained = train(&settings, &rows);
    let first = trained.report.chosen[0];
    assert_eq!((first.layer, first.pooling), (Layer(2), View::Concat));
    let expected = [Pooling::Min, Pooling::Max, Pooling::Mean].map(Signal::State);
    assert_eq!(settings.signals(Layer(2), View::Concat), [&expected[..], &[Signal::AttentionEntropy]].concat());
    assert_eq!(settings.signals(Layer(0), View::Concat), expected, "the embeddings attend to nothing");
    assert_eq!(settings.all_signals().len(), 3 + 4 + 4);
    let row = Matrix::new(vec![0.0; trained.probe.probe().n_features()], trained.probe.probe().n_features()).unwrap();
    assert_eq!(trained.probe.probe().predict_proba(&row).unwrap(), None);
}

#[test]
fn settings_out_of_range_are_refused() {
    let rows = rows(60);
    let error = |settings: ProbeTraining| settings.train(&rows, &Told::new(&rows), &origin()).unwrap_err();
    assert!(matches!(error(ProbeTraining { top_k: 0, ..training() }), Error::NoLayers));
    assert!(matches!(error(ProbeTraining { folds: 1, ..training() }), Error::FewSplits { n_splits: 1 }));
    assert!(matches!(
        error(ProbeTraining { test_share: 1.0, ..training() }),
        Error::OutOfRange { setting: "the share tested on", .. }
    ));
    for (setting, without) in [
        ("layers", ProbeTraining { layers: Vec::new(), ..training() }),
        ("views", ProbeTraining { views: Vec::new(), ..training() }),
        ("c", ProbeTraining { c: Vec::new(), ..training() }),
    ] {
        assert!(matches!(error(without), Error::EmptySetting { setting: found } if found == setting), "{setting}");
    }
    let wide = TrainingOrigin { model: ProbedModel { d_model: 5, ..origin().model }, ..origin() };
    assert!(matches!(training().train(&rows, &Told::new(&rows), &wide), Err(Error::SavedProbe(_))));
}

#[test]
fn statistics_that_the_rows_do_not_define_say_why() {
    let rows = rows(120);
    let majority = &train(&training(), &rows).report.splits["test"].predictors["majority"];
    assert!(matches!(&majority.spearman, Statistic::Undefined { reason } if !reason.is_empty()));
    assert_eq!(format!("{:#}", majority.spearman), "undefined");
    assert!(majority.accuracy.to_string().contains('['));
    // In files as others have them.
    let json = serde_json::to_value(majority).unwrap();
    let keys = |name: &str| json[name].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(
        (keys("accuracy"), keys("spearman")),
        (vec!["estimate".into(), "low".into(), "high".into()], vec!["undefined".into()])
    );
    let whole = serde_json::to_value(&majority.accuracy).unwrap();
    assert_eq!(whole.as_object().unwrap().keys().collect::<Vec<_>>(), ["estimate", "low", "high", "p", "method"]);
    assert_eq!(serde_json::to_value(&majority.spearman).unwrap(), json["spearman"]);
}

/// The name is older than the type's.
#[test]
fn classifiers_keep_their_names_in_files() {
    for (classifier, name) in
        [(ProbeClassifier::Logistic, "logistic"), (ProbeClassifier::LinearKernelSvc, "linear_svc")]
    {
        assert_eq!(serde_json::to_value(classifier).unwrap(), name);
        assert_eq!(serde_json::from_value::<ProbeClassifier>(name.into()).unwrap(), classifier);
    }
}

/// Each question's answers have one grade, which the states tell by the question alone.
fn answers_to_questions(n_questions: usize, each: usize) -> Vec<GradedRow> {
    let row = |i: usize| {
        let question = i / each;
        let prompt = format!("Question: How many steps are there in tower {question}?\nAnswer: {}", 13 * i % 101);
        GradedRow::new(i as u64, Prompt::user(prompt), f64::from(u8::from(question * question % 7 < 3)) + 1.0)
    };
    (0..n_questions * each).map(row).collect()
}

/// Issue 59 (kind 9): rows of `prompt` have no question, and the report of artefacts found none that was shared.
#[test]
fn rows_that_share_a_question_unnamed_are_counted() {
    let rows = answers_to_questions(30, 4);
    let shared = |rows: &[GradedRow]| {
        let TrainedProbe { report, .. } = train(&training(), rows);
        let test = &report.artefacts["test"];
        assert!(test.questions.found.is_empty());
        (test.related.found.len(), test.related.n_tested)
    };
    let (found, tested) = shared(&rows);
    assert!(10 * found >= 9 * tested, "{found} of {tested}");
    let groups =
        judge_probe::RowGroups::of_prompts(&rows.iter().map(|row| Some(row.response.as_str())).collect::<Vec<_>>());
    let of_row = groups.group_of_row();
    let kept: Vec<GradedRow> =
        rows.into_iter().zip(of_row).map(|(row, group)| GradedRow { group: format!("{group:03}"), ..row }).collect();
    assert_eq!(shared(&kept).0, 0);
}

/// Issue 59 (kind 10): the calibrator cut rows where everything else cut groups, and claimed a coverage that no theorem gives it.
#[test]
fn calibrators_are_of_groups_and_claim_nothing() {
    // Four answers to a question, graded alike: an interval of rows knows its question already.
    let rows: Vec<GradedRow> =
        rows(240).into_iter().enumerate().map(|(i, row)| GradedRow { group: format!("{:03}", i / 4), ..row }).collect();
    let out_of_fold = |training: &ProbeTraining| match train(training, &rows).report.calibration {
        Some(ProbeCalibration::Kept { out_of_fold, .. }) => *out_of_fold,
        other => panic!("{other:?}"),
    };
    // An interval of clusters is Student's, one of rows Wilson's.
    let of_rows = |report: &CalibrationReport| {
        let wilson = report.coverage.wilson(0.95).unwrap();
        let found = report.covered.interval(0.95).unwrap();
        (found.low - wilson.low).abs() < 1e-12 && (found.high - wilson.high).abs() < 1e-12
    };
    let grouped = out_of_fold(&training());
    assert!(grouped.guaranteed == 0.0 && !of_rows(&grouped), "{grouped:?}");
    let ungrouped = out_of_fold(&ProbeTraining { grouped: false, ..training() });
    assert!(ungrouped.guaranteed == 0.0 && of_rows(&ungrouped), "{ungrouped:?}");
}
