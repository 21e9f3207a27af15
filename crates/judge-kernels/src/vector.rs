//! Arithmetic along one row of f32 numbers: norms, rotation, activations, packing to bf16.
//!
//! The operations of blocks (`block_ops.rs`, `encoder.rs`, `delta.rs`, `token_inputs.rs`) call
//! these functions row by row, on all threads; how rows are spread is their business.
//!
//! | functions | used for |
//! |---|---|
//! | `norm`, `rms_norm` | states between blocks; the delta rule |
//! | `norm_rotate`, `norm_heads`, `clip` | queries, keys and values; heads together |
//! | `gate`, `gated`, `activate` | MLPs, experts, gates of token inputs |
//! | `add`, `add_scaled` | residual streams, biases, sums over experts |
//! | `pack_pairs`, `bf16_bits` | activations, keys, values and weights of attention as words |
//!
//! Bodies are plain loops in a closure that [`pulp`] compiles for several sets of instructions; it
//! runs the one for the widest vectors that the processor has. What a closure calls must be
//! `inline(always)`: a function that is not inlined is compiled for the narrowest vectors.
//!
//! Multiplications and additions are never fused, and sums have a fixed number of partial sums
//! (`SIDE_BY_SIDE`). A row's bits therefore depend on the row alone, and not on the width of the
//! processor's vectors. Exponentials are those of `reading/exp.rs`. No function hides a NaN: a row
//! that holds one gives a row that holds one, and readings of it are refused later.

use std::f32::consts::SQRT_2;

use crate::exp::exp;
use crate::functions::{Activation, NormKind, Pairs};
use crate::widest::{halved, widest};

/// Partial sums that are kept side by side. A fixed number, so that a sum has the same bits on
/// every processor; a multiple of the lanes of any f32 vector.
const SIDE_BY_SIDE: usize = 16;

/// Rows of this width that a task should have at least (rayon's `with_min_len`): with fewer, waking
/// another thread costs more than it saves. About 32,768 numbers.
pub fn worth_a_task(width: usize) -> usize {
    (1 << 15) / width.max(1) + 1
}

/// The bits of the nearest bf16, ties to even, in the low half. What is too large becomes infinite.
/// A NaN stays a NaN, made quiet. Adding `0x7fff`, or `0x8000` where the last bit that stays is 1,
/// carries into that bit where the number is to be rounded up.
#[inline(always)]
pub fn bf16_bits(x: f32) -> u32 {
    if x.is_nan() { x.to_bits() >> 16 | 0x40 } else { bf16_bits_of_number(x) }
}

/// [`bf16_bits`] of what is no NaN.
#[inline(always)]
pub(crate) fn bf16_bits_of_number(x: f32) -> u32 {
    let bits = x.to_bits();
    bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16
}

/// Rounds a row to bf16, two numbers to a word, the first in the low half. An odd last number has a
/// zero beside it. Words behind the row become zero; numbers that have no room are left out.
///
/// ```text
/// row 1.0  2.0  3.0, three words      word 0: 2.0 << 16 | 1.0      word 1: 0 << 16 | 3.0      word 2: 0
/// ```
pub(crate) fn pack_pairs(row: &[f32], words: &mut [u32]) {
    widest(
        #[inline(always)]
        || {
            let (pairs, rest) = row.as_chunks::<2>();
            let mut words = words.iter_mut();
            for (pair, word) in pairs.iter().zip(words.by_ref()) {
                *word = bf16_bits(pair[0]) | bf16_bits(pair[1]) << 16;
            }
            if let Some(&last) = rest.first()
                && let Some(word) = words.next()
            {
                *word = bf16_bits(last);
            }
            words.for_each(|word| *word = 0);
        },
    );
}

/// `out = x / sqrt(mean(x²) + eps) * weight`: RMSNorm (Zhang and Sennrich, 2019). All have the same
/// length.
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    widest(
        #[inline(always)]
        || {
            let scale = inverse_rms(x, eps);
            for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
                *out = x * scale * weight;
            }
        },
    );
}

