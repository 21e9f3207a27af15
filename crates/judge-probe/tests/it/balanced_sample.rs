//! Balanced samples row for row as CPython draws them, by the fixture of `scripts/probe/balanced_sample_fixtures.py`.

use judge_probe::{BalancedSample, Error};
use serde_json::Value;

#[test]
fn draws_equal_cpythons() {
    let fixture: Value = serde_json::from_str(include_str!("../fixtures/balanced_sample.json")).unwrap();
    let cases = fixture["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let (n, modulus) = (case["n"].as_i64().unwrap(), case["modulus"].as_i64().unwrap());
        let scores: Vec<i64> = (0..n).map(|row| 1 + (row * row + 31 * row) % 10007 % modulus % 5).collect();
        let per_score = case["per_score"].as_u64().map(|count| count as usize);
        let drawn = BalancedSample { per_score, seed: case["seed"].as_u64().unwrap() }.draw(&scores).unwrap();
        let expected = case["rows"].as_array().unwrap().iter().map(|row| row.as_u64().unwrap() as usize);
        assert!(drawn.into_iter().eq(expected), "{n} rows");
    }
}

#[test]
fn a_score_with_too_few_rows_is_refused() {
    let sample = BalancedSample { per_score: Some(2), seed: 0 };
    assert_eq!(sample.draw(&[1, 1, 4]), Err(Error::SmallClass { class: 4, n_rows: 1, required: 2 }));
    assert_eq!(sample.draw(&[]), Ok(vec![]));
}
