//! Selective prediction, against its definitions: every order of items that are equally sure counts alike.

use judge_metrics::Error;
use judge_metrics::prediction::{
    area_under_risk_coverage, best_f1_threshold, precision_recall_curve, risk_coverage_curve,
};
use proptest::prelude::*;

/// All orders of some items.
fn orders(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |at: usize| {
        let rest: Vec<usize> =
            items.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, item)| *item).collect();
        orders(&rest).into_iter().map(move |order| std::iter::once(items[at]).chain(order).collect::<Vec<_>>())
    };
    (0..items.len()).flat_map(with_first).collect()
}

/// The mean of the risks of the surest 1, 2, … n, of one order.
fn area(losses: &[f64], order: &[usize]) -> f64 {
    let mut lost = 0.0;
    let risks = order.iter().enumerate().map(|(index, &item)| {
        lost += losses[item];
        lost / (index + 1) as f64
    });
    risks.sum::<f64>() / order.len() as f64
}

proptest! {
    #[test]
    fn the_area_is_the_mean_over_the_orders_of_ties(items in prop::collection::vec((0_u8..5, 0_u8..3), 1..7)) {
        let (losses, confidence): (Vec<f64>, Vec<f64>) =
            items.iter().map(|(loss, confidence)| (f64::from(*loss), f64::from(*confidence))).unzip();
        let all: Vec<usize> = (0..items.len()).collect();
        let falling = |order: &Vec<usize>| order.windows(2).all(|two| confidence[two[0]] >= confidence[two[1]]);
        let areas: Vec<f64> = orders(&all).iter().filter(|order| falling(order)).map(|order| area(&losses, order)).collect();
        let mean = areas.iter().sum::<f64>() / areas.len() as f64;
        let found = area_under_risk_coverage(&losses, &confidence).unwrap();
        prop_assert!((found - mean).abs() < 1e-12, "{found} {mean}");
        // The curve ends with everything answered.
        let curve = risk_coverage_curve(&losses, &confidence).unwrap();
        let last = curve.last().unwrap();
        prop_assert_eq!((last.coverage, last.risk), (1.0, losses.iter().sum::<f64>() / items.len() as f64));
        prop_assert!(curve.is_sorted_by(|a, b| a.threshold > b.threshold && a.coverage < b.coverage));
    }

    #[test]
    fn no_threshold_has_a_larger_f1(items in prop::collection::vec((any::<bool>(), -3_i8..4), 1..30)) {
        let (outcomes, scores): (Vec<bool>, Vec<f64>) =
            items.iter().map(|(outcome, score)| (*outcome, f64::from(*score))).unzip();
        let f1 = |threshold: f64| {
            let count = |outcome: bool, called: bool| {
                items.iter().filter(|item| item.0 == outcome && (f64::from(item.1) >= threshold) == called).count() as f64
            };
            2.0 * count(true, true) / (2.0 * count(true, true) + count(false, true) + count(true, false))
        };
        match best_f1_threshold(&outcomes, &scores) {
            Ok(best) => {
                prop_assert!((best.f1 - f1(best.threshold)).abs() < 1e-12);
                for point in precision_recall_curve(&outcomes, &scores).unwrap() {
                    prop_assert!(f1(point.threshold) <= best.f1 + 1e-12);
                }
            }
            Err(error) => prop_assert!(error.is_undefined() && !outcomes.contains(&true)),
        }
    }
}

#[test]
fn confidence_without_information_risks_what_there_is() {
    let losses = [0.0, 1.0, 1.0, 0.0, 1.0];
    let constant = area_under_risk_coverage(&losses, &[0.5; 5]).unwrap();
    assert!((constant - 0.6).abs() < 1e-15);
    assert_eq!(risk_coverage_curve(&losses, &[0.5; 5]).unwrap().len(), 1);
    // Nothing wrong, nothing risked.
    assert_eq!(area_under_risk_coverage(&[0.0; 3], &[0.1, 0.2, 0.3]), Ok(0.0));
}

#[test]
fn what_is_no_confidence_is_refused() {
    assert!(matches!(risk_coverage_curve(&[], &[]), Err(Error::TooFewItems { .. })));
    assert!(matches!(area_under_risk_coverage(&[0.0], &[f64::NAN]), Err(Error::NonFinite { .. })));
    assert!(matches!(risk_coverage_curve(&[f64::NAN], &[0.5]), Err(Error::NonFinite { argument: "losses", .. })));
    assert!(risk_coverage_curve(&[f64::MAX; 2], &[0.5, 0.4]).unwrap_err().is_undefined());
    assert!(matches!(best_f1_threshold(&[true, false], &[1.0]), Err(Error::LengthMismatch { .. })));
}