/// `out = y / sqrt(mean(y²) + eps) * weight + bias` with `y = x - mean(x)`: LayerNorm (Ba et al.,
/// 2016). `x` and `out` have the same length, and so has `weight`, or twice as many numbers: then the
/// bias is behind it. The variance is computed from the centred row and not
/// from `mean(x²)`, which would lose digits where the mean is large.
fn layer_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    widest(
        #[inline(always)]
        || {
            let mean = sum_of(x, |x| x) / x.len() as f32;
            out.iter_mut().zip(x).for_each(|(out, x)| *out = x - mean);
            let scale = inverse_rms(out, eps);
            let (weight, bias) = weight.split_at(x.len());
            out.iter_mut().zip(weight).for_each(|(out, weight)| *out = *out * scale * weight);
            out.iter_mut().zip(bias).for_each(|(out, bias)| *out += bias);
        },
    );
}

/// The norm of one row of states that the family has. All slices have the same length, but for a
/// LayerNorm's bias behind its weight.
pub fn norm(kind: NormKind, x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    match kind {
        NormKind::RmsNorm => rms_norm(x, weight, eps, out),
        NormKind::LayerNorm => layer_norm(x, weight, eps, out),
    }
}

/// `1 / sqrt(mean(x²) + eps)`, with the sum of [`sum_of`].
#[inline(always)]
fn inverse_rms(x: &[f32], eps: f32) -> f32 {
    1.0 / (sum_of(x, |x| x * x) / x.len() as f32 + eps).sqrt()
}

/// `Σ f(x)`. Every row of one length is summed in this one order:
///
/// ```text
/// partial sum i    f(x[i]) + f(x[i + 16]) + f(x[i + 32]) + …          i from 0 to 15
/// then             0..8 += 8..16     0..4 += 4..8     0..2 += 2..4     0 += 1
/// ```
#[inline(always)]
pub fn sum_of(x: &[f32], f: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = x.as_chunks::<SIDE_BY_SIDE>();
    let mut sums = [0.0; SIDE_BY_SIDE];
    for chunk in chunks {
        for (sum, &x) in sums.iter_mut().zip(chunk) {
            *sum += f(x);
        }
    }
    for (sum, &x) in sums.iter_mut().zip(rest) {
        *sum += f(x);
    }
    halved(sums)
}

/// The angles of one position, borrowed from the tables of `Angles`.
/// The default rotates nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn<'a> {
    /// Cosines, `[rotary_dim / 2]`; empty where nothing is rotated.
    pub cos: &'a [f32],
    /// Sines, as many.
    pub sin: &'a [f32],
    /// Which two coordinates of a head each angle rotates.
    pub pairs: Pairs,
}

/// Norms, clips and rotates the heads `[heads, head_dim]` of one position, in place and in this
/// order. Each step is left out where it is not asked for.
///
/// - `norm`: each head becomes `x / sqrt(mean(x²) + eps) * weight`, with a weight `[head_dim]`.
/// - `limit`: numbers are clipped to `[-limit, limit]` (`clip_qkv` of OLMoE); a NaN stays one.
/// - `turn`: each pair `(a, b)` of the first `rotary_dim` coordinates becomes
///   `(a cos - b sin, b cos + a sin)`; the coordinates behind them stay.
///
/// ```text
/// pairs of a head with rotary_dim 4, head_dim 5      Halves       (x0, x2) (x1, x3)     x4 stays
///                                                    Neighbours   (x0, x1) (x2, x3)     x4 stays
/// ```
///
/// # Panics
/// If a head is narrower than `rotary_dim`, for `Pairs::Halves`.
pub fn norm_rotate(
    heads: &mut [f32],
    head_dim: usize,
    norm: Option<(&[f32], f32)>,
    limit: Option<f32>,
    turn: Turn<'_>,
) {
    let Turn { cos, sin, pairs } = turn;
    widest(
        #[inline(always)]
        || {
            for head in heads.chunks_exact_mut(head_dim) {
                if let Some((weight, eps)) = norm {
                    let scale = inverse_rms(head, eps);
                    head.iter_mut().zip(weight).for_each(|(x, weight)| *x = *x * scale * weight);
                }
                if let Some(limit) = limit {
                    head.iter_mut().for_each(|x| *x = x.clamp(-limit, limit));
                }
                match pairs {
                    Pairs::Halves => {
                        let (first, rest) = head.split_at_mut(cos.len());
                        let second = &mut rest[..cos.len()];
                        for (((first, second), cos), sin) in first.iter_mut().zip(second).zip(cos).zip(sin) {
                            (*first, *second) = (*first * cos - *second * sin, *second * cos + *first * sin);
                        }
                    }
                    Pairs::Neighbours => {
                        for (([first, second], cos), sin) in head.as_chunks_mut().0.iter_mut().zip(cos).zip(sin) {
                            (*first, *second) = (*first * cos - *second * sin, *second * cos + *first * sin);
                        }
                    }
                }
            }
        },
    );
}

