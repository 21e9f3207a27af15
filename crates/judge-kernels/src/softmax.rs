//! [`Softmax`]: the running softmax of one row of attention scores, one or several tiles of keys at
//! a time.
//!
//! `gather.rs` and `gather_on_unit.rs` hold one for each row of a walk. They compute scores with a
//! tile of keys, let the softmax make weights of them, and multiply the weights with the tile's
//! values. Weights are relative to the highest score so far. What was gathered with earlier weights
//! is scaled down when a higher score comes (Dao et al., *FlashAttention*, 2022; Milakov and
//! Gimelshein, *Online normalizer calculation for softmax*, 2018):
//!
//! ```text
//! s_i    = score_i * scale                 then cap * tanh(s_i / cap) with a soft-cap; -∞ where not seen
//! m'     = max(m, s_i)                     the highest score so far
//! w_i    = exp(s_i - m')                   rounded to bf16 where a word holds two
//! f      = exp(m - m')                     returned: factor on everything gathered before; 1 if m' = m
//! total' = total * f + Σ w_i               of the weights as rounded, so that those used add up to 1
//! result = gathered / total                by the caller, at the end
//!
//! scores   1  3 | 2  5         two tiles, scale 1, no sink
//! tile 1   m = 3   w = e^-2, 1     total = 1.135
//! tile 2   m = 5   w = e^-3, 1     f = e^-2     total = 1.135 * 0.135 + 1.050 = 1.203
//! ```
//!
//! A sink is a score without a value: it starts the row with `m = sink` and `total = 1`.
//!
//! NaN: a NaN score never becomes the highest, but its weight is NaN, and so are the total and the
//! result. Readings that hold it are refused later.
//!
//! There are two bodies: plain loops, and AVX-512 for weights in pairs and kernels that multiply
//! pairs. They differ in last bits, as kernels do; one kernel and word always take the same one.
//! Tiles come at fixed positions and in order, so a row has the same bits in any company.

mod places;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::ops::Range;

#[cfg(target_arch = "x86_64")]
use super::kernel::Kernel;
use super::supported::Supported;
use super::tile::Word;
use super::vector::{bf16_bits, sum_of};
use crate::exp::exp;
use crate::widest::widest;
pub use places::TILE;
use places::mask;
#[cfg(target_arch = "x86_64")]
pub use x86::TILES;

/// The state of one row that has seen some of its scores.
#[derive(Clone, Copy, Debug)]
pub struct Softmax {
    /// The highest score so far, scaled and soft-capped; the sink's at least. `f32::MIN` before
    /// any.
    highest: f32,
    /// Sum of the weights so far, relative to the highest score's. NaN once a score was.
    total: f32,
}

impl Softmax {
    /// A row that has seen no score but its head's sink, if there is one: a score, taken as scaled,
    /// whose weight counts in the total and goes to no value. Without a sink the highest score
    /// starts at the lowest finite number, so that no difference from it is NaN.
    pub fn new(sink: Option<f32>) -> Self {
        match sink {
            Some(sink) => Self { highest: sink, total: 1.0 },
            None => Self { highest: f32::MIN, total: 0.0 },
        }
    }

    /// Sum of the weights so far, relative to the highest score's. Positive once a finite score was
    /// seen.
    pub fn total(self) -> f32 {
        self.total
    }

