//! The state space of Mamba-2. [`MambaSpec`] has its formulas; `block_ops.rs` fetches and keeps what
//! it remembers.
//!
//! Like the delta rule (`delta.rs`) it remembers the last rows before its convolution and a matrix for
//! each head, which `recurrence.rs` takes from position to position, and computes in f32.

use burn::tensor::{DType, Tensor, activation};
use judge_arch::{GatedNorm, MambaShape, MambaSpec};
use judge_kernels::functions::NormKind;

use super::delta::Given;
use super::operands::{Change, Recurrence};
use super::ops;
use super::parameters::Norm;
use super::precision::widen;
use super::recurrence::{Taps, convolve, recur};
use super::slots::Memory;
use crate::engine::block::Mamba;

/// Lets rows `[z, x, B, C, dt]`, `[batch, seq, width]`, through a state space, on from what it
/// remembers; `None` is the beginning of a sequence. `eps` is the one of the output norm.
///
/// Where `is_there` `[batch, seq, 1]` is 0 the states stay as they are, because the time that passes
/// becomes 0: that is how padding leaves a state alone. `None`: all positions count.
pub(crate) fn mamba(
    x: Tensor<3>,
    (spec, weights, eps): (&MambaSpec, &Mamba<Norm>, f64),
    before: Option<Memory>,
    is_there: Option<Tensor<3>>,
) -> Given {
    let rows = widen(x);
    let [batch, seq, width] = rows.dims();
    let MambaShape { n_heads, head_dim, n_groups, d_state, kernel } = spec.shape;
    let (d_inner, d_groups, channels) = (spec.shape.d_inner(), spec.shape.d_groups(), spec.shape.channels());
    let (recent, heads) = before.unzip();
    let bias = weights.conv_bias.as_ref().map(Norm::val);
    let taps = Taps { weights: weights.conv.val(), kernel, bias, is_activated: true };
    let (mixed, convolved) = convolve(rows.clone().narrow(2, d_inner, channels), taps, recent);

    let times = rows.clone().narrow(2, width - n_heads, n_heads) + weights.dt_bias.val().unsqueeze();
    let times = activation::softplus(times, 1.0).clamp_min(spec.least_time); // [batch, seq, n_heads]
    let times = match is_there {
        Some(there) => times * there,
        None => times,
    };
    let decays = (times.clone() * weights.a_log.val().exp().neg().unsqueeze()).exp();
    let of = Recurrence {
        key_heads: n_groups,
        heads: n_heads,
        key_dim: d_state,
        value_dim: head_dim,
        first: [d_inner + d_groups, d_inner, 0],
        change: Change::Value,
        scale: 1.0,
    };
    let (given, heads) = recur(mixed.clone(), [decays, times], heads.flatten(), of);
    let past = mixed.narrow(2, 0, d_inner).reshape([batch, seq, n_heads, head_dim]);
    let past = past * weights.d.val().reshape([1, 1, n_heads, 1]);
    let given = (given + past).reshape([batch, seq, d_inner]);

    let gates = activation::silu(rows.narrow(2, 0, d_inner));
    let norm = |x: Tensor<3>, weight: &Norm| {
        let x = x.reshape([batch, seq, n_groups, d_inner / n_groups]);
        let ones = Tensor::ones([d_inner / n_groups], (&x.device(), DType::F32));
        let normed = ops::norm(NormKind::RmsNorm, x, ones, eps, DType::F32);
        normed.reshape([batch, seq, d_inner]) * weight.val().unsqueeze()
    };
    let place = spec.norm.as_ref().map(|(_, place)| *place);
    let values = match (place, &weights.norm) {
        (Some(GatedNorm::AfterGate), Some(weight)) => norm(given * gates, weight),
        (Some(GatedNorm::BeforeGate), Some(weight)) => norm(given, weight) * gates,
        _ => given * gates,
    };
    Given { values, rows: convolved, heads }
}