/// Divides each of the heads `[heads, head_dim]` by its root mean square, in place: a norm without
/// weight.
pub fn norm_heads(heads: &mut [f32], head_dim: usize, eps: f32) {
    widest(
        #[inline(always)]
        || {
            for head in heads.chunks_exact_mut(head_dim) {
                let scale = inverse_rms(head, eps);
                head.iter_mut().for_each(|x| *x *= scale);
            }
        },
    );
}

/// Clips numbers to `[-limit, limit]`, in place; a NaN stays one.
pub fn clip(x: &mut [f32], limit: f32) {
    x.iter_mut().for_each(|x| *x = x.clamp(-limit, limit));
}

/// Multiplies runs of successive numbers by the factor of each, `(length, factor)`.
pub fn scale_runs(x: &mut [f32], factors: &[(usize, f32)]) {
    let mut rest = x;
    for &(length, factor) in factors {
        let (run, behind) = rest.split_at_mut(length);
        run.iter_mut().for_each(|x| *x *= factor);
        rest = behind;
    }
}

/// The gated product of an MLP, in place: `up = f(gate) * up`, or `f(gate) * (clip(up) + 1)` for
/// [`Activation::ClampedSwish`], where `clip` is to `[-limit, limit]`. Both slices have the same
/// length. With `Gelu` the loop is not vectorised, since the error function is a call.
pub(crate) fn gate(gate: &[f32], up: &mut [f32], function: Activation) {
    match function {
        Activation::Silu => each_gated(gate, up, |gate, up| silu(gate) * up),
        Activation::GeluTanh => each_gated(gate, up, |gate, up| gelu_tanh(gate) * up),
        Activation::ClampedSwish { alpha, limit } => {
            each_gated(gate, up, |gate, up| clamped_swish(gate, alpha, limit) * (up.clamp(-limit, limit) + 1.0));
        }
        Activation::Gelu => each_gated(gate, up, |gate, up| gelu(gate) * up),
        Activation::Relu => each_gated(gate, up, |gate, up| relu(gate) * up),
        Activation::ReluSquared => each_gated(gate, up, |gate, up| relu_squared(gate) * up),
    }
}

/// `gate` with the result apart.
///
/// # Panics
/// If lengths differ.
pub fn gated(gate: &[f32], up: &[f32], function: Activation, out: &mut [f32]) {
    out.copy_from_slice(up);
    self::gate(gate, out, function);
}

/// What an MLP makes of the row that its first product gives: `f(x)` of as many numbers as it takes
/// on, `[d_ff]`, or of twice as many the second half [gated](gate) by the first.
pub(crate) fn activate_row(row: &[f32], function: Activation, out: &mut [f32]) {
    if row.len() == out.len() {
        out.copy_from_slice(row);
        activate(out, function);
    } else {
        let (gate, up) = row.split_at(out.len());
        gated(gate, up, function, out);
    }
}

/// `up = f(gate, up)`, number by number.
#[inline(always)]
fn each_gated(gate: &[f32], up: &mut [f32], function: impl Fn(f32, f32) -> f32) {
    widest(
        #[inline(always)]
        || up.iter_mut().zip(gate).for_each(|(up, &gate)| *up = function(gate, *up)),
    );
}

