//! The report of label artefacts, on made data with one artefact of each kind and on INSPECTOR's GSM8K probing set.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::collections::BTreeMap;
use std::path::Path;

use judge_metrics::resampling::{Bootstrap, PermutationTest};
use judge_probe::artefacts::{ArtefactCheck, ArtefactReport, Duplicate, LabelledTexts, Neighbour, Shift, SourceCounts};
use judge_probe::{
    ClassWeight, Error, LogisticRegression, SURFACE_FEATURES, Scoring, Split, StratifiedKFold, TfidfVectorizer,
    surface_features,
};
use serde_json::Value;

fn check() -> ArtefactCheck {
    ArtefactCheck {
        classifier: LogisticRegression { class_weight: ClassWeight::Balanced, ..LogisticRegression::default() },
        vectorizer: TfidfVectorizer::default(),
        scoring: Scoring::WeightedF1,
        bootstrap: Bootstrap { resamples: 500, ..Bootstrap::default() },
    }
}

fn uneven(n_rows: usize, found: usize) -> Error {
    Error::RowCount { n_rows, what: "texts", found }
}

fn strings(texts: impl Iterator<Item = String>) -> Vec<String> {
    texts.collect()
}

/// Which baselines explain the label.
fn explaining(report: &ArtefactReport) -> Vec<&str> {
    report.baselines.iter().filter(|baseline| baseline.explains).map(|baseline| baseline.name.as_str()).collect()
}

#[test]
fn each_kind_of_artefact_is_told_from_the_others() {
    let n = 120;
    // Of no period that divides another, so that nothing tells of the labels by accident.
    let labels: Vec<i64> = (0..n).map(|row| [0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0][row * row % 11]).collect();
    let questions = strings((0..n).map(|row| format!("What is item number {row}?")));
    let splits = StratifiedKFold { n_splits: 4, shuffle: Some(1) }.split(&labels).unwrap();
    let report = |responses: &[String], sources: &[String]| {
        let rows = LabelledTexts { labels: &labels, questions: &questions, responses, sources: Some(sources) };
        check().report(&rows, &splits).unwrap()
    };
    let plain = strings((0..n).map(|row| format!("alpha beta {} gamma", ["x1", "x2", "x3"][row % 3])));
    let mute = strings((0..n).map(|row| format!("file {}", row % 5)));

    let nothing = report(&plain, &mute);
    assert_eq!(explaining(&nothing), [""; 0]);
    assert_eq!(nothing.questions.found, []);
    assert_eq!((nothing.responses.n_tested, nothing.responses.found.len()), (n, n));
    assert_eq!(nothing.label_counts.iter().map(|&(_, count)| count).sum::<usize>(), n);

    let longer = strings((0..n).map(|row| "na ".repeat(4 + 9 * labels[row] as usize)));
    assert_eq!(explaining(&report(&longer, &mute)), ["surface"]);
    let worded = strings((0..n).map(|row| format!("alpha beta {} gamma", ["good", "poor"][labels[row] as usize])));
    assert_eq!(explaining(&report(&worded, &mute)), ["tfidf"]);
    let telling = strings((0..n).map(|row| format!("file {}", labels[row])));
    let told = report(&plain, &telling);
    assert_eq!(explaining(&told), ["source"]);
    assert_eq!(told.baselines[2].score.estimate, 1.0);
    let zeros = labels.iter().filter(|&&label| label == 0).count();
    assert_eq!(told.source_counts[0], SourceCounts { source: "file 0".to_owned(), labels: vec![(0, zeros)] });
    let interval = told.majority.interval.unwrap();
    assert!(interval.low < told.majority.estimate && told.majority.estimate < interval.high);
    let json = &serde_json::to_value(&told).unwrap()["majority"];
    assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), ["estimate", "low", "high", "level"]);
    assert_eq!((&json["estimate"], &json["low"]), (&told.majority.estimate.into(), &interval.low.into()));
}

