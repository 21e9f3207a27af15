//! The entropy of the weights that queries give the keys they see, tile by tile, without the
//! values.
//!
//! Owns the running sums of an entropy. The walk over keys and the products of queries with keys
//! are `attention.rs`'s; pooling over positions is `reading/pooling.rs`'s. `block_ops.rs` calls
//! [`entropies`] for the spans that want them, before attention, and shows the result with the
//! residual stream.
//!
//! It is a pass of its own over the scores and runs only where it is asked for. Attention's own
//! weights would not do: they are rounded to bf16, and the last block leaves out positions. Only
//! the products are those of a kernel; one body does the rest for all of them.
//!
//! With scores `s_j`, `x_j = s_j - max s`, `Z = Σ exp(x_j)` and `W = Σ exp(x_j) x_j`, the entropy
//! of the softmax is, in nats,
//!
//! ```text
//! H = -Σ p_j ln p_j = ln Z - W / Z                      p_j = exp(x_j) / Z
//! ```
//!
//! `Z` and `W` are f64 sums of f32 weights and are updated when a later tile has a higher score.
//! Tiles come in the order of the sequence, and a tile is summed in a fixed number of lanes, so the
//! bits depend on a row's own scores alone.

use std::ops::Range;

use judge_kernels::exp::exp;
use judge_kernels::softmax::{TILE, scaled};
use judge_kernels::widest::widest;

use super::attention::{Made, Queries, Settings, Walk, walk};

/// Lanes of the sums over a tile. A fixed number on every processor, so that a sum has the same
/// bits everywhere.
const LANES: usize = 8;

/// The attention entropies, in nats, of the queries of block `block`, for arguments as
/// [`attend`](super::gather::attend) takes them: `out` gets `[queries, n_heads]`. Each is at least
/// 0, and NaN if a score that the query sees is NaN or `+inf`. With sinks it is `-Σ p ln p` over
/// the keys, whose weights then add up to less than 1.
///
/// # Panics
/// If `out` has another length.
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

/// Buffers of a walk, reused by the next walk of the same thread.
#[derive(Default)]
struct Scratch {
    /// Packed queries, `[rows, words]`.
    queries: Vec<u32>,
    /// Products with the tile at work, `[rows, TILE]`.
    scores: Vec<f32>,
    /// The sums of each row, `[rows]`.
    spreads: Vec<Spread>,
}

/// The body of a walk: one entropy for each row.
fn measure(walk: &Walk<'_>, scratch: &mut Scratch, made: &mut Made<'_>) {
    let Settings { scale, soft_cap, .. } = walk.settings;
    walk.pack(&mut scratch.queries);
    scratch.spreads.clear();
    scratch.spreads.resize(walk.len(), Spread::EMPTY);
    for tile in walk.tiles() {
        walk.scores(tile, &scratch.queries, &mut scratch.scores);
        widest(
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

/// The sums over the scores that a softmax has seen so far.
#[derive(Clone, Copy, Debug)]
struct Spread {
    /// The highest score so far, to which `x` is relative.
    highest: f32,
    /// `Σ exp(x)` with `x = score - highest`: at least 1 once a finite score was seen.
    total: f64,
    /// `Σ exp(x) x`, never positive.
    weighted: f64,
}

impl Spread {
    /// Nothing seen. `highest` is the lowest finite number instead of `-inf`, so that differences
    /// from it are never NaN.
    const EMPTY: Self = Self { highest: f32::MIN, total: 0.0, weighted: 0.0 };

    /// Takes a tile's scores at the places `seen`, which must not be empty. `scale` and `soft_cap`
    /// are those of [`Settings`]. Weights are f32, their sums f64. A score of `-inf` counts for
    /// nothing.
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
        // A weight of 0 counts for nothing. Without this, -inf would give 0 * -inf, which is NaN.
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

    /// Makes the sums relative to the score `highest`, if it is higher than the one so far. With
    /// `d = old - new`, every `x` becomes `x + d`, so
    ///
    /// ```text
    /// Z' = exp(d) Z          W' = Σ exp(x + d) (x + d) = exp(d) (W + d Z)
    /// ```
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

    /// The entropy of all that was seen, `ln Z - W / Z`: both terms are at least 0. NaN if a score
    /// was NaN or `+inf`, or if all were `-inf`.
    ///
    /// A sink adds its weight to the denominator `A = Z + exp(sink - highest)` and to nothing else.
    /// Then it is `-Σ p ln p = (ln A · Z - W) / A` over the keys.
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
    use judge_kernels::supported::Supported;

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