/// `x = f(x)`, in place: an MLP without a gate. [`Activation::ClampedSwish`] counts as if its
/// `up` were 0, so that the last factor is 1.
pub(crate) fn activate(x: &mut [f32], function: Activation) {
    match function {
        Activation::Silu => each(x, silu),
        Activation::GeluTanh => each(x, gelu_tanh),
        // What it gates is 0 where nothing is gated.
        Activation::ClampedSwish { alpha, limit } => each(x, |x| clamped_swish(x, alpha, limit)),
        Activation::Gelu => each(x, gelu),
        Activation::Relu => each(x, relu),
        Activation::ReluSquared => each(x, relu_squared),
    }
}

/// `x = f(x)`, number by number.
#[inline(always)]
fn each(x: &mut [f32], function: impl Fn(f32) -> f32) {
    widest(
        #[inline(always)]
        || x.iter_mut().for_each(|x| *x = function(*x)),
    );
}

/// `x / (1 + e^-x)`, also called swish. Where `e^-x` is infinite, below about -88, the result is
/// -0.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// `y / (1 + e^(-alpha y))` with `y = min(x, limit)`; a NaN stays one.
#[inline(always)]
fn clamped_swish(x: f32, alpha: f32, limit: f32) -> f32 {
    let x = x.clamp(f32::NEG_INFINITY, limit);
    x / (1.0 + exp(-alpha * x))
}

/// GELU by its tanh approximation (Hendrycks and Gimpel, 2016):
/// `x / 2 * (1 + tanh(√(2/π) (x + 0.044715 x³)))`. With `u` the argument of tanh it is computed as
/// `x / (1 + e^(-2u))`, which needs no tanh.
#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    /// √(2/π)
    const SCALE: f32 = 0.797_884_6;
    // (1 + tanh(u)) / 2 is the logistic function of 2u.
    let twice = 2.0 * SCALE * (x + 0.044_715 * x * x * x);
    x / (1.0 + exp(-twice))
}

/// GELU: `x / 2 * (1 + erf(x / √2))`. The error function is not vectorised.
#[inline(always)]
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + libm::erff(x / SQRT_2))
}

/// `max(x, 0)²`, but a NaN stays one.
#[inline(always)]
fn relu_squared(x: f32) -> f32 {
    relu(x) * relu(x)
}

/// `max(x, 0)`, but a NaN stays one, which `f32::max` would turn into 0.
#[inline(always)]
fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

/// `x += y`, for as many numbers as both have.
pub fn add(x: &mut [f32], y: &[f32]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

/// `x += scale * y`, for as many numbers as both have.
pub fn add_scaled(x: &mut [f32], y: &[f32], scale: f32) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += scale * y);
}

