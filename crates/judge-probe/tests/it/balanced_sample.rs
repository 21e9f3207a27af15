//! Balanced samples row for row as CPython draws them, by the fixture of `scripts/probe/balanced_sample_fixtures.py`.

use crate::fixtures::{cases, list};
use judge_probe::{BalancedSample, Error};
use serde_json::Value;

#[test]
fn draws_equal_cpythons() {
    for case in cases::<Value>("balanced_sample", 6) {
        let (n, modulus) = (case["n"].as_i64().unwrap(), case["modulus"].as_i64().unwrap());
        let scores: Vec<i64> = (0..n).map(|row| 1 + (row * row + 31 * row) % 10007 % modulus % 5).collect();
        let per_score = case["per_score"].as_u64().map(|count| count as usize);
        let drawn = BalancedSample { per_score, seed: case["seed"].as_u64().unwrap() }.draw(&scores).unwrap();
        assert_eq!(drawn, list::<usize>(&case["rows"]), "{n} rows");
    }
}

#[test]
fn a_score_with_too_few_rows_is_refused() {
    let sample = BalancedSample { per_score: Some(2), seed: 0 };
    assert_eq!(sample.draw(&[1, 1, 4]), Err(Error::SmallClass { class: 4, n_rows: 1, required: 2 }));
    assert_eq!(sample.draw(&[]), Ok(vec![]));
}
