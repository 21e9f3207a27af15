//! Planned numbers of items: at n the crate's own interval of such a sample is as narrow as wanted, at n − 1 it is not. Powers and
//! detectable effects against statsmodels and SciPy (`scripts/metrics/planning_fixtures.py`).

use judge_metrics::correlation::fisher_interval;
use judge_metrics::means::{paired_difference, sample_mean};
use judge_metrics::planning::{
    detectable_difference, detectable_mean, detectable_shortfall, items_for_correlation, items_for_mean,
    items_for_paired_proportions, items_for_power, items_for_proportion, items_for_width, power_of_mean,
};
use judge_metrics::{Error, Interval, Proportion};
use serde_json::Value;

use crate::fixtures::{count, fixture, list};

const LEVELS: [f64; 3] = [0.8, 0.95, 0.99];
const WIDTHS: [f64; 4] = [0.03, 0.1, 0.25, 0.6];

type Plan = fn(f64, f64) -> Result<usize, Error>;

fn width(interval: Interval) -> f64 {
    interval.high - interval.low
}

fn for_each_plan(plan: impl Fn(f64, f64)) {
    for level in LEVELS {
        for width in WIDTHS {
            plan(width, level);
        }
    }
}

#[test]
fn proportions_by_wilson() {
    for share in [0.0, 0.03, 0.2, 0.5, 0.77, 1.0] {
        for_each_plan(|wanted, level| {
            let n = items_for_proportion(share, wanted, level).unwrap();
            // The whole counts on both sides of the share: the interval is widest at one half.
            let widths = |n: usize| {
                let counts = [(share * n as f64).floor(), (share * n as f64).ceil()];
                counts.map(|count| width(Proportion { count: count as usize, n }.wilson(level).unwrap()))
            };
            let [a, b] = widths(n);
            assert!(a.min(b) <= wanted + 1e-12, "{share} {wanted} {level}: {n}");
            if n > 1 {
                let [a, b] = widths(n - 1);
                assert!(a.max(b) > wanted - 1e-12, "{share} {wanted} {level}: {n}");
            }
        });
    }
    // In closed form: z² (1 − w) / w items at an end, z² (1 − w²) / w² at one half.
    let z = 1.959_963_984_540_054_f64;
    assert_eq!(items_for_proportion(0.0, 0.1, 0.95).unwrap(), (z * z * 9.0).ceil() as usize);
    assert_eq!(items_for_proportion(0.5, 0.1, 0.95).unwrap(), (z * z * 99.0).ceil() as usize);
}

#[test]
fn means_by_student() {
    for deviation in [0.2, 1.0, 1.7] {
        for_each_plan(|wanted, level| {
            let n = items_for_mean(deviation, wanted, level).unwrap();
            let found = |n: usize| {
                // One value more or less than half of them on either side, with this deviation exactly.
                let around = |i: usize| if i + 1 == n && n % 2 == 1 { 0.0 } else { [-1.0, 1.0][i % 2] };
                let size = deviation * ((n - 1) as f64 / (n / 2 * 2) as f64).sqrt();
                let values: Vec<f64> = (0..n).map(|i| size * around(i)).collect();
                width(sample_mean(&values).unwrap().interval(level).unwrap())
            };
            assert!(found(n) <= wanted + 1e-12, "{deviation} {wanted} {level}: {n}");
            assert!(n == 2 || found(n - 1) > wanted, "{deviation} {wanted} {level}: {n}");
        });
    }
}

#[test]
fn correlations_by_fisher() {
    for r in [-0.95, -0.3, 0.0, 0.5, 0.8] {
        for_each_plan(|wanted, level| {
            let n = items_for_correlation(r, wanted, level).unwrap();
            let found = |n| width(fisher_interval(r, n, level).unwrap());
            assert!(found(n) <= wanted && found(n - 1) > wanted, "{r} {wanted} {level}: {n}");
        });
    }
    assert_eq!(items_for_correlation(0.5, 2.0, 0.95), Ok(2), "up to three items bound nothing");
}

#[test]
fn paired_proportions_by_student() {
    for [only_first, only_second] in [[0.0, 0.3], [0.05, 0.15], [0.1, 0.1], [0.4, 0.3]] {
        for_each_plan(|wanted, level| {
            let n = items_for_paired_proportions(only_first, only_second, wanted, level).unwrap();
            let found = |n: usize, round: fn(f64) -> f64| {
                let [b, c] = [only_first, only_second].map(|share| round(share * n as f64 - 1e-9) as usize);
                let right = |from: usize, to: usize| -> Vec<f64> {
                    (0..n).map(|i| f64::from((from..to).contains(&i))).collect()
                };
                paired_difference(&right(0, b), &right(b, b + c)).unwrap().interval(level).map_or(0.0, width)
            };
            // Fewer discordant items than the shares say make it narrower, more make it wider.
            assert!(found(n, f64::floor) <= wanted, "{only_first} {only_second} {wanted} {level}: {n}");
            if n > 2 {
                let before = found(n - 1, f64::ceil);
                assert!(before > wanted, "{only_first} {only_second} {wanted} {level}: {n} {before}");
            }
        });
    }
}

