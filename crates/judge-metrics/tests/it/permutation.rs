//! Permutation tests against SciPy and against arrangements drawn apart (`scripts/metrics/resampling_fixtures.py`).

use std::sync::atomic::{AtomicUsize, Ordering};

use judge_metrics::Error;
use judge_metrics::comparison::{ComparedItem, Rating};
use judge_metrics::correlation::{KendallTest, kendall_tau_b};
use judge_metrics::resampling::{Alternative, PermutationResult, PermutationTest};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::compared::compared;
use crate::draw::Draw;
use crate::fixtures::{cases, count, counts, numbers};

fn difference(x: &[f64], y: &[f64]) -> Result<f64, Error> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    Ok(mean(x) - mean(y))
}

fn tau(x: &[f64], y: &[f64]) -> Result<f64, Error> {
    Ok(kendall_tau_b(x, y, KendallTest::Asymptotic)?.estimate)
}

#[test]
fn p_values_equal_scipys() {
    for case in cases("permutation", "cases", 11) {
        let (x, y) = (numbers(&case["x"]), numbers(&case["y"]));
        let alternatives =
            [(Alternative::Less, "less"), (Alternative::Greater, "greater"), (Alternative::TwoSided, "two-sided")];
        for (alternative, name) in alternatives {
            let test = PermutationTest {
                permutations: count(&case["permutations"]),
                seed: case["seed"].as_u64().unwrap(),
                alternative,
                ..PermutationTest::default()
            };
            let kind = case["kind"].as_str().unwrap();
            let ours: PermutationResult = match kind {
                "paired" => test.paired(&x, &y, difference),
                "independent" => test.independent(&x, &y, difference),
                "pairing" => test.pairing(&x, &y, tau),
                "clustered" => test.clustered(&x, &y, &counts(&case["groups"]), difference),
                other => panic!("{other}"),
            }
            .unwrap();
            assert_eq!(ours.exact, case["exact"].as_bool().unwrap(), "{kind}");
            let expected = case["p"][name].as_f64().unwrap();
            assert!((ours.p_value - expected).abs() <= 1e-12, "{kind}, {name}: {ours:?}, not {expected}");
            assert!((ours.estimate - case["estimate"].as_f64().unwrap()).abs() <= 1e-12);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(5), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exchanging_the_sides_mirrors_the_test(
        pairs in prop::collection::vec((-5_i32..5, -5_i32..5), 1..30), seed in any::<u64>()
    ) {
        let (x, y): (Vec<f64>, Vec<f64>) = pairs.iter().map(|&(x, y)| (f64::from(x), f64::from(y))).unzip();
        let test =
            |alternative| PermutationTest { permutations: 500, seed, alternative, ..PermutationTest::default() };
        for (one, other) in [
            (Alternative::Less, Alternative::Greater),
            (Alternative::Greater, Alternative::Less),
            (Alternative::TwoSided, Alternative::TwoSided),
        ] {
            let ours = test(one).paired(&x, &y, difference).unwrap();
            let mirrored = test(other).paired(&y, &x, difference).unwrap();
            prop_assert_eq!(ours.p_value, mirrored.p_value);
            prop_assert_eq!(ours.estimate, -mirrored.estimate);
            prop_assert!(ours.p_value > 0.0 && ours.p_value <= 1.0);
        }
        // Each item in a cluster of its own is the plain test; all in one cluster leaves two arrangements.
        let plain = test(Alternative::TwoSided).paired(&x, &y, difference).unwrap();
        let items: Vec<usize> = (10..10 + x.len()).collect();
        prop_assert_eq!(test(Alternative::TwoSided).clustered(&x, &y, &items, difference).unwrap(), plain);
        let one = test(Alternative::TwoSided).clustered(&x, &y, &vec!["q"; x.len()], difference).unwrap();
        prop_assert!(one.exact && one.permutations == 2 && one.p_value == 1.0);
    }
}

#[test]
fn judges_that_say_the_same_are_compared_once() {
    let x: Vec<f64> = (0..30).map(|i| f64::from(i % 7)).collect();
    let calls = AtomicUsize::new(0);
    let counted = |x: &[f64], y: &[f64]| {
        calls.fetch_add(1, Ordering::Relaxed);
        difference(x, y)
    };
    let found = PermutationTest::default().paired(&x, &x, counted).unwrap();
    assert_eq!(found, PermutationResult { estimate: 0.0, p_value: 1.0, permutations: 9_999, exact: false });
    assert_eq!(calls.into_inner(), 1);
}

#[test]
fn every_arrangement_is_looked_at_once() {
    let test = PermutationTest { permutations: 10_000, ..PermutationTest::default() };
    // Distinct powers make every arrangement's statistic another number.
    let x: Vec<f64> = (0..6).map(|i| 7_f64.powi(i)).collect();
    let y: Vec<f64> = (0..6).map(|i| f64::from(i).exp() + 0.5).collect();
    let count = |alternative: Alternative, kind: &str| {
        let test = PermutationTest { alternative, ..test };
        match kind {
            "paired" => test.paired(&x, &y, difference),
            "independent" => test.independent(&x, &y, difference),
            _ => test.pairing(&x, &y, |x, y| Ok(x.iter().zip(y).map(|(x, y)| x * y).sum())),
        }
        .unwrap()
    };
    for (kind, all) in [("paired", 64), ("independent", 924), ("pairing", 720)] {
        let (less, greater) = (count(Alternative::Less, kind), count(Alternative::Greater, kind));
        assert_eq!((less.permutations, greater.permutations), (all, all), "{kind}");
        // The one seen is counted on both sides.
        assert!((less.p_value + greater.p_value - 1.0 - 1.0 / all as f64).abs() < 1e-12, "{kind}");
    }
    // Ascending against ascending has the largest sum of products.
    assert!((count(Alternative::Greater, "pairing").p_value - 1.0 / 720.0).abs() < 1e-15);
}

/// Differences of decimal numbers that are equal are not equal bits, and near 0 they are all that a statistic is made of.
#[test]
fn p_values_do_not_depend_on_where_the_scale_begins() {
    let mut draw = Draw::new(7);
    let mut n_tested = 0;
    for case in 0..50 {
        let n = 6 + case % 2;
        let people: Vec<usize> = (0..n).map(|_| draw.below(5)).collect();
        let mut judge = || -> Vec<f64> { people.iter().map(|&x| (x + draw.below(3)) as f64 - 1.0).collect() };
        let (first, second) = (judge(), judge());
        let on = |scale: fn(f64) -> f64| {
            let rating = |x: f64| Rating::Number(scale(x));
            let row = |i: usize| ComparedItem {
                second: Some(rating(second[i])),
                ..ComparedItem::new(rating(first[i]), [rating(people[i] as f64)])
            };
            compared((0..n).map(row).collect(), 10, None)
        };
        // Whole numbers have no rounding.
        let (whole, tenths) = (on(|x| x), on(|x| (800.0 + x) / 10.0));
        for ((name, whole), (_, tenths)) in whole.statistics.iter().zip(&tenths.statistics) {
            if let (Some(whole), Some(tenths)) = (whole.defined(), tenths.defined())
                && whole.method.contains("permutation")
            {
                n_tested += 1;
                assert_eq!(tenths.p, whole.p, "{name} of {people:?}, {first:?}, {second:?}");
            }
        }
    }
    assert!(n_tested >= 400, "{n_tested}");
}

#[test]
fn statistics_within_the_rounding_of_the_numbers_are_equal() {
    let (x, y) = ([80.1, 80.3, 80.2], [80.2, 80.2, 80.3]);
    let rounded = PermutationTest { rounding: 4.0 * 80.3 * f64::EPSILON, ..PermutationTest::default() };
    // One of six differences of sums: -1, 1, -1 tenths.
    assert_eq!(rounded.paired(&x, &y, difference).unwrap().p_value, 1.0);
    assert!(PermutationTest::default().paired(&x, &y, difference).unwrap().p_value < 1.0);
}

#[test]
fn bad_input_is_refused() {
    let test = PermutationTest::default();
    let none = PermutationTest { permutations: 0, ..test };
    assert_eq!(none.paired(&[1.0], &[2.0], difference), Err(Error::NoResamples));
    assert_eq!(test.paired(&[], &[], difference), Err(Error::TooFewItems { required: 1, found: 0 }));
    assert_eq!(test.independent(&[1.0], &[], difference), Err(Error::TooFewItems { required: 1, found: 0 }));
    let length = Error::LengthMismatch { argument: "y", found: 1, other: "x", expected: 2 };
    assert_eq!(test.pairing(&[1.0, 2.0], &[1.0], tau), Err(length));
    let length = Error::LengthMismatch { argument: "groups", found: 1, other: "x", expected: 2 };
    assert_eq!(test.clustered(&[1.0, 2.0], &[1.0, 3.0], &[0], difference), Err(length));
    assert!(matches!(test.independent(&[1.0], &[f64::NAN], difference), Err(Error::NonFinite { argument: "y", .. })));
    let infinite = test.paired(&[1.0], &[2.0], |_, _| Ok(f64::INFINITY));
    assert_eq!(infinite, Err(Error::NonFiniteStatistic { resample: None, value: f64::INFINITY }));
    assert_eq!(test.pairing(&[1.0, 2.0], &[3.0, 3.0], tau), Err(Error::Constant { argument: "y", value: 3.0 }));
}