#[cfg(test)]
mod tests {
    use half::bf16;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn exp_is_right_over_its_range() {
        let mut worst = 0.0_f64;
        for i in -8_730..8_830 {
            let x = i as f32 / 100.0;
            let expected = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) - expected).abs() / expected);
        }
        assert!(worst < 2.5e-7, "{worst:e}");
        assert_eq!([exp(0.0), exp(-100.0), exp(f32::NEG_INFINITY)], [1.0, 0.0, 0.0]);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn activations_are_right_at_both_ends() {
        let gate: Vec<f32> = (-400..=400).map(|i| i as f32 / 4.0).collect();
        let up = vec![2.0; gate.len()];
        let mut out = vec![0.0; gate.len()];
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let reference: [(Activation, &dyn Fn(f64) -> f64); 5] = [
            (Activation::Silu, &|x| x * sigmoid(x)),
            (Activation::GeluTanh, &|x| {
                0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
            }),
            (Activation::Gelu, &|x| 0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2))),
            (Activation::Relu, &|x| x.max(0.0)),
            (Activation::ReluSquared, &|x| x.max(0.0).powi(2)),
        ];
        for (function, f) in reference {
            gated(&gate, &up, function, &mut out);
            let mut ungated = gate.clone();
            activate(&mut ungated, function);
            for ((&x, &found), ungated) in gate.iter().zip(&out).zip(ungated) {
                assert_eq!((2.0 * ungated).to_bits(), found.to_bits());
                let expected = 2.0 * f(f64::from(x));
                assert!(
                    (f64::from(found) - expected).abs() <= 2e-6 * expected.abs().max(1.0),
                    "{function:?} {x} {found}"
                );
            }
        }
        let clamped = Activation::ClampedSwish { alpha: 1.5, limit: 7.0 };
        gated(&gate, &up, clamped, &mut out);
        for (&x, &found) in gate.iter().zip(&out) {
            let x = f64::from(x).min(7.0);
            let expected = 3.0 * x * sigmoid(1.5 * x);
            assert!((f64::from(found) - expected).abs() <= 2e-6 * expected.abs().max(1.0), "{x} {found}");
        }
        let mut ends = [0.0; 3];
        gated(&[f32::NAN, 1.0, 1.0], &[1.0, 9.0, -9.0], clamped, &mut ends);
        assert!(ends[0].is_nan() && (ends[1] / ends[2] + 8.0 / 6.0).abs() < 1e-6);
    }

    proptest! {
        #[test]
        fn packing_rounds_as_bf16_does(row in prop::collection::vec(any::<f32>(), 0..70)) {
            let mut words = vec![u32::MAX; row.len().div_ceil(2) + 1];
            pack_pairs(&row, &mut words);
            let halves = words.iter().flat_map(|word| [*word as u16, (word >> 16) as u16]);
            for (i, half) in halves.enumerate() {
                let expected = row.get(i).map_or(bf16::ZERO, |&x| bf16::from_f32(x));
                let found = bf16::from_bits(half);
                prop_assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan());
            }
        }

        #[test]
        fn norms_are_right(row in prop::collection::vec(-8.0_f32..8.0, 1..200)) {
            let weight: Vec<f32> = (0..row.len()).map(|i| 1.0 + i as f32 / 100.0).collect();
            let mut out = vec![0.0; row.len()];
            rms_norm(&row, &weight, 1e-6, &mut out);
            let mean = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / row.len() as f64;
            for ((&out, &x), &weight) in out.iter().zip(&row).zip(&weight) {
                let expected = f64::from(x) / (mean + 1e-6).sqrt() * f64::from(weight);
                prop_assert!((f64::from(out) - expected).abs() <= 2e-6 * expected.abs().max(1e-3));
            }
        }
    }

    #[test]
    fn a_head_is_normed_then_rotated() {
        // Two heads of five coordinates, of which four turn: by a quarter turn and by none.
        let mut heads = [3.0, 1.0, 4.0, 2.0, 9.0, 0.0, 0.0, 1.0, 0.0, 0.0];
        norm_rotate(&mut heads, 5, None, None, Turn { cos: &[0.0, 1.0], sin: &[1.0, 0.0], pairs: Pairs::Halves });
        assert_eq!(heads, [-4.0, 1.0, 3.0, 2.0, 9.0, -1.0, 0.0, 0.0, 0.0, 0.0]);
        let mut head = [1.0, 2.0, 3.0, 4.0, 9.0];
        norm_rotate(&mut head, 5, None, None, Turn { cos: &[0.0, 1.0], sin: &[1.0, 0.0], pairs: Pairs::Neighbours });
        assert_eq!(head, [-2.0, 1.0, 3.0, 4.0, 9.0]);
        let mut head = [3.0, 4.0];
        norm_rotate(&mut head, 2, Some((&[2.0, 1.0], 0.0)), None, Turn::default());
        let rms = 12.5_f32.sqrt();
        assert!((head[0] - 6.0 / rms).abs() < 1e-6 && (head[1] - 4.0 / rms).abs() < 1e-6);
        // Cut in between: a quarter turn of (1.5, -1.5).
        let mut head = [3.0, -4.0];
        norm_rotate(&mut head, 2, None, Some(1.5), Turn { cos: &[0.0], sin: &[1.0], pairs: Pairs::Halves });
        assert_eq!(head, [1.5, 1.5]);
        clip(&mut head, 1.0);
        assert_eq!(head, [1.0, 1.0]);
    }
}
