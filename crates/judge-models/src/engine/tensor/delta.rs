//! The gated delta rule composed of Burn's operations, position by position; [`DeltaSpec`](crate::arch::DeltaSpec) has its formulas.
//!
//! On a GPU every position costs some small kernels: this is the reference that others are compared with, and what gradients flow through.

use burn::tensor::{DType, Tensor, activation};

use super::ops::rms_norm;
use super::past::Memory;
use super::precision::widen;
use crate::arch::DeltaShape;
use crate::engine::block::Delta;

/// What is added to a squared length before its root is taken.
const EPS: f64 = 1e-6;

/// What a rule gives, and what it remembers.
pub(crate) struct Given {
    /// `[batch, seq, d_value]`.
    pub(crate) values: Tensor<3>,
    /// Rows of channels, those that were remembered first: `[batch, kernel - 1 + seq, channels]`.
    pub(crate) rows: Tensor<3>,
    /// `[batch, n_value_heads, key_dim, value_dim]`.
    pub(crate) heads: Tensor<4>,
}

/// Lets rows `[batch, seq, width]` through a rule behind what it remembers. Where `is_there` `[batch, seq, 1]` is 0 the heads' states stay as they are.
pub(crate) fn delta(
    x: Tensor<3>,
    (shape, weights, eps): (DeltaShape, &Delta<Tensor<1>>, f64),
    before: Option<Memory>,
    is_there: Option<Tensor<3>>,
) -> Given {
    let x = widen(x);
    let [batch, seq, _] = x.dims();
    let DeltaShape { n_key_heads, n_value_heads, key_dim, value_dim, kernel } = shape;
    let (d_key, d_value, channels) = (shape.d_key(), shape.d_value(), shape.channels());
    let (recent, heads) = match before {
        Some((recent, heads)) => (recent, heads),
        None => (
            Tensor::zeros([batch, kernel - 1, channels], (&x.device(), DType::F32)),
            Tensor::zeros([batch, n_value_heads, key_dim, value_dim], (&x.device(), DType::F32)),
        ),
    };
    let rows = Tensor::cat(vec![recent, x.clone().narrow(2, 0, channels)], 1); // [batch, kernel - 1 + seq, channels]
    let taps = weights.conv.clone().reshape([channels, kernel]).transpose(); // [kernel, channels]
    let tap = |tap: usize| {
        let weights = taps.clone().narrow(0, tap, 1).reshape([1, 1, channels]);
        rows.clone().narrow(1, tap, seq) * weights // -> [batch, seq, channels]
    };
    let mixed = (1..kernel).map(tap).fold(tap(0), |sum, tap| sum + tap);
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
    let steps = of_scalars(n_value_heads) + weights.dt_bias.clone().unsqueeze(); // [batch, seq, n_value_heads]
    let rates = activation::softplus(steps, 1.0) * weights.a_log.clone().exp().neg().unsqueeze();
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
        // Sums of products, not matrix products, which a card may take in fewer digits.
        let known = (state.clone() * key.clone()).sum_dim(2); // -> [batch, n_value_heads, 1, value_dim]
        let change = (value - known) * scalar(&strengths);
        state = state + key * change;
        given.push((state.clone() * query).sum_dim(2).reshape([batch, 1, n_value_heads, value_dim]));
    }
    let given = rms_norm(Tensor::cat(given, 1), weights.norm.clone(), eps) * activation::silu(gates);
    Given { values: given.reshape([batch, seq, d_value]), rows, heads: state }
}
