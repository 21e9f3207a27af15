//! The bodies of softmax for AVX-512 with BF16: sixteen places to a register, exponentials with fused
//! multiply-adds.

use std::arch::x86_64::{
    __m256bh, __m256i, __m512, _CMP_LT_OQ, _mm256_storeu_si256, _mm512_add_ps, _mm512_cmp_ps_mask, _mm512_cvtneps_pbh,
    _mm512_cvtpbh_ps, _mm512_div_ps, _mm512_fmadd_ps, _mm512_fnmadd_ps, _mm512_loadu_ps, _mm512_mask_blend_ps,
    _mm512_mask_mov_ps, _mm512_max_ps, _mm512_mul_ps, _mm512_reduce_add_ps, _mm512_reduce_max_ps, _mm512_roundscale_ps,
    _mm512_scalef_ps, _mm512_set1_ps, _mm512_setzero_ps, _mm512_sub_ps,
};
use std::f32::consts::LOG2_E;
use std::mem::transmute;
use std::ops::Range;

use super::places::TILE;
use super::places::mask;

/// Tiles of keys that a softmax on the matrix unit takes at once, at most. `gather_on_unit.rs`
/// groups tiles at multiples of it.
pub const TILES: usize = 4;

/// The body of [`Softmax::take_tiles`](super::Softmax::take_tiles), and with one tile of
/// [`Softmax::take`](super::Softmax::take) for weights in pairs: the highest score of all, at most
/// `MOST`, tiles first, then all weights against it, so `highest` is raised once for a group.
/// Returns the sum of the weights, in sixteen lanes side by side that are reduced at the end. Tiles
/// of which nothing is seen are skipped and get zeros.
#[target_feature(enable = "avx512f,avx512bf16")]
pub(crate) fn weigh_tiles<'a, const MOST: usize>(
    highest: &mut f32,
    scale: f32,
    soft_cap: Option<f32>,
    tiles: impl IntoIterator<Item = (&'a [f32; TILE], Range<usize>, &'a mut [u32; TILE / 2])>,
) -> f32 {
    let unseen = _mm512_set1_ps(f32::NEG_INFINITY);
    let mut halves = [[unseen; 2]; MOST];
    let mut places: [Option<&mut [u32; TILE / 2]>; MOST] = std::array::from_fn(|_| None);
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

/// `cap * tanh(x / cap)`, as `cap * (1 - 2 / (1 + exp(2x / cap)))`.
#[target_feature(enable = "avx512f")]
fn cap_scores(x: __m512, cap: f32) -> __m512 {
    let (one, two) = (_mm512_set1_ps(1.0), _mm512_set1_ps(2.0));
    let e = exp(_mm512_mul_ps(x, _mm512_set1_ps(2.0 / cap)));
    let tanh = _mm512_sub_ps(one, _mm512_div_ps(two, _mm512_add_ps(one, e)));
    _mm512_mul_ps(tanh, _mm512_set1_ps(cap))
}

/// `e^x` by the formula of [`crate::exp::exp`], with fused multiply-adds, so its last
/// bits differ. 0 below -87.3; NaN of a NaN, and of positive infinity, which no difference from
/// a highest score is.
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