#[test]
fn fewer_items_for_wider_intervals_and_lower_levels() {
    let plans: [fn(f64, f64) -> usize; 4] = [
        |width, level| items_for_proportion(0.3, width, level).unwrap(),
        |width, level| items_for_mean(1.0, width, level).unwrap(),
        |width, level| items_for_correlation(0.4, width, level).unwrap(),
        |width, level| items_for_paired_proportions(0.1, 0.2, width, level).unwrap(),
    ];
    for plan in plans {
        assert!(plan(0.1, 0.95) > plan(0.2, 0.95) && plan(0.1, 0.95) > plan(0.1, 0.9));
        // A tenth of the width takes about a hundred times the items.
        let ratio = plan(1e-4, 0.95) as f64 / plan(1e-3, 0.95) as f64;
        assert!((ratio - 100.0).abs() < 0.1, "{ratio}");
    }
}

#[test]
fn plans_that_cannot_be_are_refused() {
    let plans: [Plan; 4] = [
        |width, level| items_for_proportion(0.3, width, level),
        |width, level| items_for_mean(1.0, width, level),
        |width, level| items_for_correlation(0.4, width, level),
        |width, level| items_for_paired_proportions(0.1, 0.2, width, level),
    ];
    for plan in plans {
        for bad in [0.0, -0.1, f64::NAN, f64::INFINITY] {
            assert!(matches!(plan(bad, 0.95), Err(Error::OutOfRange { argument: "width", index: None, .. })));
        }
        for level in [0.0, 1.0, f64::NAN] {
            assert!(matches!(plan(0.1, level), Err(Error::LevelOutOfRange { .. })));
        }
        assert!(plan(1e-9, 0.95).unwrap_err().is_undefined());
    }
    for share in [-0.1, 1.1, f64::NAN] {
        let bad = items_for_proportion(share, 0.1, 0.95);
        assert!(matches!(bad, Err(Error::OutOfRange { argument: "share", .. })));
    }
    for deviation in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let bad = items_for_mean(deviation, 0.1, 0.95);
        assert!(matches!(bad, Err(Error::OutOfRange { argument: "standard_deviation", .. })));
    }
    assert!(matches!(items_for_correlation(1.5, 0.1, 0.95), Err(Error::NotACorrelation { value: 1.5 })));
    assert!(matches!(items_for_correlation(f64::NAN, 0.1, 0.95), Err(Error::NotACorrelation { .. })));
    assert!(items_for_correlation(-1.0, 0.1, 0.95).unwrap_err().is_undefined());
    let bad = items_for_paired_proportions(0.6, 0.5, 0.1, 0.95);
    assert!(matches!(bad, Err(Error::OutOfRange { argument: "only_second", value: 0.5, .. })));
    assert!(items_for_paired_proportions(0.0, 0.0, 0.1, 0.95).unwrap_err().is_undefined());
    assert!(items_for_paired_proportions(0.0, 1.0, 0.1, 0.95).unwrap_err().is_undefined());
}

#[test]
fn powers_and_effects_equal_statsmodels() {
    let fixture = fixture("planning");
    let number = |of: &Value| of.as_f64().unwrap();
    let near =
        |ours: f64, expected: f64, of: &Value| assert!((ours - expected).abs() <= 1e-9 * expected, "{ours}: {of}");
    for case in list(&fixture["means"]) {
        let (n, level) = (count(&case["n"]), number(&case["level"]));
        for (effect, power) in list(&case["effects"]).iter().zip(list(&case["powers"])) {
            // A scale and a sign change nothing.
            near(power_of_mean(number(effect) * -3.0, 3.0, n, level).unwrap(), number(power), case);
        }
        if let Some(expected) = case.get("detectable") {
            near(detectable_mean(3.0, n, 0.85, level).unwrap(), 3.0 * number(expected), case);
        }
    }
    for case in list(&fixture["items"]) {
        let (effect, power) = (number(&case["effect"]), number(&case["power"]));
        assert_eq!(items_for_power(effect, 1.0, power, 0.95).unwrap() as u64, case["n"], "{case}");
    }
    for case in list(&fixture["normal"]) {
        let half = number(&case["half_width"]) / 2.0;
        let interval = Interval { low: 0.3 - half, high: 0.3 + half, level: number(&case["level"]) };
        near(detectable_difference(interval, number(&case["power"])).unwrap(), number(&case["detectable"]) / 2.0, case);
    }
    for case in list(&fixture["shares"]) {
        let found = detectable_shortfall(number(&case["expected"]), count(&case["n"]), 0.8, 0.95);
        near(found.unwrap(), number(&case["shortfall"]), case);
    }
}

