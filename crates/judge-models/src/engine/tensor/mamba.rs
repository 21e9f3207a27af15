//! The state space of Mamba-2, composed of Burn's operations, position by position.
//! [`MambaSpec`] has its formulas; `block_ops.rs` fetches and keeps what it remembers.
//!
//! Like the delta rule (`delta.rs`) it remembers the last rows before its convolution and a matrix for
//! each head, computes in f32, and is the reference for other bodies rather than a fast form.

use burn::tensor::{DType, Tensor, activation};
use judge_arch::{GatedNorm, MambaShape, MambaSpec};

use super::delta::{Given, convolve};
use super::ops::rms_norm;
use super::parameters::Norm;
use super::precision::widen;
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
    let nothing = || Tensor::zeros([batch, n_heads, d_state, head_dim], (&rows.device(), DType::F32));
    let heads = heads.flatten().unwrap_or_else(nothing);
    let (mixed, convolved) = convolve(rows.clone().narrow(2, d_inner, channels), weights.conv.val(), kernel, recent);
    let mixed = match &weights.conv_bias {
        Some(bias) => mixed + bias.val().unsqueeze(),
        None => mixed,
    };
    let mixed = activation::silu(mixed);

    let x = mixed.clone().narrow(2, 0, d_inner).reshape([batch, seq, n_heads, head_dim]);
    // [batch, seq, n_groups, d_state] -> [batch, seq, n_heads, d_state]: each serves as many heads
    let of_groups = |start: usize| {
        let group = n_heads / n_groups;
        let x = mixed.clone().narrow(2, start, d_groups).reshape([batch, seq, n_groups, 1, d_state]);
        x.expand([batch, seq, n_groups, group, d_state]).reshape([batch, seq, n_heads, d_state])
    };
    let (b, c) = (of_groups(d_inner), of_groups(d_inner + d_groups));
    let times = rows.clone().narrow(2, width - n_heads, n_heads) + weights.dt_bias.val().unsqueeze();
    let times = activation::softplus(times, 1.0).clamp_min(spec.least_time); // [batch, seq, n_heads]
    let times = match is_there {
        Some(there) => times * there,
        None => times,
    };
    let decays = (times.clone() * weights.a_log.val().exp().neg().unsqueeze()).exp();
    let changes = x.clone() * times.reshape([batch, seq, n_heads, 1]);

    let mut state = heads;
    let mut given = Vec::with_capacity(seq);
    for position in 0..seq {
        // [batch, seq, n_heads, dim] -> [batch, 1, n_heads, dim] -> [batch, n_heads, rows, columns]
        let at = |x: &Tensor<4>, shape: [usize; 4]| x.clone().narrow(1, position, 1).reshape(shape);
        let decay = decays.clone().narrow(1, position, 1).reshape([batch, n_heads, 1, 1]);
        let change = at(&b, [batch, n_heads, d_state, 1]) * at(&changes, [batch, n_heads, 1, head_dim]);
        state = state * decay + change;
        // Sums of products instead of matrix products, which a GPU may take in fewer digits (TF32).
        let sum = (state.clone() * at(&c, [batch, n_heads, d_state, 1])).sum_dim(2);
        given.push(sum.reshape([batch, 1, n_heads, head_dim]));
    }
    let past = x * weights.d.val().reshape([1, 1, n_heads, 1]);
    let given = (Tensor::cat(given, 1) + past).reshape([batch, seq, d_inner]);

    let gates = activation::silu(rows.narrow(2, 0, d_inner));
    let norm = |x: Tensor<3>, weight: &Norm| {
        let x = x.reshape([batch, seq, n_groups, d_inner / n_groups]);
        let ones = Tensor::ones([d_inner / n_groups], (&x.device(), DType::F32));
        rms_norm(x, ones, eps).reshape([batch, seq, d_inner]) * weight.val().unsqueeze()
    };
    let place = spec.norm.as_ref().map(|(_, place)| *place);
    let values = match (place, &weights.norm) {
        (Some(GatedNorm::AfterGate), Some(weight)) => norm(given * gates, weight),
        (Some(GatedNorm::BeforeGate), Some(weight)) => norm(given, weight) * gates,
        _ => given * gates,
    };
    Given { values, rows: convolved, heads: state }
}
