//! What must hold of calibration for any data, and that conformal sets keep their promise.

use judge_metrics::Error;
use judge_metrics::calibration::{
    Binning, Direction, IsotonicRegression, OrdinalConformal, ReliabilityCurve, SplitConformal,
};
use judge_metrics::means::{PredictionPoweredMean, Tuning};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::draw::Draw;

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()) + 1e-11
}

fn forecasts() -> impl Strategy<Value = (Vec<bool>, Vec<f64>)> {
    let p = || prop_oneof![(0..=10u32).prop_map(|tenth| f64::from(tenth) / 10.0), 0.0..=1.0f64];
    prop::collection::vec((any::<bool>(), p()), 1..80).prop_map(|rows| rows.into_iter().unzip())
}

fn binning() -> impl Strategy<Value = Binning> {
    (1..40usize, any::<bool>())
        .prop_map(|(bins, mass)| if mass { Binning::EqualMass { bins } } else { Binning::EqualWidth { bins } })
}

pub(crate) fn columns() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    let number = || prop_oneof![(-5..6i32).prop_map(f64::from), -1e3..1e3f64];
    prop::collection::vec((number(), number()), 1..60).prop_map(|rows| rows.into_iter().unzip())
}

fn total(values: &[f64]) -> f64 {
    values.iter().sum()
}

