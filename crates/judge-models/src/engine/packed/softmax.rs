//! The running softmax of a row of scores, a tile at a time.

use std::ops::Range;

use super::kernel::{Kernel, Supported};
use super::keys::TILE;
use super::tile::Word;
#[cfg(target_arch = "x86_64")]
use super::unit::Unit;
use super::vector::bf16_bits;
use crate::reading::exp::exp;

/// Tiles that a softmax on the matrix unit takes at once.
#[cfg(target_arch = "x86_64")]
pub(crate) const TILES: usize = 4;

/// A softmax that has seen some of its scores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Softmax {
    highest: f32,
    /// Of the weights, relative to the highest score's.
    total: f32,
}

impl Softmax {
    /// One that has seen nothing but a sink, if there is one: a score, as scaled ones are, whose weight counts in the total and goes to nothing. Without it
    /// it has the lowest score that is not infinite: differences from it are never NaN.
    pub(crate) fn new(sink: Option<f32>) -> Self {
        match sink {
            Some(sink) => Self { highest: sink, total: 1.0 },
            None => Self { highest: f32::MIN, total: 0.0 },
        }
    }

    /// Sum of the weights so far, relative to the highest score's.
    pub(crate) fn total(self) -> f32 {
        self.total
    }

    /// Takes the scores of the places `seen`, which are some, scaled and soft-capped. `weights` gets the weight of every place
    /// relative to the highest score, in words of this kind; places not seen weigh nothing. Returns what weights given before are to be
    /// multiplied with, 1 where the highest score is still the same.
    pub(crate) fn take(
        &mut self,
        kernel: Supported,
        scores: &[f32; TILE],
        scale: f32,
        soft_cap: Option<f32>,
        seen: Range<usize>,
        (word, weights): (Word, &mut [u32]),
    ) -> f32 {
        let seen = mask(seen);
        let highest = self.highest;
        let added = match (kernel.kernel(), word, weights.as_chunks_mut().0) {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `kernel` is the proof that the processor has its instructions.
            (Kernel::Amx | Kernel::Avx512Bf16, Word::Pair, [weights]) => unsafe {
                x86::weigh(&mut self.highest, scores, scale, soft_cap, seen, weights)
            },
            _ => weigh(&mut self.highest, scores, scale, soft_cap, seen, (word, weights)),
        };
        let shrink = if self.highest == highest { 1.0 } else { exp(highest - self.highest) };
        self.total = self.total * shrink + added;
        shrink
    }
}

#[cfg(target_arch = "x86_64")]
impl Softmax {
    /// As [`take`](Self::take), of several tiles at once, at most [`TILES`], each with its scores, the places that are seen of it, which may be
    /// none, and where its weights go. Where no place of any tile is seen, nothing happens to the softmax.
    pub(crate) fn take_tiles<'a>(
        &mut self,
        _: &Unit,
        scale: f32,
        soft_cap: Option<f32>,
        tiles: impl IntoIterator<Item = (&'a [f32; TILE], Range<usize>, &'a mut [u32; TILE / 2])>,
    ) -> f32 {
        let highest = self.highest;
        // SAFETY: where there is a unit there is AVX-512 with BF16.
        let added = unsafe { x86::weigh_tiles(&mut self.highest, scale, soft_cap, tiles) };
        let shrink = if self.highest == highest { 1.0 } else { exp(highest - self.highest) };
        self.total = self.total * shrink + added;
        shrink
    }
}

/// A bit for each of the places.
fn mask(seen: Range<usize>) -> u32 {
    // All 32 if `end` is 32.
    let below = |end: usize| ((1_u64 << end) - 1) as u32;
    below(seen.end) & !below(seen.start.min(seen.end))
}

/// A score, scaled and soft-capped.
#[inline(always)]
pub(super) fn scaled(score: f32, scale: f32, soft_cap: Option<f32>) -> f32 {
    let scaled = score * scale;
    match soft_cap {
        // cap * tanh(scaled / cap)
        Some(cap) => cap * (1.0 - 2.0 / (1.0 + exp(2.0 * scaled / cap))),
        None => scaled,
    }
}