#[test]
fn duplicates_are_found_but_for_case_and_white_space() {
    let texts = |texts: [&str; 6]| texts.map(str::to_owned).to_vec();
    let questions = texts(["What is 2 + 2?", "what is  2 + 2?\n", "What is 4 + 4?", "a", "b", "c"]);
    let responses = texts(["It is 4", "It is five", "it is\t4", "no 1", "no 22", "maybe"]);
    let labels = [1, 0, 1, 0, 1, 0];
    let splits = [Split { train: vec![0, 3, 4, 5], test: vec![2, 1] }];
    let rows = LabelledTexts { labels: &labels, questions: &questions, responses: &responses, sources: None };
    let report = check().report(&rows, &splits).unwrap();
    assert_eq!(report.questions.found, [Duplicate { split: 0, test: 1, train: 0 }]);
    assert_eq!((report.questions.n_tested, report.questions.n_same_label), (2, 0));
    assert_eq!(report.responses.found, [Duplicate { split: 0, test: 2, train: 0 }]);
    assert_eq!(report.responses.n_same_label, 1);
    assert_eq!(report.baselines.len(), 2);

    let short = LabelledTexts { responses: &responses[1..], ..rows };
    assert_eq!(check().report(&short, &splits), Err(uneven(6, 5)));
    let leaking = [Split { train: vec![0, 3, 4], test: vec![3] }];
    let problem = "both learns from row 3 and tests on it".to_owned();
    assert_eq!(check().report(&rows, &leaking), Err(Error::Split { split: 0, problem }));
    assert!(matches!(check().report(&rows, &[]), Err(Error::Metric(_))));
    let rare = ArtefactCheck { vectorizer: TfidfVectorizer { min_df: 9 }, ..check() };
    assert!(matches!(rare.report(&rows, &splits), Err(Error::InSplit { split: 0, .. })));
}

/// The shifts towards the question before and the one after.
fn shifts(questions: &[String], responses: &[String]) -> [Shift; 2] {
    let test = PermutationTest { permutations: 199, ..PermutationTest::default() };
    Shift::both(questions, responses, test).unwrap().try_into().unwrap()
}

#[test]
fn responses_that_have_slipped_by_a_row_are_found() {
    let thing = |row: usize| format!("thing{} of place{} and kind{}", row, row * row % 17, row % 5);
    let questions = strings((0..60).map(|row| format!("What is the {}?", thing(row))));
    let answer = |row: usize| format!("It is the {}, so {}", thing(row), row * 31);
    let in_place = strings((0..60).map(answer));
    for (shift, neighbour) in shifts(&questions, &in_place).iter().zip([Neighbour::Before, Neighbour::After]) {
        assert_eq!(*shift, Shift { neighbour, closer: vec![], excess: 0.0, p_value: 1.0 });
    }

    // The response to question 40 is lost.
    let slipped = strings((0..60).map(|row| answer(if row < 40 { row } else { row + 1 })));
    let [before, after] = shifts(&questions, &slipped);
    assert_eq!(after.closer, (40..59).collect::<Vec<_>>());
    assert!(after.excess > 0.05 && after.p_value == 1.0 / 200.0, "{after:?}");
    // Some share a word more with the question before than with their own, as with any other.
    assert!(before.excess < 0.1 * after.excess && before.p_value > 0.1, "{before:?}");

    // Responses that have to do with no question are closer to a neighbour's by accident.
    let foreign = strings((0..60).map(|row| answer(row + 1000)));
    assert!(shifts(&questions, &foreign).iter().all(|shift| shift.p_value > 0.05));
    assert_eq!(shifts(&questions[..4], &in_place[..4])[0].closer, [0; 0]);

    let test = PermutationTest::default();
    assert_eq!(Shift::both(&questions[..1], &in_place[..1], test), Ok(vec![]));
    assert_eq!(Shift::both(&questions, &in_place[1..], test), Err(uneven(60, 59)));
}

