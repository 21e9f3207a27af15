//! The best of n: by hand on two questions, and what is not defined.

use judge_metrics::Error;
use judge_metrics::comparison::{BestOf, RankedAnswers, Statistic};
use judge_metrics::resampling::Bootstrap;

fn question(scores: &[Option<f64>], grades: &[f64]) -> RankedAnswers {
    RankedAnswers { scores: scores.to_vec(), grades: grades.to_vec() }
}

fn statistics(questions: Vec<RankedAnswers>) -> Result<Vec<(&'static str, Statistic)>, Error> {
    BestOf { questions, bootstrap: Bootstrap { resamples: 200, ..Bootstrap::default() } }.statistics()
}

fn estimate(found: &[(&str, Statistic)], name: &str) -> Option<f64> {
    found.iter().find(|(known, _)| *known == name).unwrap().1.estimate()
}

#[test]
fn by_hand() {
    let found = statistics(vec![
        // The two of the highest score are chosen with the same probability; one of them is the best.
        question(&[Some(2.0), Some(2.0), Some(1.0), None], &[5.0, 1.0, 2.0, 4.0]),
        question(&[Some(0.1), Some(0.3)], &[3.0, 3.0]),
    ])
    .unwrap();
    let expected = [
        ("best_share", f64::midpoint(0.5, 1.0)),
        ("best_share_at_random", f64::midpoint(0.25, 1.0)),
        ("chosen_grade", 3.0),
        ("mean_grade", 3.0),
        ("highest_grade", 4.0),
        ("gain", 0.0),
        // Of three pairs: equal scores count half, then right, then wrong.
        ("pair_accuracy", 0.5),
    ];
    assert_eq!(found.len(), expected.len());
    for (name, value) in expected {
        assert_eq!(estimate(&found, name), Some(value), "{name}");
    }
}

#[test]
fn order_and_unit_of_scores_do_not_matter() {
    let one = question(&[Some(0.2), Some(0.9), Some(0.2)], &[1.0, 2.0, 4.0]);
    let other = question(&[Some(20.0), Some(20.0), Some(90.0)], &[4.0, 1.0, 2.0]);
    assert_eq!(statistics(vec![one.clone(), one]).unwrap(), statistics(vec![other.clone(), other]).unwrap());
}

#[test]
fn what_is_not_defined_says_so_and_bad_input_is_refused() {
    let equal = statistics(vec![question(&[Some(1.0), Some(2.0)], &[3.0, 3.0])]).unwrap();
    for name in ["gain", "pair_accuracy"] {
        assert!(matches!(&equal.iter().find(|(n, _)| *n == name).unwrap().1, Statistic::Undefined { .. }), "{name}");
    }
    assert!(matches!(statistics(vec![]), Err(Error::TooFewItems { .. })));
    assert!(matches!(statistics(vec![question(&[None], &[1.0])]), Err(Error::TooFewItems { .. })));
    assert!(matches!(statistics(vec![question(&[Some(1.0)], &[])]), Err(Error::LengthMismatch { .. })));
    assert!(matches!(statistics(vec![question(&[Some(f64::NAN)], &[1.0])]), Err(Error::NonFinite { .. })));
    assert!(matches!(statistics(vec![question(&[Some(1.0)], &[f64::INFINITY])]), Err(Error::NonFinite { .. })));
}
