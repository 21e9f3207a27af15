//! Blocks without keys, composed of Burn's operations: the gated delta rule, position by position,
//! and the gated short convolution. [`DeltaSpec`](judge_arch::DeltaSpec) and [`ConvSpec`] have
//! their formulas; `block_ops.rs` fetches and keeps what they remember.
//!
//! Both begin with a convolution over the last `kernel` positions, for which the last `kernel - 1`
//! rows of channels are remembered. A delta rule also remembers a matrix for each value head.
//! Everything is computed in f32.
//!
//! On a GPU each position of a delta rule costs some small kernels. This is the reference that
//! other bodies are compared with, and what gradients flow through, not a fast form.

use burn::tensor::{DType, Tensor, activation};
use judge_arch::{ConvSpec, DeltaShape};

use super::ops::rms_norm;
use super::parameters::Norm;
use super::precision::widen;
use super::slots::Memory;
use crate::engine::block::Delta;

/// Added to the squared length of a head of queries or keys before the root is taken; the same
/// number as in transformers' `l2norm`.
const EPS: f64 = 1e-6;

/// What a delta rule or a state space gives, and what it remembers.
pub(crate) struct Given {
    /// What the rest of the block gets, `[batch, seq, d_value]` or `[batch, seq, d_inner]`.
    pub(crate) values: Tensor<3>,
    /// Rows before the convolution, those that were remembered first:
    /// `[batch, kernel - 1 + seq, channels]`. The caller cuts the last ones of each sequence from
    /// them.
    pub(crate) rows: Tensor<3>,
    /// The state of each head behind the last position, `[batch, n_value_heads, key_dim, value_dim]` or
    /// `[batch, n_heads, d_state, head_dim]`.
    pub(crate) heads: Tensor<4>,
}

/// A causal convolution of rows `x` `[batch, seq, channels]`, each channel for itself:
/// `y[t] = Σ_k weights[c, k] * rows[t + k]`, where `rows` are `recent` and then `x`.
///
/// `weights` are `[channels, kernel]`, flattened. `recent` are the `kernel - 1` rows before,
/// `[batch, kernel - 1, channels]`; `None` stands for zeros, at the beginning of a sequence.
/// Returns the convolved rows, of the shape of `x`, and all rows
/// `[batch, kernel - 1 + seq, channels]`. The sum goes from the oldest position to the newest.
pub(super) fn convolve(
    x: Tensor<3>,
    weights: Tensor<1>,
    kernel: usize,
    recent: Option<Tensor<3>>,
) -> (Tensor<3>, Tensor<3>) {
    let [batch, seq, channels] = x.dims();
    let recent = recent.unwrap_or_else(|| Tensor::zeros([batch, kernel - 1, channels], (&x.device(), DType::F32)));
    let rows = Tensor::cat(vec![recent, x], 1); // [batch, kernel - 1 + seq, channels]
    let taps = weights.reshape([channels, kernel]).transpose(); // [kernel, channels]
    let tap = |tap: usize| {
        let weights = taps.clone().narrow(0, tap, 1).reshape([1, 1, channels]);
        rows.clone().narrow(1, tap, seq) * weights // -> [batch, seq, channels]
    };
    let given = (1..kernel).map(tap).fold(tap(0), |sum, tap| sum + tap);
    (given, rows)
}

/// Lets rows `[B, C, x]`, `[batch, seq, 3 * channels]`, through a gated short convolution:
/// `C * conv(B * x)`. Of `before` only the rows count; `None` is the beginning of a sequence.
///
/// Returns what the rest of the block gets, `[batch, seq, channels]`, and the rows `B * x` that were
/// convolved, those that were remembered first: `[batch, kernel - 1 + seq, channels]`.
pub(crate) fn short_conv(x: Tensor<3>, weights: Tensor<1>, spec: &ConvSpec, before: Option<Memory>) -> [Tensor<3>; 2] {
    let x = widen(x);
    let [b, c, x] = [0, 1, 2].map(|part| x.clone().narrow(2, part * spec.channels, spec.channels));
    let (given, rows) = convolve(b * x, weights, spec.kernel, before.map(|(recent, _)| recent));
    [given * c, rows]
}

