//! Effective sizes of panels against NumPy (`scripts/metrics/aggregation_fixtures.py`), simulations with known size, and what is refused.

use judge_metrics::Error;
use judge_metrics::aggregation::PanelSize;
use proptest::prelude::*;
use serde_json::Value;

use crate::draw::Draw;
use crate::fixtures::{fixture, flags, list, near, numbers};

#[test]
fn panels_equal_numpy() {
    let fixture = fixture("aggregation");
    let check = |found: PanelSize, case: &Value| {
        near(found.effective.estimate, &case["effective"]);
        near(found.effective.standard_error().unwrap(), &case["standard_error"]);
        let interval = found.effective.interval(0.95).unwrap();
        near(interval.low, &case["low"].as_f64().unwrap().max(1.0).into());
        near(interval.high, &case["high"]);
        assert_eq!(found.effective.method(), Some("Student t, logarithm"));
        near(found.correlation, &case["correlation"]);
        near(found.mean_correlation.unwrap(), &case["mean_correlation"]);
        // Kish's formula.
        let k = found.n_raters as f64;
        assert!((found.effective.estimate - k / (1.0 + (k - 1.0) * found.correlation)).abs() < 1e-10);
        assert_eq!(found.limit(), (found.correlation > 0.0).then(|| 1.0 / found.correlation));
    };
    for case in list(&fixture["scores"]) {
        let ratings: Vec<Vec<f64>> = list(&case["ratings"]).iter().map(numbers).collect();
        let people = numbers(&case["people"]);
        check(PanelSize::of_scores(&people, &ratings).unwrap(), case);
        // In another unit, of any size.
        let scaled = |x: &f64| x * 2_f64.powi(800);
        let large: Vec<Vec<f64>> = ratings.iter().map(|row| row.iter().map(scaled).collect()).collect();
        check(PanelSize::of_scores(&people.iter().map(scaled).collect::<Vec<_>>(), &large).unwrap(), case);
    }
    for case in list(&fixture["verdicts"]) {
        let right: Vec<Vec<bool>> = list(&case["right"]).iter().map(flags).collect();
        check(PanelSize::of_verdicts(&right).unwrap(), case);
    }
}

#[test]
fn what_defines_no_panel_is_refused() {
    let people = [1.0, 2.0, 3.0, 4.0];
    let of = |offsets: [[f64; 2]; 4]| {
        let ratings: Vec<[f64; 2]> =
            people.iter().zip(offsets).map(|(right, of)| of.map(|offset| right + offset)).collect();
        PanelSize::of_scores(&people, &ratings)
    };
    // A bias alone is no error that varies, whatever the sums round to.
    assert!(of([[0.1, -0.3]; 4]).unwrap_err().to_string().contains("no rater's error varies"));
    let cancelling = of([[0.1, -0.1], [-0.2, 0.2], [0.3, -0.3], [0.0, 0.0]]).unwrap_err();
    assert!(cancelling.to_string().contains("cancel"), "{cancelling}");
    // One who is never wrong, and has no correlation with anybody.
    let one = of([[0.5, 0.0], [-0.5, 0.0], [0.25, 0.0], [0.0, 0.0]]).unwrap();
    assert_eq!(one.mean_correlation, None);
    assert!((one.effective.estimate - 2.0).abs() < 1e-12);
    // All the variation is in one item: nothing to leave out.
    let single = PanelSize::of_verdicts(&[[true, false], [true, true], [true, true]]).unwrap();
    assert!(
        (single.effective.estimate - 2.0).abs() < 1e-12 && single.effective.interval(0.9).unwrap_err().is_undefined()
    );
    let two = PanelSize::of_verdicts(&[[true, false], [false, false]]).unwrap();
    assert_eq!(two.effective.interval(0.9), Err(Error::TooFewItems { required: 3, found: 2 }));

    assert!(PanelSize::of_verdicts(&[[true, true]; 5]).unwrap_err().is_undefined());
    assert_eq!(PanelSize::of_verdicts(&[[true]; 5]), Err(Error::TooFewItems { required: 2, found: 1 }));
    assert_eq!(PanelSize::of_verdicts(&[[true, false]]), Err(Error::TooFewItems { required: 2, found: 1 }));
    let none: [[bool; 2]; 0] = [];
    assert_eq!(PanelSize::of_verdicts(&none), Err(Error::TooFewItems { required: 2, found: 0 }));
    assert!(matches!(PanelSize::of_verdicts(&[vec![true, false], vec![true]]), Err(Error::InRow { row: 1, .. })));
    assert!(matches!(PanelSize::of_scores(&people, &[[1.0, 2.0]]), Err(Error::LengthMismatch { .. })));
    assert!(matches!(PanelSize::of_scores(&[1.0, f64::NAN], &[[1.0, 2.0]; 2]), Err(Error::NonFinite { index: 1, .. })));
    assert!(matches!(
        PanelSize::of_scores(&[1.0, 2.0], &[[1.0, 2.0], [f64::INFINITY, 0.0]]),
        Err(Error::InRow { row: 1, .. })
    ));
}

