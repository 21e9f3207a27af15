//! Pairwise accuracy with calibrated ties against the package of the WMT metrics tasks (`scripts/metrics/pairwise_accuracy_fixtures.py`),
//! and what must hold for any scores.

use judge_metrics::Error;
use judge_metrics::correlation::{pairwise_accuracy, pairwise_accuracy_at};
use judge_metrics::means::sample_mean;
use proptest::prelude::*;

use crate::fixtures::{cases, list};

#[test]
fn it_equals_the_package_of_the_metrics_tasks() {
    for case in cases("pairwise_accuracy", "cases", 5) {
        let (mut human, mut scores, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        let rows = list(&case["human"]).iter().zip(list(&case["scores"]));
        for (group, (by_people, by_judge)) in rows.enumerate() {
            for (human_score, score) in by_people.as_array().unwrap().iter().zip(by_judge.as_array().unwrap()) {
                let Some(score) = score.as_f64() else { continue };
                human.push(human_score.as_f64().unwrap());
                scores.push(score);
                groups.push(group);
            }
        }
        let found = pairwise_accuracy(&human, &scores, &groups).unwrap();
        let number = |name: &str| case[name].as_f64().unwrap();
        assert_eq!(found.threshold, number("threshold"));
        assert!((found.accuracy.estimate - number("accuracy")).abs() < 1e-12, "{found:?}");
        let without = pairwise_accuracy_at(&human, &scores, &groups, 0.0).unwrap();
        assert!((without.accuracy.estimate - number("without")).abs() < 1e-12, "{without:?}");
    }
}

#[test]
fn bad_input_is_refused() {
    let (human, scores) = ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]);
    assert!(pairwise_accuracy(&human, &scores, &[1, 2, 3]).unwrap_err().is_undefined());
    assert!(matches!(pairwise_accuracy(&human, &scores, &[1, 2]).unwrap_err(), Error::LengthMismatch { .. }));
    assert!(matches!(pairwise_accuracy(&human[..1], &scores[..1], &[1]).unwrap_err(), Error::TooFewItems { .. }));
    let wide = [f64::MAX, f64::MIN, 0.0];
    assert!(matches!(pairwise_accuracy(&human, &wide, &[1, 1, 1]).unwrap_err(), Error::NonFinite { .. }));
    for threshold in [-1.0, f64::NAN, f64::INFINITY] {
        let refused = pairwise_accuracy_at(&human, &scores, &[1, 1, 1], threshold);
        assert!(matches!(refused, Err(Error::OutOfRange { argument: "threshold", .. })));
    }
}

fn graded() -> impl Strategy<Value = Vec<(i32, i32, u8)>> {
    prop::collection::vec((1_i32..5, 0_i32..12, 0_u8..4), 2..40)
}

proptest! {
    /// No other threshold does better, and the accuracy at the threshold found is the one found.
    #[test]
    fn no_threshold_is_better(rows in graded(), other in 0_i32..14) {
        let human: Vec<f64> = rows.iter().map(|row| f64::from(row.0)).collect();
        let scores: Vec<f64> = rows.iter().map(|row| f64::from(row.1)).collect();
        let groups: Vec<u8> = rows.iter().map(|row| row.2).collect();
        let Ok(best) = pairwise_accuracy(&human, &scores, &groups) else { return Ok(()) };
        let at = |threshold: f64| pairwise_accuracy_at(&human, &scores, &groups, threshold).unwrap().accuracy.estimate;
        prop_assert_eq!(at(best.threshold), best.accuracy.estimate);
        prop_assert!(at(f64::from(other)) <= best.accuracy.estimate + 1e-9);
        prop_assert!((0.0..=1.0).contains(&best.accuracy.estimate));
        // By the definition, without any sorting.
        let mut by_group: Vec<Vec<bool>> = vec![Vec::new(); 4];
        for a in 0..rows.len() {
            for b in 0..a {
                if groups[a] == groups[b] {
                    let (people, judge) = (human[a] - human[b], scores[a] - scores[b]);
                    let tied = judge.abs() <= best.threshold;
                    by_group[groups[a] as usize].push(if tied { people == 0.0 } else { people * judge > 0.0 });
                }
            }
        }
        let shares: Vec<f64> = by_group
            .iter()
            .filter(|pairs| !pairs.is_empty())
            .map(|pairs| pairs.iter().filter(|right| **right).count() as f64 / pairs.len() as f64)
            .collect();
        prop_assert!((shares.iter().sum::<f64>() / shares.len() as f64 - best.accuracy.estimate).abs() < 1e-12);
        // Groups are the draws: Student's interval of their shares, within [0, 1].
        prop_assert_eq!(best.accuracy.n, shares.len());
        if let Ok(interval) = best.accuracy.interval(0.95) {
            let plain = sample_mean(&shares).unwrap().interval(0.95).unwrap();
            let (low, high) = (plain.low.max(0.0), plain.high.min(1.0));
            prop_assert!((interval.low - low).abs() < 1e-12 && (interval.high - high).abs() < 1e-12, "{interval:?}");
        }
    }

    /// Neither the order of items, nor the unit of scores, nor which side is called larger matters.
    #[test]
    fn order_unit_and_direction_do_not_matter(rows in graded(), turn in 0_usize..40) {
        let column = |rows: &[(i32, i32, u8)], sign: f64| -> (Vec<f64>, Vec<f64>, Vec<u8>) {
            let human = rows.iter().map(|row| sign * f64::from(row.0)).collect();
            (human, rows.iter().map(|row| sign * 4.0 * f64::from(row.1)).collect(), rows.iter().map(|row| row.2).collect())
        };
        let mut turned = rows.clone();
        turned.rotate_left(turn % rows.len());
        let (human, scores, groups) = column(&rows, 1.0);
        let (others, other_scores, other_groups) = column(&turned, -1.0);
        let (a, b) = (pairwise_accuracy(&human, &scores, &groups), pairwise_accuracy(&others, &other_scores, &other_groups));
        prop_assert_eq!(a, b);
    }
}
