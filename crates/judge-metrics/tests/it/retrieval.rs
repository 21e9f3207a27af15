//! Rankings of documents, against trec_eval and scikit-learn.

use judge_metrics::Error;
use judge_metrics::retrieval::Ranking;

use crate::fixtures::{fixture, list, numbers};

/// Expected values: `scripts/metrics/retrieval_fixtures.py`.
#[test]
fn statistics_are_those_of_trec_eval_and_scikit_learn() {
    let rows = fixture("retrieval");
    assert!(list(&rows).len() > 30);
    for row in list(&rows) {
        let ranked = numbers(&row["ranked"]);
        let near = |name: &str, found: f64| {
            let expected = row[name].as_f64().unwrap();
            assert!((found - expected).abs() < 1e-12, "{name} of {ranked:?}: {found}, expected {expected}");
        };
        let ranking = Ranking::new(&ranked, &[]).unwrap();
        near("ndcg_10", ranking.ndcg(Some(10)).unwrap());
        near("ndcg_3", ranking.ndcg(Some(3)).unwrap());
        near("ndcg", ranking.ndcg(None).unwrap());
        near("recip_rank", ranking.reciprocal_rank(None));
        near("recall_5", ranking.recall(5));
        near("recall_10", ranking.recall(10));
        near("map", ranking.average_precision());
    }
}

#[test]
fn a_query_without_a_relevant_document_has_no_value() {
    for ranked in [&[][..], &[0.0, 0.0]] {
        assert!(matches!(Ranking::new(ranked, &[0.0]), Err(Error::Undefined { .. })), "{ranked:?}");
    }
    assert!(matches!(Ranking::new(&[1.0, -1.0], &[]), Err(Error::OutOfRange { index: Some(1), .. })));
    assert!(matches!(Ranking::new(&[1.0], &[f64::NAN]), Err(Error::NonFinite { .. })));
    assert!(matches!(Ranking::new(&[1.0], &[]).unwrap().ndcg(Some(0)), Err(Error::Undefined { .. })));
    assert_eq!(Ranking::new(&[0.0, 0.0, 1.0], &[]).unwrap().reciprocal_rank(Some(2)), 0.0);
}

/// One query with such numbers had no nDCG, and so the mean of all had none.
#[test]
fn relevance_of_any_size_has_an_ndcg() {
    let ndcg = |unit: f64| Ranking::new(&[0.0, 2.0, 0.0, 1.0, 1.0].map(|gain| gain * unit), &[]).unwrap().ndcg(None);
    let expected = ndcg(1.0).unwrap();
    for unit in [8e307, 3.0, 1e-310] {
        assert!((ndcg(unit).unwrap() - expected).abs() < 1e-12, "{unit}");
    }
}

#[test]
fn a_document_that_is_left_out_is_never_found() {
    let missed = Ranking::new(&[0.0, 1.0], &[2.0]).unwrap();
    assert_eq!((missed.recall(9), missed.average_precision(), missed.reciprocal_rank(None)), (0.5, 0.25, 0.5));
    let best = 2.0 + 1.0 / 3_f64.log2();
    assert!((missed.ndcg(None).unwrap() - 1.0 / 3_f64.log2() / best).abs() < 1e-15);
    let all = Ranking::new(&[], &[1.0]).unwrap();
    assert_eq!(
        (all.recall(9), all.average_precision(), all.reciprocal_rank(None), all.ndcg(Some(3)).unwrap()),
        (0.0, 0.0, 0.0, 0.0)
    );
}
