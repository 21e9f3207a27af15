//! The entropy of the weights that queries give the keys they see, tile by tile, without the values.
//!
//! A pass of its own over the scores, made only where it is asked for: weights are as exact as f32 has them, where
//! attention rounds them to bf16, and it takes positions that attention may leave out. One body serves every kernel; only the products
//! of queries and keys are theirs.

use std::ops::Range;

use pulp::Arch;

use super::attention::{Queries, Settings, Walk, walk};
use super::keys::TILE;
use super::softmax::scaled;
use super::vector::exp;

/// Sums side by side. A fixed number, so that a sum has the same bits on every row.
const LANES: usize = 8;

/// The entropies in nats of the queries of block `block`, for arguments as [`attend`](super::attention::attend) takes them; `out` gets
/// `[queries, n_heads]`.
pub(crate) fn entropies(
    settings: Settings,
    block: usize,
    queries: &[Queries<'_>],
    rows: &[f32],
    stride: usize,
    out: &mut [f32],
) {
    walk(settings, block, queries, rows, stride, (settings.n_heads, out), measure);
}

/// Buffers of a walk, by row.
#[derive(Default)]
struct Scratch {
    /// `[rows][pairs]`.
    queries: Vec<u32>,
    /// `[rows][TILE]`.
    scores: Vec<f32>,
    spreads: Vec<Spread>,
}

fn measure(walk: &Walk<'_>, scratch: &mut Scratch, out: &mut [f32]) {
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
        out[walk.place(row)] = spread.entropy() as f32;
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
        if highest > self.highest {
            // What was seen so far, from the new highest score; before the first it is nothing.
            let step = if self.total == 0.0 { 0.0 } else { f64::from(self.highest) - f64::from(highest) };
            let shrink = libm::exp(step);
            self.weighted = shrink * (self.weighted + step * self.total);
            self.total *= shrink;
            self.highest = highest;
        }
        let x: [f32; TILE] = std::array::from_fn(|place| if is_seen(place) { scores[place] - highest } else { 0.0 });
        let weights: [f32; TILE] = std::array::from_fn(|place| if is_seen(place) { exp(x[place]) } else { 0.0 });
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

    /// `ln Σ exp(x) - Σ exp(x) x / Σ exp(x)`, of which both terms are at least 0; NaN if a score was.
    fn entropy(self) -> f64 {
        libm::log(self.total) - self.weighted / self.total
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use half::bf16;
    use proptest::prelude::*;

    use super::*;
    use crate::cpu::Kernel;
    use crate::cpu::keys::{KeyShape, Keys};

    fn numbers(seed: u64, count: usize) -> Vec<f32> {
        (0..count as u64)
            .map(|i| {
                let mixed = (seed ^ i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd134_2543_de82_ef95);
                ((mixed >> 40) as f32 / (1 << 23) as f32 - 1.0) * 2.0
            })
            .collect()
    }

    /// `[n_heads]` of the query at `position`, by the definition, in f64.
    fn expected(settings: Settings, rows: &[f32], stride: usize, position: usize) -> Vec<f64> {
        let KeyShape { n_kv_heads, head_dim } = settings.shape;
        let round = |x: f32| f64::from(bf16::from_f32(x).to_f32());
        let part = |row: usize, at: usize| rows[row * stride + at * head_dim..][..head_dim].iter().map(|&x| round(x));
        let first = settings.window.map_or(0, |window| (position + 1).saturating_sub(window));
        (0..settings.n_heads)
            .map(|head| {
                let key_head = settings.n_heads + head / (settings.n_heads / n_kv_heads);
                let weights: Vec<f64> = (first..=position)
                    .map(|key| {
                        let dot: f64 = part(position, head).zip(part(key, key_head)).map(|(a, b)| a * b).sum();
                        let score = dot * f64::from(settings.scale);
                        settings.soft_cap.map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh()).exp()
                    })
                    .collect();
                let total: f64 = weights.iter().sum();
                weights.iter().map(|w| w / total).filter(|&p| p > 0.0).map(|p| -p * p.ln()).sum()
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn entropies_are_right_and_the_same_bits_however_they_are_cut(
            seq in 1_usize..150,
            (n_kv_heads, group) in (1_usize..3, 1_usize..4),
            head_dim in prop::sample::select(vec![2_usize, 16, 64, 80]),
            window in prop::option::of(1_usize..100),
            soft_cap in prop::option::of(1.0_f32..20.0),
            scale in prop::sample::select(vec![0.01_f32, 0.3, 2.0]),
            cut in 0_usize..5,
            seed in any::<u64>(),
        ) {
            let shape = KeyShape { n_kv_heads, head_dim };
            let n_heads = n_kv_heads * group;
            let stride = (n_heads + 2 * n_kv_heads) * head_dim;
            let after_queries = n_heads * head_dim;
            let rows = numbers(seed, seq * stride);
            for kernel in Kernel::available() {
                let settings = Settings { kernel, n_heads, shape, scale, soft_cap, window };
                let mut keys = Keys::new(shape, None, seq, 1);
                keys.write(0, &rows[after_queries..], stride, seq);
                let mut out = vec![f32::NAN; seq * n_heads];
                let all = Queries { keys: &keys, position: 0, row: 0, count: seq };
                entropies(settings, 0, &[all], &rows, stride, &mut out);
                for position in [0, seq / 2, seq - 1] {
                    let expected = expected(settings, &rows, stride, position);
                    for (found, expected) in out[position * n_heads..][..n_heads].iter().zip(expected) {
                        // Scores of up to some hundred are sums in f32.
                        prop_assert!((f64::from(*found) - expected).abs() < 2e-4, "{kernel:?} {found} {expected}");
                        prop_assert!(*found >= 0.0);
                    }
                }
                // In two pieces, the second one position at a time, with the first one's keys shared.
                let cut = (cut * TILE).min(seq / TILE * TILE);
                let mut before = Keys::new(shape, None, cut, 2);
                before.write(1, &rows[after_queries..], stride, cut);
                before.advance(cut);
                let before = (cut > 0).then(|| Arc::new(before));
                let mut keys = Keys::new(shape, before, seq - cut, 2);
                for position in cut..seq {
                    keys.write(1, &rows[position * stride + after_queries..], stride, 1);
                    let mut alone = vec![0.0; n_heads];
                    let query = Queries { keys: &keys, position, row: position, count: 1 };
                    entropies(settings, 1, &[query], &rows, stride, &mut alone);
                    let together = &out[position * n_heads..][..n_heads];
                    prop_assert!(alone.iter().zip(together).all(|(a, b)| a.to_bits() == b.to_bits()), "{kernel:?}");
                    keys.advance(1);
                }
            }
        }
    }

    #[test]
    fn certainty_and_indifference_and_a_nan() {
        let entropy = |tiles: &[([f32; TILE], Range<usize>)]| {
            let mut spread = Spread::EMPTY;
            tiles.iter().for_each(|(scores, seen)| spread.take(scores, 1.0, None, seen.clone()));
            spread.entropy()
        };
        // A score that a later one leaves far behind, and one that is never seen.
        let mut scores = [-300.0; TILE];
        (scores[3], scores[9]) = (500.0, f32::NAN);
        assert!(entropy(&[([0.0; TILE], 0..TILE), (scores, 0..9)]) < 1e-200);
        assert!((entropy(&[([7.0; TILE], 2..TILE), ([7.0; TILE], 0..20)]) - 50_f64.ln()).abs() < 1e-12);
        assert_eq!(entropy(&[([-1e4; TILE], 5..6)]), 0.0);
        assert!(entropy(&[([0.0; TILE], 0..TILE), (scores, 0..TILE)]).is_nan());
        assert!(entropy(&[([0.0; TILE], 0..TILE), ([f32::INFINITY; TILE], 0..1)]).is_nan());
    }
}
