//! TF-IDF weights, and what logistic regression learns from them, equal scikit-learn's on the fixtures of
//! `scripts/probe/tfidf_fixtures.py`.

use crate::fixtures::{assert_close, fixture, list};
use judge_probe::{ClassWeight, Error, LogisticRegression, TfidfVectorizer};
use serde::Deserialize;
use serde_json::Value;

#[test]
fn words_and_weights_equal_scikit_learns() {
    let fixture: Value = fixture("tfidf");
    let learnt: Vec<&str> = list(&fixture["texts"]);
    let all = [learnt.clone(), list(&fixture["unseen"])].concat();
    let cases = fixture["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    for case in cases {
        let fitted = TfidfVectorizer { min_df: case["min_df"].as_u64().unwrap() as usize }.fit(&learnt).unwrap();
        assert_eq!(fitted.words(), list::<&str>(&case["words"]));
        for (ours, expected) in fitted.idf().iter().zip(case["idf"].as_array().unwrap()) {
            assert!((ours - expected.as_f64().unwrap()).abs() < 1e-14);
        }
        let weights = fitted.transform(&all).unwrap();
        let rows = case["weights"].as_array().unwrap();
        assert_eq!(weights.n_rows(), rows.len());
        for (ours, expected) in weights.rows().zip(rows) {
            let (ours, expected) = (ours.collect::<Vec<_>>(), expected.as_array().unwrap());
            assert_eq!(ours.len(), expected.len());
            for ((place, weight), pair) in ours.into_iter().zip(expected) {
                assert_eq!(Some(place as u64), pair[0].as_u64());
                assert!((weight - pair[1].as_f64().unwrap()).abs() < 1e-15);
            }
        }
    }
}

#[derive(Deserialize)]
struct Classified {
    texts: Vec<String>,
    unseen: Vec<String>,
    n_words: usize,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    c: f64,
    balanced: bool,
    labels: Vec<i64>,
    /// Row by row, of every so manieth word.
    coefficients: Vec<f64>,
    stride: usize,
    intercepts: Vec<f64>,
    /// Of the first of the unseen texts.
    probabilities: Vec<f64>,
    predicted: Vec<i64>,
}

/// With the words as they are weighted: nothing is centred and nothing scaled.
#[test]
fn logistic_regression_on_words_equals_scikit_learns() {
    let Classified { texts, unseen, n_words, cases } = fixture("tfidf_logistic");
    assert_eq!(cases.len(), 8);
    let words = TfidfVectorizer::default().fit(&texts).unwrap();
    assert_eq!(words.words().len(), n_words);
    let (learnt, unseen) = (words.transform(&texts).unwrap(), words.transform(&unseen).unwrap());
    for case in cases {
        let class_weight = if case.balanced { ClassWeight::Balanced } else { ClassWeight::Uniform };
        let settings = LogisticRegression { c: case.c, class_weight, ..LogisticRegression::default() };
        let fitted = settings.fit_sparse(&learnt, &case.labels).unwrap();
        let close = |name: &str, ours: &[f64], expected: &[f64]| {
            assert_close(&format!("C {}: {name}", case.c), ours, expected, 2e-6);
        };
        let coefficients: Vec<f64> = fitted.coefficients().values().iter().copied().step_by(case.stride).collect();
        close("coefficients", &coefficients, &case.coefficients);
        close("intercepts", fitted.intercepts(), &case.intercepts);
        let predictions = fitted.sparse_predictions(&unseen).unwrap();
        assert_eq!(predictions.labels, case.predicted, "C {}", case.c);
        let table = predictions.probabilities.unwrap();
        close("probabilities", &table.probabilities().values()[..case.probabilities.len()], &case.probabilities);
    }
}

/// As dense weights in double precision these would be 20 GB, which no machine for tests has twice.
#[test]
fn memory_is_that_of_the_words_that_occur() {
    let text = |row: usize| (0..5).map(|k| format!("{} {row}x{k} ", ["yes", "no"][row % 2])).collect::<String>();
    let texts: Vec<String> = (0..20_000).map(text).collect();
    let words = TfidfVectorizer::default().fit(&texts).unwrap();
    assert_eq!(words.words().len(), 100_002);
    let weights = words.transform(&texts).unwrap();
    assert_eq!((weights.n_rows(), weights.n_features()), (20_000, 100_002));
    let labels: Vec<i64> = (0..20_000).map(|row| row % 2).collect();
    let fitted = LogisticRegression::default().fit_sparse(&weights, &labels).unwrap();
    assert_eq!(fitted.sparse_predictions(&weights).unwrap().labels, labels);
    let other = TfidfVectorizer::default().fit(&["one two"]).unwrap().transform(&["one"]).unwrap();
    assert_eq!(fitted.sparse_predictions(&other), Err(Error::FeatureCount { expected: 100_002, found: 2 }));
    assert_eq!(
        LogisticRegression::default().fit_sparse(&other, &[1, 2]),
        Err(Error::RowCount { n_rows: 1, what: "labels", found: 2 })
    );
}

#[test]
fn texts_without_words_are_refused() {
    let none = TfidfVectorizer::default().fit(&["a b c", "", "?!"]);
    assert_eq!(none, Err(Error::NoWords { n_texts: 3, min_df: 1 }));
    let rare = TfidfVectorizer { min_df: 2 }.fit(&["one", "two"]);
    assert_eq!(rare, Err(Error::NoWords { n_texts: 2, min_df: 2 }));
    let fitted = TfidfVectorizer::default().fit(&["one two"]).unwrap();
    assert_eq!(fitted.transform::<&str>(&[]), Err(Error::Empty { n_rows: 0, n_features: 2 }));
}
