//! Rankings of documents, against trec_eval and scikit-learn.

use judge_metrics::Error;
use judge_metrics::retrieval::{average_precision, ndcg, recall, reciprocal_rank};
use serde_json::Value;

/// Expected values: `scripts/metrics/retrieval_fixtures.py`.
#[test]
fn statistics_are_those_of_trec_eval_and_scikit_learn() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/retrieval.json")).unwrap();
    let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(rows.len() > 30);
    for row in rows {
        let ranked: Vec<f64> = serde_json::from_value(row["ranked"].clone()).unwrap();
        let near = |name: &str, found: f64| {
            let expected = row[name].as_f64().unwrap();
            assert!((found - expected).abs() < 1e-12, "{name} of {ranked:?}: {found}, expected {expected}");
        };
        near("ndcg_10", ndcg(&ranked, Some(10)).unwrap());
        near("ndcg_3", ndcg(&ranked, Some(3)).unwrap());
        near("ndcg", ndcg(&ranked, None).unwrap());
        near("recip_rank", reciprocal_rank(&ranked, None).unwrap());
        near("recall_5", recall(&ranked, 5).unwrap());
        near("recall_10", recall(&ranked, 10).unwrap());
        near("map", average_precision(&ranked).unwrap());
    }
}

#[test]
fn a_query_without_a_relevant_document_has_no_value() {
    for ranked in [&[][..], &[0.0, 0.0]] {
        for found in [ndcg(ranked, None), reciprocal_rank(ranked, None), recall(ranked, 5), average_precision(ranked)] {
            assert!(matches!(found, Err(Error::Undefined { .. })), "{found:?}");
        }
    }
    assert!(matches!(ndcg(&[1.0, -1.0], None), Err(Error::OutOfRange { index: Some(1), .. })));
    assert!(matches!(recall(&[1.0, f64::NAN], 1), Err(Error::NonFinite { .. })));
    assert!(matches!(ndcg(&[1.0], Some(0)), Err(Error::Undefined { .. })));
    assert_eq!(reciprocal_rank(&[0.0, 0.0, 1.0], Some(2)).unwrap(), 0.0);
}
