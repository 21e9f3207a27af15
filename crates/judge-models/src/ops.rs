//! The four operations that a decoder spends its time in: linear, attention, norm with rotation, gated activation.
//!
//! Here they are composed of Burn's operations, on any device; gradients flow through all of them. A faster body
//! for one device belongs behind these signatures, and these bodies are what it is compared with.

use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Bool, Tensor, activation, module};

use crate::config::Activation;
use crate::rope::Rotation;

/// `x · weightᵀ + bias`: `x` `[batch, seq, d_in]`, `weight` `[d_out, d_in]`, `bias` `[d_out]`, gives
/// `[batch, seq, d_out]`.
pub(crate) fn linear(x: Tensor<3>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<3> {
    let [batch, seq, d_in] = x.dims();
    let [d_out, _] = weight.dims();
    // One product of all rows: [batch, seq, d_in] -> [batch * seq, d_in] -> [batch * seq, d_out]
    let y = x.reshape([batch * seq, d_in]).matmul(weight.transpose());
    let y = match bias {
        Some(bias) => y + bias.unsqueeze(),
        None => y,
    };
    y.reshape([batch, seq, d_out]) // [batch * seq, d_out] -> [batch, seq, d_out]
}

/// `x / sqrt(mean(x²) + eps) * weight` along the last axis; `weight` has that axis' length. Keeps the shape.
pub(crate) fn rms_norm<const D: usize>(x: Tensor<D>, weight: Tensor<1>, eps: f64) -> Tensor<D> {
    let mean_square = x.clone().square().mean_dim(D - 1); // [.., d] -> [.., 1]
    x * mean_square.add_scalar(eps).sqrt().recip() * weight.unsqueeze()
}

/// Queries or keys `[batch, seq, heads, head_dim]`: normed per head where the model does so, then rotated in their
/// first `rotary_dim` coordinates, pair `(i, i + rotary_dim / 2)` by the angle of its position. Keeps the shape.
pub(crate) fn norm_rotate(x: Tensor<4>, norm: Option<(Tensor<1>, f64)>, rotation: &Rotation) -> Tensor<4> {
    let x = match norm {
        Some((weight, eps)) => rms_norm(x, weight, eps),
        None => x,
    };
    let head_dim = x.dims()[3];
    let half = rotation.cos.dims()[3];
    let (cos, sin) = (rotation.cos.clone(), rotation.sin.clone());
    let first = x.clone().narrow(3, 0, half); // [batch, seq, heads, head_dim] -> [.., rotary_dim / 2]
    let second = x.clone().narrow(3, half, half); // the same
    let mut parts = vec![first.clone() * cos.clone() - second.clone() * sin.clone(), second * cos + first * sin];
    if 2 * half < head_dim {
        parts.push(x.narrow(3, 2 * half, head_dim - 2 * half));
    }
    Tensor::cat(parts, 3) // [.., rotary_dim / 2] twice, [.., rest] -> [batch, seq, heads, head_dim]
}

/// What attention needs besides its three tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention<'a> {
    /// Multiplies query-key products.
    pub(crate) scale: f64,
    /// Soft-cap of the scaled products.
    pub(crate) soft_cap: Option<f64>,
    /// `true` where a query must not look, besides what lies after it. Shape `[1, 1, seq, seq_keys]`.
    pub(crate) hidden: Option<&'a Tensor<4, Bool>>,
}

/// Causal attention: `queries` `[batch, n_heads, seq, head_dim]`, `keys` and `values` `[batch, n_kv_heads, seq_keys,
/// head_dim]`, gives `[batch, n_heads, seq, head_dim]`. Queries are the last `seq` positions of the keys; query
/// head `h` uses key head `h / (n_heads / n_kv_heads)`.
pub(crate) fn attention(queries: Tensor<4>, keys: Tensor<4>, values: Tensor<4>, with: Attention<'_>) -> Tensor<4> {
    let [batch, n_heads, seq, head_dim] = queries.dims();
    let [_, n_kv_heads, seq_keys, _] = keys.dims();
    let group = n_heads / n_kv_heads;
    // A group of query heads shares its key head by broadcasting, without a copy of the keys:
    // [batch, n_heads, seq, head_dim] -> [batch * n_kv_heads, group, seq, head_dim]
    let queries = queries.reshape([batch * n_kv_heads, group, seq, head_dim]);
    // [batch, n_kv_heads, seq_keys, head_dim] -> [batch * n_kv_heads, 1, seq_keys, head_dim]
    let keys = keys.reshape([batch * n_kv_heads, 1, seq_keys, head_dim]);
    let values = values.reshape([batch * n_kv_heads, 1, seq_keys, head_dim]);
    let options = AttentionModuleOptions { scale: Some(with.scale), softcap: with.soft_cap, is_causal: true };
    let mixed = module::attention(queries, keys, values, with.hidden.cloned(), None, options);
    mixed.reshape([batch, n_heads, seq, head_dim]) // [batch * n_kv_heads, group, ..] -> [batch, n_heads, ..]
}

/// `f(gate) * up` of `[batch, seq, 2 * d_ff]`, gate first, gives `[batch, seq, d_ff]`.
pub(crate) fn gated_activation(gate_up: Tensor<3>, function: Activation) -> Tensor<3> {
    let d_ff = gate_up.dims()[2] / 2;
    let gate = gate_up.clone().narrow(2, 0, d_ff); // [batch, seq, 2 * d_ff] -> [batch, seq, d_ff]
    let up = gate_up.narrow(2, d_ff, d_ff); // the same
    let gate = match function {
        Activation::Silu => activation::silu(gate),
        Activation::Gelu => activation::gelu(gate),
        Activation::GeluTanh => activation::gelu_approximate(gate),
    };
    gate * up
}