    /// Takes the scores of one tile. Returns the factor on what was gathered before: 1 if the
    /// highest score has not changed, so that the caller can leave it out.
    ///
    /// - `kernel` chooses the body.
    /// - `scores`: products of the row's query with the tile's keys, neither scaled nor
    ///   soft-capped.
    /// - `seen`: the places that the row sees, at least one. Other places may hold any number, NaN
    ///   too.
    /// - `weights`: gets the weight of every place in words of this kind, as a row of `a` in
    ///   [`multiply_add`](super::tile::multiply_add); zeros where not seen.
    pub fn take(
        &mut self,
        kernel: Supported,
        scores: &[f32; TILE],
        scale: f32,
        soft_cap: Option<f32>,
        seen: Range<usize>,
        (word, weights): (Word, &mut [u32]),
    ) -> f32 {
        let highest = self.highest;
        let added = match (kernel.of_floats(), word, weights.as_chunks_mut::<{ TILE / 2 }>().0) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `kernel` is the proof that the processor has its instructions.
            (Kernel::Amx | Kernel::Avx512Bf16, Word::Pair, [weights]) => unsafe {
                x86::weigh_tiles::<1>(&mut self.highest, scale, soft_cap, [(scores, seen, weights)])
            },
            _ => weigh(&mut self.highest, scores, scale, soft_cap, mask(seen), (word, weights)),
        };
        let shrink = if self.highest == highest { 1.0 } else { exp(highest - self.highest) };
        self.total = self.total * shrink + added;
        shrink
    }
}

#[cfg(target_arch = "x86_64")]
impl Softmax {
    /// As [`take`](Self::take) for several tiles at once, at most [`TILES`]. Each comes with its
    /// scores, the places that are seen, which may be none, and room for its weights in bf16. If no
    /// place of any tile is seen, the weights are zeros and the softmax stays as it is.
    ///
    /// # Safety
    /// The processor must have AVX-512 with BF16, as where there is a unit.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub fn take_tiles<'a>(
        &mut self,
        scale: f32,
        soft_cap: Option<f32>,
        tiles: impl IntoIterator<Item = (&'a [f32; TILE], Range<usize>, &'a mut [u32; TILE / 2])>,
    ) -> f32 {
        let highest = self.highest;
        let added = x86::weigh_tiles::<TILES>(&mut self.highest, scale, soft_cap, tiles);
        let shrink = if self.highest == highest { 1.0 } else { exp(highest - self.highest) };
        self.total = self.total * shrink + added;
        shrink
    }
}

/// A score, scaled and, where there is a cap, soft-capped to `cap * tanh(score * scale / cap)`.
/// `entropy.rs` uses it too.
#[inline(always)]
pub fn scaled(score: f32, scale: f32, soft_cap: Option<f32>) -> f32 {
    let scaled = score * scale;
    match soft_cap {
        // cap * tanh(scaled / cap)
        Some(cap) => cap * (1.0 - 2.0 / (1.0 + exp(2.0 * scaled / cap))),
        None => scaled,
    }
}

/// The portable body of [`Softmax::take`]: raises `highest`, writes the weights, and returns their
/// sum, in the order of [`sum_of`]. Weights are summed as they are written, rounded to bf16 where a
/// word holds two.
fn weigh(
    highest: &mut f32,
    scores: &[f32; TILE],
    scale: f32,
    soft_cap: Option<f32>,
    seen: u32,
    (word, weights): (Word, &mut [u32]),
) -> f32 {
    let (mut exact, mut total) = ([0.0; TILE], 0.0);
    widest(
        #[inline(always)]
        || {
            let mut scores = *scores;
            for (place, score) in scores.iter_mut().enumerate() {
                let scaled = scaled(*score, scale, soft_cap);
                *score = if seen >> place & 1 == 1 { scaled } else { f32::NEG_INFINITY };
            }
            *highest = highest_of(&scores, *highest);
            exact.iter_mut().zip(&scores).for_each(|(exact, score)| *exact = exp(score - *highest));
            total = match word {
                Word::Pair => sum_of(&exact, |x| f32::from_bits(bf16_bits(x) << 16)),
                Word::Single => sum_of(&exact, |x| x),
            };
        },
    );
    word.pack(&exact, weights);
    total
}

