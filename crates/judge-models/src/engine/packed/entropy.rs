//! The entropy of the weights that queries give the keys they see, tile by tile, without the values.
//!
//! A pass of its own over the scores, made only where it is asked for: weights are as exact as f32 has them, where
//! attention rounds them to bf16, and it takes positions that attention may leave out. One body serves every kernel; only the products
//! of queries and keys are theirs.

use std::ops::Range;

use pulp::Arch;

use super::attention::{Made, Queries, Settings, Walk, walk};
use super::keys::TILE;
use super::softmax::scaled;
use crate::reading::exp::exp;

/// Sums side by side. A fixed number, so that a sum has the same bits on every row.
const LANES: usize = 8;

/// The entropies in nats of the queries of block `block`, for arguments as [`attend`](super::attention::attend) takes them; `out` gets
/// `[queries, n_heads]`.
pub(crate) fn entropies(
    settings: Settings<'_>,
    block: usize,
    queries: &[Queries<'_>],
    rows: &[f32],
    stride: usize,
    out: &mut [f32],
) {
    walk(settings, block, queries, rows, stride, (1, out), measure);
}

/// Buffers of a walk, by row.
#[derive(Default)]
struct Scratch {
    /// `[rows][words]`.
    queries: Vec<u32>,
    /// `[rows][TILE]`.
    scores: Vec<f32>,
    spreads: Vec<Spread>,
}

fn measure(walk: &Walk<'_>, scratch: &mut Scratch, made: &mut Made<'_>) {
    let Settings { scale, soft_cap, .. } = walk.settings;
    walk.pack(&mut scratch.queries);
    scratch.spreads.clear();
    scratch.spreads.resize(walk.len(), Spread::EMPTY);
    for tile in walk.tiles() {
        walk.scores(tile, &scratch.queries, &mut scratch.scores);
        Arch::new().dispatch(
            #[inline(always)]
            || {
                for (row, (scores, spread)) in scratch.scores.as_chunks().0.iter().zip(&mut scratch.spreads).enumerate()
                {
                    let seen = walk.seen(row, tile);
                    if !seen.is_empty() {
                        spread.take(scores, scale, soft_cap, seen);
                    }
                }
            },
        );
    }
    for (row, spread) in scratch.spreads.iter().enumerate() {
        made.row(row).fill(spread.entropy(walk.sink(row)) as f32);
    }
}

/// What is known of a softmax that has seen some of its scores.
#[derive(Clone, Copy, Debug)]
struct Spread {
    highest: f32,
    /// `Σ exp(x)` with `x = score - highest`.
    total: f64,
    /// `Σ exp(x) x`.
    weighted: f64,
}

impl Spread {
    /// It has the lowest score that is not infinite: differences from it are never NaN.
    const EMPTY: Self = Self { highest: f32::MIN, total: 0.0, weighted: 0.0 };

    /// Takes the scores of the places `seen`, which are some. Weights are f32, their sums f64.
    #[inline(always)]
    fn take(&mut self, scores: &[f32; TILE], scale: f32, soft_cap: Option<f32>, seen: Range<usize>) {
        let scores = scores.map(|score| scaled(score, scale, soft_cap));
        let is_seen = |place: usize| seen.start <= place && place < seen.end;
        let mut highest = self.highest;
        for (place, &score) in scores.iter().enumerate() {
            if is_seen(place) && score > highest {
                highest = score;
            }
        }
        self.raise(highest);
        let x: [f32; TILE] = std::array::from_fn(|place| if is_seen(place) { scores[place] - highest } else { 0.0 });
        let weights: [f32; TILE] = std::array::from_fn(|place| if is_seen(place) { exp(x[place]) } else { 0.0 });
        // A weight of 0 counts for nothing, be its score -inf.
        let x: [f32; TILE] = std::array::from_fn(|place| if weights[place] == 0.0 { 0.0 } else { x[place] });
        let (mut totals, mut weighteds) = ([0.0; LANES], [0.0; LANES]);
        for (x, weights) in x.as_chunks::<LANES>().0.iter().zip(weights.as_chunks::<LANES>().0) {
            for lane in 0..LANES {
                totals[lane] += f64::from(weights[lane]);
                weighteds[lane] += f64::from(weights[lane]) * f64::from(x[lane]);
            }
        }
        self.total += totals.iter().sum::<f64>();
        self.weighted += weighteds.iter().sum::<f64>();
    }

    /// Counts what was seen so far from a higher score, if it is one; before the first it is nothing.
    #[inline(always)]
    fn raise(&mut self, highest: f32) {
        if highest > self.highest {
            let step = if self.total == 0.0 { 0.0 } else { f64::from(self.highest) - f64::from(highest) };
            let shrink = libm::exp(step);
            self.weighted = shrink * (self.weighted + step * self.total);
            self.total *= shrink;
            self.highest = highest;
        }
    }

    /// `ln Σ exp(x) - Σ exp(x) x / Σ exp(x)`, of which both terms are at least 0; NaN if a score was. With a sink, whose weight is no key's, it
    /// is `-Σ p ln p` over the keys, whose weights `p` then add up to less than 1.
    fn entropy(mut self, sink: Option<f32>) -> f64 {
        let Some(sink) = sink else { return libm::log(self.total) - self.weighted / self.total };
        self.raise(sink);
        let all = self.total + libm::exp(f64::from(sink) - f64::from(self.highest));
        (libm::log(all) * self.total - self.weighted) / all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::packed::cases::cases;
    use crate::engine::packed::kernel::Supported;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn entropies_are_right_and_the_same_bits_however_they_are_cut(
            mut case in cases(&[2, 16, 64, 80], &[0.01, 0.3, 2.0]),
        ) {
            for kernel in Supported::all() {
                case.settings.kernel = kernel;
                let out = case.run(case.settings.n_heads, entropies)?;
                for position in [0, case.seq / 2, case.seq - 1] {
                    for head in 0..case.settings.n_heads {
                        let found = out[position * case.settings.n_heads + head];
                        let seen = case.weights(position, head).into_iter().filter(|&p| p > 0.0);
                        let expected: f64 = seen.map(|p| -p * p.ln()).sum();
                        // Scores of up to some hundred are sums in f32.
                        prop_assert!((f64::from(found) - expected).abs() < 2e-4, "{kernel:?} {found} {expected}");
                        prop_assert!(found >= 0.0);
                    }
                }
            }
        }
    }

    #[test]
    fn certainty_and_indifference_and_a_nan() {
        let entropy = |tiles: &[([f32; TILE], Range<usize>)]| {
            let mut spread = Spread::EMPTY;
            tiles.iter().for_each(|(scores, seen)| spread.take(scores, 1.0, None, seen.clone()));
            spread.entropy(None)
        };
        // A score that a later one leaves far behind, and one that is never seen.
        let mut scores = [-300.0; TILE];
        (scores[3], scores[9]) = (500.0, f32::NAN);
        assert!(entropy(&[([0.0; TILE], 0..TILE), (scores, 0..9)]) < 1e-200);
        assert!((entropy(&[([7.0; TILE], 2..TILE), ([7.0; TILE], 0..20)]) - 50_f64.ln()).abs() < 1e-12);
        assert_eq!(entropy(&[([-1e4; TILE], 5..6)]), 0.0);
        // What overflowed towards nothing is nothing.
        scores[9] = f32::NEG_INFINITY;
        assert_eq!(entropy(&[(scores, 3..4), (scores, 9..10)]), 0.0);
        scores[9] = f32::NAN;
        assert!(entropy(&[([0.0; TILE], 0..TILE), (scores, 0..TILE)]).is_nan());
        assert!(entropy(&[([0.0; TILE], 0..TILE), ([f32::INFINITY; TILE], 0..1)]).is_nan());
    }
}
