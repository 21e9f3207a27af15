//! TF-IDF weights equal scikit-learn's on the fixture of `scripts/probe/tfidf_fixtures.py`.

use judge_probe::{Error, TfidfVectorizer};
use serde_json::Value;

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

#[test]
fn words_and_weights_equal_scikit_learns() {
    let fixture: Value = serde_json::from_str(include_str!("fixtures/tfidf.json")).unwrap();
    let learnt = texts(&fixture["texts"]);
    let all = [learnt.clone(), texts(&fixture["unseen"])].concat();
    let cases = fixture["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    for case in cases {
        let fitted = TfidfVectorizer { min_df: case["min_df"].as_u64().unwrap() as usize }.fit(&learnt).unwrap();
        assert_eq!(fitted.words(), texts(&case["words"]));
        for (ours, expected) in fitted.idf().iter().zip(case["idf"].as_array().unwrap()) {
            assert!((ours - expected.as_f64().unwrap()).abs() < 1e-14);
        }
        let weights = fitted.transform(&all).unwrap();
        let rows = case["weights"].as_array().unwrap();
        assert_eq!(weights.n_rows(), rows.len());
        for (ours, expected) in weights.rows().zip(rows) {
            let mut row = vec![0.0; ours.len()];
            for pair in expected.as_array().unwrap() {
                row[pair[0].as_u64().unwrap() as usize] = pair[1].as_f64().unwrap();
            }
            assert!(ours.iter().zip(row).all(|(ours, expected)| (ours - expected).abs() < 1e-15));
        }
    }
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