/// The highest of some scores and one more, which is no NaN; NaN among the scores does not count.
#[inline(always)]
fn highest_of(scores: &[f32; TILE], highest: f32) -> f32 {
    /// Half of a tile is compared side by side.
    const HALF: usize = TILE / 2;
    let mut all = [highest; HALF];
    for scores in scores.as_chunks::<HALF>().0 {
        for (highest, &score) in all.iter_mut().zip(scores) {
            *highest = if score > *highest { score } else { *highest };
        }
    }
    all.into_iter().fold(highest, |highest, score| if score > highest { score } else { highest })
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use proptest::prelude::*;

    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::unit::HasUnit;

    proptest! {
        #[test]
        fn weights_are_those_of_a_softmax(
            tiles in prop::collection::vec(
                (prop::array::uniform32(-40.0_f32..40.0), 0_usize..32, 1_usize..32), 1..5),
            soft_cap in prop::option::of(2.0_f32..30.0),
            sink in prop::option::of(-12.0_f32..12.0),
        ) {
            for (kernel, word) in Supported::all().flat_map(|kernel| [(kernel, Word::Pair), (kernel, Word::Single)]) {
                let mut softmax = Softmax::new(sink);
                let (mut found, mut expected) = (Vec::<f64>::new(), Vec::<f64>::new());
                for (scores, start, len) in &tiles {
                    let seen = *start..(start + len).min(TILE);
                    let mut weights = vec![u32::MAX; word.count(TILE)];
                    let shrink = softmax.take(kernel, scores, 0.25, soft_cap, seen.clone(), (word, &mut weights));
                    found.iter_mut().for_each(|weight| *weight *= f64::from(shrink));
                    let numbers: Vec<f64> = match word {
                        Word::Pair => {
                            let halves = weights.iter().flat_map(|word| [*word as u16, (word >> 16) as u16]);
                            halves.map(|half| bf16::from_bits(half).to_f64()).collect()
                        }
                        Word::Single => weights.iter().map(|&word| f64::from(f32::from_bits(word))).collect(),
                    };
                    prop_assert_eq!(numbers.len(), TILE);
                    for (place, weight) in numbers.into_iter().enumerate() {
                        prop_assert!(seen.contains(&place) || weight == 0.0);
                        if seen.contains(&place) {
                            found.push(weight);
                            let score = f64::from(scores[place]) * 0.25;
                            let cap = soft_cap.map(f64::from);
                            expected.push(cap.map_or(score, |cap| cap * (score / cap).tanh()));
                        }
                    }
                }
                let highest = expected.iter().copied().chain(sink.map(f64::from)).fold(f64::MIN, f64::max);
                for (found, score) in found.iter().zip(&expected) {
                    let expected = (score - highest).exp();
                    let tolerance = if word == Word::Pair { 5e-3 } else { 1e-5 };
                    prop_assert!((found - expected).abs() <= tolerance * expected + 1e-30, "{kernel:?} {found} {expected}");
                }
                let total = found.iter().sum::<f64>() + sink.map_or(0.0, |sink| (f64::from(sink) - highest).exp());
                prop_assert!((f64::from(softmax.total()) - total).abs() <= 1e-5 * total, "{kernel:?}");
            }
        }
    }

    #[test]
    fn a_nan_stays_visible() {
        for kernel in Supported::all() {
            let mut scores = [0.0; TILE];
            scores[7] = f32::NAN;
            let softmax = Softmax::new(None);
            for word in [Word::Pair, Word::Single] {
                let mut softmax = softmax;
                softmax.take(kernel, &scores, 1.0, None, 0..TILE, (word, &mut vec![0; word.count(TILE)]));
                assert!(softmax.total().is_nan(), "{kernel:?}");
            }
            #[cfg(target_arch = "x86_64")]
            if HasUnit::of(kernel).is_some() {
                // In any of the tiles, also where a later one has a higher score.
                for at in 0..TILES {
                    let (mut softmax, mut weights) = (softmax, [[0; TILE / 2]; TILES]);
                    let of_tiles = weights
                        .iter_mut()
                        .enumerate()
                        .map(|(tile, weights)| (if tile == at { &scores } else { &[9.0; TILE] }, 0..TILE, weights));
                    // SAFETY: where there is a unit there is AVX-512 with BF16.
                    unsafe { softmax.take_tiles(1.0, None, of_tiles) };
                    assert!(softmax.total().is_nan(), "tile {at}");
                }
            }
        }
    }
}
