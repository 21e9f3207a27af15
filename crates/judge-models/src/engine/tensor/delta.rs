//! Blocks without keys: the gated delta rule and the gated short convolution.
//! [`DeltaSpec`](judge_arch::DeltaSpec) and [`ConvSpec`] have their formulas; `block_ops.rs` fetches
//! and keeps what they remember.
//!
//! Both begin with a convolution over the last `kernel` positions, for which the last `kernel - 1`
//! rows of channels are remembered. A delta rule also remembers a matrix for each value head, which
//! `recurrence.rs` takes from position to position. Everything is computed in f32.

use burn::tensor::{DType, Tensor, activation};
use judge_arch::{ConvSpec, DeltaShape};
use judge_kernels::functions::NormKind;

use super::operands::{Change, Recurrence};
use super::ops;
use super::parameters::Norm;
use super::precision::widen;
use super::recurrence::{Taps, convolve, recur};
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

/// Lets rows `[B, C, x]`, `[batch, seq, 3 * channels]`, through a gated short convolution:
/// `C * conv(B * x)`. Of `before` only the rows count; `None` is the beginning of a sequence.
///
/// Returns what the rest of the block gets, `[batch, seq, channels]`, and the rows `B * x` that were
/// convolved, those that were remembered first: `[batch, kernel - 1 + seq, channels]`.
pub(crate) fn short_conv(x: Tensor<3>, weights: Tensor<1>, spec: &ConvSpec, before: Option<Memory>) -> [Tensor<3>; 2] {
    let x = widen(x);
    let [b, c, x] = [0, 1, 2].map(|part| x.clone().narrow(2, part * spec.channels, spec.channels));
    let taps = Taps { weights, kernel: spec.kernel, bias: None, is_activated: false };
    let (given, rows) = convolve(b * x, taps, before.map(|(recent, _)| recent));
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
    let taps = Taps { weights: weights.conv.val(), kernel, bias: None, is_activated: true };
    let (mixed, rows) = convolve(x.clone().narrow(2, 0, channels), taps, recent);

    let of_scalars = |start: usize| x.clone().narrow(2, channels + d_value + start, n_value_heads);
    let steps = of_scalars(n_value_heads) + weights.dt_bias.val().unsqueeze(); // [batch, seq, n_value_heads]
    let rates = activation::softplus(steps, 1.0) * weights.a_log.val().exp().neg().unsqueeze();
    let strengths = activation::sigmoid(of_scalars(0));
    let (rates, strengths) = match is_there {
        Some(there) => (rates * there.clone(), strengths * there),
        None => (rates, strengths),
    };
    let of = Recurrence {
        key_heads: n_key_heads,
        heads: n_value_heads,
        key_dim,
        value_dim,
        first: [0, d_key, 2 * d_key],
        change: Change::Unknown { eps: EPS },
        scale: (key_dim as f64).sqrt().recip(),
    };
    let (given, heads) = recur(mixed, [rates.exp(), strengths], heads.flatten(), of);

    let given = ops::norm(NormKind::RmsNorm, given, weights.norm.val(), eps, DType::F32);
    let gates = activation::silu(x.narrow(2, channels, d_value));
    Given { values: given.reshape([batch, seq, d_value]) * gates, rows, heads }
}