/// Lets rows `[q, k, v, z, b, a]`, `[batch, seq, width]`, through a delta rule, on from what it
/// remembers; `None` is the beginning of a sequence. `eps` is the one of the output norm.
///
/// Where `is_there` `[batch, seq, 1]` is 0 the states of heads stay as they are, because both the
/// rate of decay and the strength of the change become 0: that is how padding leaves a state alone.
/// `None`: all positions count.
pub(crate) fn delta(
    x: Tensor<3>,
    (shape, weights, eps): (DeltaShape, &Delta<Norm>, f64),
    before: Option<Memory>,
    is_there: Option<Tensor<3>>,
) -> Given {
    let x = widen(x);
    let [batch, seq, _] = x.dims();
    let DeltaShape { n_key_heads, n_value_heads, key_dim, value_dim, kernel } = shape;
    let (d_key, d_value, channels) = (shape.d_key(), shape.d_value(), shape.channels());
    let (recent, heads) = before.unzip();
    let nothing = || Tensor::zeros([batch, n_value_heads, key_dim, value_dim], (&x.device(), DType::F32));
    let heads = heads.flatten().unwrap_or_else(nothing);
    let (mixed, rows) = convolve(x.clone().narrow(2, 0, channels), weights.conv.val(), kernel, recent);
    let mixed = activation::silu(mixed);

    // [batch, seq, n_key_heads, key_dim] -> [batch, seq, n_value_heads, key_dim]: each serves as many value heads
    let group = n_value_heads / n_key_heads;
    let of_heads = |start: usize, factor: f64| {
        let x = mixed.clone().narrow(2, start, d_key).reshape([batch, seq, n_key_heads, key_dim]);
        let length = x.clone().square().sum_dim(3).add_scalar(EPS).sqrt(); // [batch, seq, n_key_heads, 1]
        let x = (x / length).mul_scalar(factor).reshape([batch, seq, n_key_heads, 1, key_dim]);
        x.expand([batch, seq, n_key_heads, group, key_dim]).reshape([batch, seq, n_value_heads, key_dim])
    };
    let (queries, keys) = (of_heads(0, (key_dim as f64).sqrt().recip()), of_heads(d_key, 1.0));
    let values = mixed.narrow(2, 2 * d_key, d_value).reshape([batch, seq, n_value_heads, value_dim]);

    let gates = x.clone().narrow(2, channels, d_value).reshape([batch, seq, n_value_heads, value_dim]);
    let of_scalars = |start: usize| x.clone().narrow(2, channels + d_value + start, n_value_heads);
    let steps = of_scalars(n_value_heads) + weights.dt_bias.val().unsqueeze(); // [batch, seq, n_value_heads]
    let rates = activation::softplus(steps, 1.0) * weights.a_log.val().exp().neg().unsqueeze();
    let strengths = activation::sigmoid(of_scalars(0));
    let (rates, strengths) = match is_there {
        Some(there) => (rates * there.clone(), strengths * there),
        None => (rates, strengths),
    };
    let decays = rates.exp();

    let mut state = heads;
    let mut given = Vec::with_capacity(seq);
    for position in 0..seq {
        // [batch, seq, n_value_heads, dim] -> [batch, 1, n_value_heads, dim] -> [batch, n_value_heads, rows, columns]
        let at = |x: &Tensor<4>, shape: [usize; 4]| x.clone().narrow(1, position, 1).reshape(shape);
        let scalar = |x: &Tensor<3>| x.clone().narrow(1, position, 1).reshape([batch, n_value_heads, 1, 1]);
        let key = at(&keys, [batch, n_value_heads, key_dim, 1]);
        let query = at(&queries, [batch, n_value_heads, key_dim, 1]);
        let value = at(&values, [batch, n_value_heads, 1, value_dim]);
        state = state * scalar(&decays);
        // Sums of products instead of matrix products, which a GPU may take in fewer digits (TF32).
        let known = (state.clone() * key.clone()).sum_dim(2); // -> [batch, n_value_heads, 1, value_dim]
        let change = (value - known) * scalar(&strengths);
        state = state + key * change;
        given.push((state.clone() * query).sum_dim(2).reshape([batch, 1, n_value_heads, value_dim]));
    }
    let given = rms_norm(Tensor::cat(given, 1), weights.norm.val(), eps) * activation::silu(gates);
    Given { values: given.reshape([batch, seq, d_value]), rows, heads: state }
}