proptest! {
    // The same cases on every machine and in every run.
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bins_share_out_the_items((outcomes, p) in forecasts(), binning in binning()) {
        let curve = ReliabilityCurve::new(&outcomes, &p, binning).unwrap();
        let (ece, mce) = (curve.expected_calibration_error(), curve.maximum_calibration_error());
        prop_assert!((0.0..=1.0).contains(&ece) && (0.0..=1.0).contains(&mce) && ece <= mce + 1e-15);
        prop_assert_eq!(curve.bins.iter().map(|bin| bin.count).sum::<usize>(), p.len());
        let successes: usize = curve.bins.iter().map(|bin| bin.successes).sum();
        prop_assert_eq!(successes, outcomes.iter().filter(|&&came| came).count());
        for bin in &curve.bins {
            // Right-closed, the first bin closed on the left; a bin of equal mass reaches its ends.
            let inside = |p: f64| match binning {
                Binning::EqualWidth { .. } => (p > bin.low || (p == 0.0 && bin.low == 0.0)) && p <= bin.high,
                _ => (bin.low..=bin.high).contains(&p),
            };
            prop_assert_eq!(p.iter().filter(|&&p| inside(p)).count(), bin.count);
        }
        let (Binning::EqualWidth { bins } | Binning::EqualMass { bins }) = binning;
        prop_assert!(!curve.bins.is_empty() && curve.bins.len() <= bins);
        // No binning sees less than the overall gap.
        let overall = (successes as f64 - total(&p)).abs() / p.len() as f64;
        prop_assert!(ece >= overall - 1e-12);
        if bins == 1 {
            prop_assert!(close(ece, overall));
        }
    }

    #[test]
    fn the_order_of_items_does_not_matter(
        ((outcomes, p), order) in forecasts().prop_flat_map(|rows| {
            let order: Vec<usize> = (0..rows.0.len()).collect();
            (Just(rows), Just(order).prop_shuffle())
        }),
        binning in binning(),
    ) {
        let shuffled: Vec<bool> = order.iter().map(|&i| outcomes[i]).collect();
        let q: Vec<f64> = order.iter().map(|&i| p[i]).collect();
        let curves = [ReliabilityCurve::new(&outcomes, &p, binning), ReliabilityCurve::new(&shuffled, &q, binning)];
        prop_assert_eq!(&curves[0], &curves[1]);
    }

    #[test]
    fn isotonic_fits_are_monotone_and_keep_the_mean((x, y) in columns()) {
        let settings = IsotonicRegression::default();
        let fitted = settings.fit(&x, &y).unwrap();
        let values = fitted.predict(&x).unwrap();
        prop_assert!(fitted.y_thresholds().is_sorted());
        prop_assert!((total(&values) - total(&y)).abs() <= 1e-8);
        let (low, high) = (y.iter().copied().fold(f64::MAX, f64::min), y.iter().copied().fold(f64::MIN, f64::max));
        prop_assert!(values.iter().all(|value| (low - 1e-9..=high + 1e-9).contains(value)));
        // Idempotent.
        let again = settings.fit(&x, &values).unwrap().predict(&x).unwrap();
        prop_assert!(values.iter().zip(again).all(|(&a, b)| close(a, b)));
        // The nearest point of a convex cone: the residual is orthogonal to the fit, and to nothing monotone beyond it.
        let residuals: Vec<f64> = y.iter().zip(&values).map(|(y, value)| y - value).collect();
        let along: f64 = residuals.iter().zip(&values).map(|(r, v)| r * v).sum();
        prop_assert!(along.abs() <= 1e-5, "{}", along);
        for &cut in &x {
            let step: f64 = x.iter().zip(&residuals).filter(|item| *item.0 > cut).map(|item| item.1).sum();
            prop_assert!(step <= 1e-8, "a step up at {} would fit better", cut);
        }
    }

    #[test]
    fn isotonic_fits_mirror_and_see_the_order_of_x_alone((x, y) in columns()) {
        let rising = IsotonicRegression::default();
        let falling = IsotonicRegression { direction: Direction::Decreasing, ..rising };
        let negated: Vec<f64> = y.iter().map(|y| -y).collect();
        let values = rising.fit(&x, &y).unwrap().predict(&x).unwrap();
        let mirrored = falling.fit(&x, &negated).unwrap().predict(&x).unwrap();
        prop_assert!(values.iter().zip(mirrored).all(|(&a, b)| close(a, -b)));
        // Strictly increasing, and injective in floating point on these columns.
        let bent: Vec<f64> = x.iter().map(|x| x.cbrt() + 0.5 * x).collect();
        prop_assert_eq!(rising.fit(&bent, &y).unwrap().predict(&bent).unwrap(), values);
    }

    #[test]
    fn conformal_radii_cover_the_calibration_items((x, y) in columns(), level in 0.05..0.95f64) {
        match (SplitConformal { level }).fit(&y, &x) {
            Ok(fitted) => {
                let covered = x.iter().zip(&y).filter(|(x, y)| (*x - *y).abs() <= fitted.radius).count();
                prop_assert!(covered as f64 >= (x.len() + 1) as f64 * level - 1e-9);
                let lower = SplitConformal { level: level / 2.0 }.fit(&y, &x).unwrap();
                prop_assert!(lower.radius <= fitted.radius);
            }
            Err(error) => {
                let Error::TooFewItems { required, found } = error else { panic!("{error}") };
                prop_assert!(found == x.len() && found < required);
                prop_assert!(level * (required + 1) as f64 <= required as f64 + 1e-9);
                prop_assert!(level * required as f64 > (required - 1) as f64 - 1e-9);
            }
        }
    }

    #[test]
    fn without_the_judge_the_powered_mean_is_the_classical_one((x, y) in columns(), shift in -100..100i32) {
        prop_assume!(x.len() >= 4);
        let n = x.len() / 2;
        let estimate =
            |tuning, judge: &[f64]| PredictionPoweredMean { tuning }.estimate(&y[..n], &judge[..n], &judge[n..]);
        let alone = estimate(Tuning::Fixed(0.0), &x).unwrap();
        prop_assert_eq!(alone.mean.estimate, alone.classical.estimate);
        if let Ok(ours) = alone.mean.interval(0.95) {
            let Ok(classical) = alone.classical.interval(0.95) else { return Ok(()) };
            prop_assert!((ours.low - classical.low).abs() <= 1e-9 && (ours.high - classical.high).abs() <= 1e-9);
        }
        // A judge that is off by a constant is as good as one that is not.
        let moved: Vec<f64> = x.iter().map(|x| x + f64::from(shift)).collect();
        for tuning in [Tuning::Fixed(1.0), Tuning::Optimal] {
            match (estimate(tuning, &x), estimate(tuning, &moved)) {
                (Ok(ours), Ok(moved)) => {
                    prop_assert!((ours.mean.estimate - moved.mean.estimate).abs() <= 1e-8 && (0.0..=1.0).contains(&ours.lambda));
                    let errors = [&ours, &moved].map(|powered| powered.mean.standard_error().unwrap());
                    prop_assert!((errors[0] - errors[1]).abs() <= 1e-7);
                }
                (ours, moved) => prop_assert!(ours.unwrap_err().is_undefined() && moved.unwrap_err().is_undefined()),
            }
        }
    }
}