/// Independent errors: as many as there are. Errors shared by all: one, however many.
#[test]
fn panels_of_known_size() {
    let mut draw = Draw::new(11);
    let independent: Vec<Vec<bool>> = (0..20_000).map(|_| (0..8).map(|_| draw.uniform() < 0.7).collect()).collect();
    let found = PanelSize::of_verdicts(&independent).unwrap();
    let interval = found.effective.interval(0.99).unwrap();
    assert!(interval.low < 8.0 && 8.0 < interval.high && interval.high - interval.low < 1.0, "{interval:?}");
    let shared: Vec<[bool; 8]> = (0..100).map(|_| [draw.uniform() < 0.7; 8]).collect();
    let found = PanelSize::of_verdicts(&shared).unwrap();
    assert!((found.effective.estimate - 1.0).abs() < 1e-12 && (found.correlation - 1.0).abs() < 1e-12);
}

/// Verdicts that are a common draw with probability √r each, and else the member's own, have correlation r.
#[test]
fn intervals_of_a_panels_size_cover_it() {
    let mut draw = Draw::new(2);
    for (k, n, r, least) in [(5, 30, 0.3, 0.91), (5, 100, 0.3, 0.93), (3, 50, 0.6, 0.92), (10, 50, 0.0, 0.93)] {
        let expected = k as f64 / (1.0 + (k - 1) as f64 * r);
        let mut covers = |_: &usize| {
            let item = |_: usize| -> Vec<bool> {
                let common = draw.uniform() < 0.7;
                (0..k).map(|_| if draw.uniform() < f64::sqrt(r) { common } else { draw.uniform() < 0.7 }).collect()
            };
            let right: Vec<Vec<bool>> = (0..n).map(item).collect();
            let interval = PanelSize::of_verdicts(&right).unwrap().effective.interval(0.95).unwrap();
            interval.low < expected && expected < interval.high
        };
        let share = (0..2_000).filter(&mut covers).count() as f64 / 2_000.0;
        assert!((least..0.97).contains(&share), "{share} of {k} members, {n} items, r = {r}");
    }
}

proptest! {
    /// Members and items in another order are the same panel; its size is at least 1, and above k only where errors correlate negatively.
    #[test]
    fn panels_have_no_order(
        right in prop::collection::vec(prop::array::uniform4(any::<bool>()), 3..40),
        order in Just([0_usize, 1, 2, 3]).prop_shuffle(),
    ) {
        let mixed: Vec<[bool; 4]> = right.iter().rev().map(|row| order.map(|rater| row[rater])).collect();
        match (PanelSize::of_verdicts(&right), PanelSize::of_verdicts(&mixed)) {
            (Ok(a), Ok(b)) => {
                prop_assert!((a.effective.estimate / b.effective.estimate - 1.0).abs() < 1e-9);
                prop_assert!(a.effective.estimate >= 1.0 - 1e-12 && (a.effective.estimate > 4.0 + 1e-9) <= (a.correlation < 0.0));
                match (a.effective.standard_error(), b.effective.standard_error()) {
                    (Ok(a), Ok(b)) => prop_assert!((a - b).abs() <= 1e-6 * a.max(1.0)),
                    (a, b) => prop_assert_eq!(a, b),
                }
            }
            (a, b) => prop_assert_eq!(a.unwrap_err(), b.unwrap_err()),
        }
    }
}