/// Raises `highest` to the highest score, writes the weights, and returns their sum. They are summed as they are written, rounded to bf16 where a
/// word holds two, so that the weights that are used add up to one.
fn weigh(
    highest: &mut f32,
    scores: &[f32; TILE],
    scale: f32,
    soft_cap: Option<f32>,
    seen: u32,
    (word, weights): (Word, &mut [u32]),
) -> f32 {
    let scores: [f32; TILE] = std::array::from_fn(|place| {
        let score = scaled(scores[place], scale, soft_cap);
        if seen >> place & 1 == 1 { score } else { f32::NEG_INFINITY }
    });
    *highest = scores.iter().fold(*highest, |highest, &score| if score > highest { score } else { highest });
    let exact = scores.map(|score| exp(score - *highest));
    word.pack(&exact, weights);
    match word {
        Word::Pair => exact.iter().map(|&x| f32::from_bits(bf16_bits(x) << 16)).sum(),
        Word::Single => exact.iter().sum(),
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256bh, __m256i, __m512, _CMP_LT_OQ, _mm256_storeu_si256, _mm512_add_ps, _mm512_cmp_ps_mask,
        _mm512_cvtneps_pbh, _mm512_cvtpbh_ps, _mm512_div_ps, _mm512_fmadd_ps, _mm512_fnmadd_ps, _mm512_loadu_ps,
        _mm512_mask_blend_ps, _mm512_mask_mov_ps, _mm512_max_ps, _mm512_mul_ps, _mm512_reduce_add_ps,
        _mm512_reduce_max_ps, _mm512_roundscale_ps, _mm512_scalef_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_sub_ps,
    };
    use std::f32::consts::LOG2_E;
    use std::mem::transmute;

    use std::ops::Range;

    use super::{TILE, TILES, mask};

    /// What [`weigh`] does, for several tiles; see [`Softmax::take_tiles`](super::Softmax::take_tiles).
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) fn weigh_tiles<'a>(
        highest: &mut f32,
        scale: f32,
        soft_cap: Option<f32>,
        tiles: impl IntoIterator<Item = (&'a [f32; TILE], Range<usize>, &'a mut [u32; TILE / 2])>,
    ) -> f32 {
        let unseen = _mm512_set1_ps(f32::NEG_INFINITY);
        let mut halves = [[unseen; 2]; TILES];
        let mut places: [Option<&mut [u32; TILE / 2]>; TILES] = Default::default();
        let (mut here, mut any) = (unseen, 0);
        for ((scores, seen, weights), (halves, place)) in tiles.into_iter().zip(halves.iter_mut().zip(&mut places)) {
            let seen = mask(seen);
            if seen == 0 {
                weights.fill(0);
                continue;
            }
            any |= seen;
            *place = Some(weights);
            for (half, scaled) in halves.iter_mut().enumerate() {
                // SAFETY: sixteen of the 32 scores.
                let scores = unsafe { _mm512_loadu_ps(scores.as_ptr().add(16 * half)) };
                *scaled = _mm512_mul_ps(scores, _mm512_set1_ps(scale));
                if let Some(cap) = soft_cap {
                    *scaled = cap_scores(*scaled, cap);
                }
                *scaled = _mm512_mask_blend_ps((seen >> (16 * half)) as u16, unseen, *scaled);
                // Of two of which one is NaN it takes the second.
                here = _mm512_max_ps(here, *scaled);
            }
        }
        if any == 0 {
            return 0.0;
        }
        let here = _mm512_reduce_max_ps(here);
        *highest = if here > *highest { here } else { *highest };
        let mut total = _mm512_setzero_ps();
        for (halves, weights) in halves.into_iter().zip(places) {
            let Some(weights) = weights else { continue };
            for (half, scores) in halves.into_iter().enumerate() {
                let rounded = _mm512_cvtneps_pbh(exp(_mm512_sub_ps(scores, _mm512_set1_ps(*highest))));
                total = _mm512_add_ps(total, _mm512_cvtpbh_ps(rounded));
                // SAFETY: eight of the sixteen words; both types are 256 bits.
                unsafe {
                    let to = weights.as_mut_ptr().add(8 * half).cast();
                    _mm256_storeu_si256(to, transmute::<__m256bh, __m256i>(rounded));
                }
            }
        }
        _mm512_reduce_add_ps(total)
    }

    /// What [`super::weigh`] does, sixteen places at a time.
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) fn weigh(
        highest: &mut f32,
        scores: &[f32; TILE],
        scale: f32,
        soft_cap: Option<f32>,
        seen: u32,
        weights: &mut [u32; TILE / 2],
    ) -> f32 {
        let unseen = _mm512_set1_ps(f32::NEG_INFINITY);
        let halves = [(0, seen as u16), (16, (seen >> 16) as u16)].map(|(at, seen)| {
            // SAFETY: sixteen of the 32 scores.
            let scores = unsafe { _mm512_loadu_ps(scores.as_ptr().add(at)) };
            let scaled = _mm512_mul_ps(scores, _mm512_set1_ps(scale));
            let capped = match soft_cap {
                Some(cap) => cap_scores(scaled, cap),
                None => scaled,
            };
            _mm512_mask_blend_ps(seen, unseen, capped)
        });
        let here = _mm512_reduce_max_ps(_mm512_max_ps(halves[0], halves[1]));
        *highest = if here > *highest { here } else { *highest };
        let mut total = _mm512_setzero_ps();
        for (half, scores) in halves.into_iter().enumerate() {
            let rounded = _mm512_cvtneps_pbh(exp(_mm512_sub_ps(scores, _mm512_set1_ps(*highest))));
            total = _mm512_add_ps(total, _mm512_cvtpbh_ps(rounded));
            // SAFETY: eight of the sixteen words; both types are 256 bits.
            unsafe {
                _mm256_storeu_si256(weights.as_mut_ptr().add(8 * half).cast(), transmute::<__m256bh, __m256i>(rounded))
            };
        }
        _mm512_reduce_add_ps(total)
    }

    /// `cap * tanh(x / cap)`
    #[target_feature(enable = "avx512f")]
    fn cap_scores(x: __m512, cap: f32) -> __m512 {
        let (one, two) = (_mm512_set1_ps(1.0), _mm512_set1_ps(2.0));
        let e = exp(_mm512_mul_ps(x, _mm512_set1_ps(2.0 / cap)));
        let tanh = _mm512_sub_ps(one, _mm512_div_ps(two, _mm512_add_ps(one, e)));
        _mm512_mul_ps(tanh, _mm512_set1_ps(cap))
    }

    /// As [`crate::engine::packed::vector::exp`].
    #[target_feature(enable = "avx512f")]
    fn exp(x: __m512) -> __m512 {
        let whole = _mm512_roundscale_ps::<0>(_mm512_mul_ps(x, _mm512_set1_ps(LOG2_E)));
        let rest = _mm512_fnmadd_ps(whole, _mm512_set1_ps(0.693_359_4), x);
        let rest = _mm512_fnmadd_ps(whole, _mm512_set1_ps(-2.121_944_4e-4), rest);
        let mut power = _mm512_set1_ps(1.0 / 5040.0);
        for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
            power = _mm512_fmadd_ps(power, rest, _mm512_set1_ps(coefficient));
        }
        let low = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, _mm512_set1_ps(-87.3));
        _mm512_mask_mov_ps(_mm512_scalef_ps(power, whole), low, _mm512_setzero_ps())
    }
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use proptest::prelude::*;

    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::engine::packed::unit::HasUnit;

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
                        Word::Pair => weights.iter().flat_map(|word| [*word as u16, (word >> 16) as u16]).map(|half| bf16::from_bits(half).to_f64()).collect(),
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
            if let Some(unit) = HasUnit::of(kernel) {
                // In any of the tiles, also where a later one has a higher score.
                for at in 0..TILES {
                    let (mut softmax, mut weights) = (softmax, [[0; TILE / 2]; TILES]);
                    let of_tiles = weights
                        .iter_mut()
                        .enumerate()
                        .map(|(tile, weights)| (if tile == at { &scores } else { &[9.0; TILE] }, 0..TILE, weights));
                    softmax.take_tiles(&unit.hold(), 1.0, None, of_tiles);
                    assert!(softmax.total().is_nan(), "tile {at}");
                }
            }
        }
    }
}