/// Of few items at high levels T spreads as far as its mean, however large that is. Against the integral over the normal deviate of T, with
/// thirty digits (mpmath 1.3).
#[test]
fn powers_of_far_effects_equal_thirty_digit_arithmetic() {
    for (ratio, n, level, expected) in [
        (150.0, 2, 0.99, 0.981_531_935_172_473_2),
        (150.0, 3, 0.9999, 0.894_599_458_466_606),
        (500.0, 2, 0.95, 1.0),
        (200.0, 4, 0.999_999_9, 0.323_715_668_916_046_8),
        (141_421.356_237_309_52, 2, 0.99999, 0.973_678_925_071_393_1),
        (-141_421.356_237_309_52, 2, 0.999_999, 0.175_798_327_964_119_9),
    ] {
        let power = power_of_mean(ratio, f64::from(n).sqrt(), n as usize, level).unwrap();
        assert!((power / expected - 1.0).abs() < 1e-9, "{ratio} {n} {level}: {power}");
    }
    for (level, expected) in [
        (0.999, 576.901_129_469_293_9),
        (0.9999, 5_769.008_946_007_168),
        (0.99999, 57_690.089_225_459_3),
        (0.999_999, 576_900.892_211_891_5),
    ] {
        let effect = detectable_mean(1.0, 2, 0.8, level).unwrap();
        assert!((effect / expected - 1.0).abs() < 1e-9, "{level}: {effect}");
    }
    // Where the two ways to compute it meet.
    for (n, level) in [(2, 0.99), (3, 0.9999), (6, 1.0 - 1e-9), (1_000, 0.95)] {
        let [below, above] = [141.421_356, 141.421_357]
            .map(|ratio: f64| power_of_mean(ratio, f64::from(n).sqrt(), n as usize, level).unwrap());
        assert!(below <= above + 1e-12 && above - below < 1e-7, "{n} {level}: {below} {above}");
    }
}

#[test]
fn powers_of_anything_are_chances_and_what_is_none_is_refused() {
    for effect in [1e-300, 1e-3, 40.0, 1e6, 1e300] {
        for (deviation, n) in [(1.0, 2), (1e-300, 3), (1e300, 1_000_000)] {
            let power = power_of_mean(effect, deviation, n, 0.95).unwrap();
            assert!((0.05 - 1e-12..=1.0 + 1e-12).contains(&power), "{effect} {deviation} {n}: {power}");
        }
    }
    assert_eq!(power_of_mean(1.0, 1.0, 1, 0.95), Err(Error::TooFewItems { required: 2, found: 1 }));
    for power in [0.05, 1.0, f64::NAN] {
        assert!(matches!(detectable_mean(1.0, 9, power, 0.95), Err(Error::OutOfRange { argument: "power", .. })));
    }
    assert!(detectable_mean(1e308, 4, 0.8, 0.95).unwrap_err().is_undefined());
    assert!(matches!(power_of_mean(f64::NAN, 1.0, 9, 0.95), Err(Error::OutOfRange { argument: "effect", .. })));
    // A quarter of the width takes sixteen times the items, and an interval of no width says nothing.
    let interval = |low| Interval { low, high: 0.7, level: 0.95 };
    assert_eq!(items_for_width(interval(0.3), 60, 0.1), Ok(960));
    assert_eq!(items_for_width(interval(0.3), 60, 0.8), Ok(15));
    assert!(matches!(items_for_width(interval(0.7), 60, 0.1), Err(Error::OutOfRange { argument: "interval", .. })));
    assert!(matches!(detectable_difference(interval(0.7), 0.8), Err(Error::OutOfRange { argument: "width", .. })));
    // An effect of 0 is found by no number of items.
    assert!(items_for_power(0.0, 1.0, 0.8, 0.95).unwrap_err().is_undefined());
    // Of one item not even a share of 0 is shown to be below 0.5.
    assert!(detectable_shortfall(0.5, 1, 0.8, 0.95).unwrap_err().is_undefined());
    assert!(detectable_shortfall(0.9, 20, 0.8, 0.95).unwrap() < 0.9);
}