/// Independent draws of calibration items and one new item: each is a trial of its own, so hits are binomial.
const TRIALS: u32 = 20_000;

/// An upper bound of P(hits / TRIALS ≤ 1e-9-quantile): Chernoff's exp(−n KL(q ‖ p)) for hits of probability p.
fn chernoff(q: f64, p: f64) -> f64 {
    let relative_entropy = q * (q / p).ln() + (1.0 - q) * ((1.0 - q) / (1.0 - p)).ln();
    (-f64::from(TRIALS) * relative_entropy).exp()
}

/// With continuous errors the chance is exactly ⌈(n + 1) · level⌉ / (n + 1), so too wide fails as well as too narrow.
#[test]
fn split_conformal_intervals_hold_their_level() {
    let (n, level, chance) = (20, 0.9, 19.0 / 21.0);
    let mut draw = Draw::new(11);
    let mut hits = 0;
    for _ in 0..TRIALS {
        // A judge that is biased, and the more wrong the more difficult the item, with a long tail.
        let (predicted, observed): (Vec<f64>, Vec<f64>) = (0..=n)
            .map(|_| {
                let (predicted, difficulty) = (5.0 * draw.uniform(), 0.1 + draw.uniform());
                let error = 0.3 - difficulty * (1.0 - draw.uniform()).ln();
                (predicted, predicted + error)
            })
            .unzip();
        let interval =
            SplitConformal { level }.fit(&observed[..n], &predicted[..n]).unwrap().interval(predicted[n]).unwrap();
        hits += u32::from(interval.low <= observed[n] && observed[n] <= interval.high);
    }
    let rate = f64::from(hits) / f64::from(TRIALS);
    assert!(rate == chance || chernoff(rate, chance) > 1e-6, "{rate} of {TRIALS}, not {chance}");
}

/// Labels are discrete, so the chance is at least the level.
#[test]
fn ordinal_conformal_sets_hold_their_level() {
    let (n, level) = (39, 0.95);
    let mut draw = Draw::new(12);
    let (mut hits, mut sizes) = (0, 0);
    for _ in 0..TRIALS {
        // A judge that is too sure of itself: it states the square of what it should.
        let items: Vec<(Vec<f64>, usize)> = (0..=n)
            .map(|_| {
                let weights: Vec<f64> = (0..5).map(|_| -(1.0 - draw.uniform()).ln()).collect();
                let mut left = draw.uniform() * total(&weights);
                let label = weights.iter().position(|weight| {
                    left -= weight;
                    left < 0.0
                });
                let squares: Vec<f64> = weights.iter().map(|weight| weight * weight).collect();
                let stated = squares.iter().map(|square| square / total(&squares)).collect();
                (stated, label.unwrap_or(4))
            })
            .collect();
        let (mut distributions, mut labels): (Vec<Vec<f64>>, Vec<usize>) = items.into_iter().unzip();
        let (new, label) = (distributions.pop().unwrap(), labels.pop().unwrap());
        let set = OrdinalConformal { level }.fit(&labels, &distributions).unwrap().set(&new).unwrap();
        hits += u32::from(set.contains(label));
        sizes += set.size();
    }
    let rate = f64::from(hits) / f64::from(TRIALS);
    assert!(rate >= level || chernoff(rate, level) > 1e-6, "{rate} of {TRIALS}");
    // The whole scale would hold any level.
    assert!(rate < 0.99 && sizes < TRIALS as usize * 5, "{rate}, mean size {}", sizes as f64 / f64::from(TRIALS));
}