#[test]
fn a_question_that_is_not_known_is_nobody_elses() {
    let n = 40;
    let labels: Vec<i64> = (0..n).map(|row| row * row % 3 % 2).collect();
    let responses = strings((0..n).map(|row| format!("answer {}", row % 7)));
    let splits = StratifiedKFold { n_splits: 4, shuffle: Some(1) }.split(&labels).unwrap();
    let report = |questions: Vec<String>| {
        let rows = LabelledTexts { labels: &labels, questions: &questions, responses: &responses, sources: None };
        check().report(&rows, &splits).unwrap()
    };
    let unknown = report(vec![String::new(); 40]);
    assert_eq!((unknown.questions.n_tested, unknown.questions.found.len()), (40, 0));
    assert_eq!(unknown.responses.found.len(), 40);
    // Rows are drawn one by one, as where each has a question of its own; one question for all would be no sample.
    assert!(unknown.majority.interval.is_some_and(|interval| interval.low < interval.high));
    let one = report(vec!["Why?".to_owned(); 40]);
    assert_eq!((one.questions.found.len(), one.majority.interval), (40, None));
    let json = &serde_json::to_value(&one).unwrap()["majority"];
    assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), ["estimate"]);
}

#[test]
fn surface_features_are_what_they_are_called() {
    let features = surface_features(&["Add 12 and 30", ""], &["12 + 30 = 42\nso 42, naïvely", ""]).unwrap();
    let rows: Vec<&[f64]> = features.rows().collect();
    let counts: Vec<f64> = rows[0][..6].iter().map(|value| value.exp_m1().round()).collect();
    assert_eq!(counts, [13.0, 27.0, 6.0, 2.0, 8.0, 1.0]);
    // Said: 12, 30, 42, so, naïvely. Asked: add, 12, and, 30.
    assert_eq!(rows[0][6..], [0.4, 0.5]);
    assert_eq!(rows[1], [0.0; 8]);
    assert_eq!(features.n_features(), SURFACE_FEATURES.len());
    assert_eq!(surface_features(&["a"], &["b", "c"]), Err(uneven(1, 2)));
}

/// The low fluency of INSPECTOR's GSM8K set is that of items added by hand (ids from 7473), so where a row comes from gives its label
/// away; that of other aspects does less.
#[test]
fn the_added_items_of_the_published_set_are_found() {
    let Some(data) = std::env::var_os("JUDGE_TEST_DATA") else {
        eprintln!("skipped: JUDGE_TEST_DATA is not set");
        return;
    };
    let file = std::fs::read(Path::new(&data).join("inspector/gsm8k_roscoe5dim_probing.json")).unwrap();
    let aspects: BTreeMap<String, Vec<Value>> = serde_json::from_slice(&file).unwrap();
    let report = |aspect: &str| {
        let rows = &aspects[aspect];
        let labels: Vec<i64> = rows.iter().map(|row| i64::from(row["score"].as_i64().unwrap() >= 4)).collect();
        let parts = |row: &Value| {
            let prompt = row["eval_prompt"].as_str().unwrap();
            let (_, rest) = prompt.split_once("\n\nQuestion:\n").unwrap();
            let (question, response) = rest.split_once("\n\nGenerated response:\n").unwrap();
            (question.to_owned(), response[..response.len() - 106].to_owned())
        };
        let (questions, responses): (Vec<String>, Vec<String>) = rows.iter().map(parts).unzip();
        let source = |row: &Value| if row["id"].as_u64().unwrap() >= 7473 { "added" } else { "gsm8k" };
        let sources: Vec<String> = rows.iter().map(|row| source(row).to_owned()).collect();
        let splits = StratifiedKFold { n_splits: 5, shuffle: Some(42) }.split(&labels).unwrap();
        let rows =
            LabelledTexts { labels: &labels, questions: &questions, responses: &responses, sources: Some(&sources) };
        (check().report(&rows, &splits).unwrap(), rows.labels.len(), shifts(&questions, &responses))
    };
    let (fluency, n, shifts) = report("fluency");
    assert_eq!(n, 85);
    assert_eq!(fluency.label_counts, [(0, 51), (1, 34)]);
    assert_eq!(fluency.source_counts[0], SourceCounts { source: "added".to_owned(), labels: vec![(0, 34)] });
    assert!(explaining(&fluency).contains(&"source"));
    // Three fifths are 0: weighted F1 3/5 · 2 · 3/(5 + 3).
    assert!((fluency.majority.estimate - 0.45).abs() < 1e-14);
    // All responses are to their own questions.
    assert!(shifts.iter().all(|shift| shift.p_value > 0.05), "{shifts:?}");
    let (factuality, ..) = report("factuality");
    assert!(!explaining(&factuality).contains(&"source"));
    assert!((factuality.majority.estimate - 0.45).abs() < 1e-14);
}
