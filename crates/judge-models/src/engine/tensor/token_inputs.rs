//! The token inputs of all blocks, made once for a pass: what blocks get of each position's token
//! besides the residual stream. [`TokenInputsSpec`] has the formula, `engine/token_inputs.rs` the
//! weights; `decoder.rs` calls both functions before the first block.

use burn::tensor::{Device, Tensor, TensorData};
use judge_arch::TokenInputsSpec;

use super::ops;
use super::precision::{Precision, widen};
use crate::weights::Table;

/// A table's rows for `tokens` `[batch, seq]`, looked up on the host and put on a device:
/// `[batch, seq, n_layers * width]` in f32.
pub(super) fn looked_up(table: &Table, tokens: &TensorData, device: &Device) -> Tensor<3> {
    let width = table.width();
    let mut rows = Vec::new();
    for id in tokens.iter::<i64>() {
        let start = rows.len();
        rows.resize(start + width, 0.0);
        table.row(id as usize, &mut rows[start..]);
    }
    let seq = tokens.shape().last().copied().unwrap_or(1);
    let batch = rows.len() / (seq * width).max(1);
    Tensor::from_data(TensorData::new(rows, [batch, seq, width]), device)
}

/// The token inputs of all blocks, `[batch, seq, n_layers * width]` in f32, from embeddings `x`
/// `[batch, seq, d_model]` and from what is [`looked_up`] for the same tokens, with its factor.
///
/// `spec` has the other factors. `projection` is `[n_layers * width, d_model]`. `norm` is a weight
/// `[width]` and what is added to mean squares; it norms each block's numbers apart.
pub(super) fn token_inputs(
    spec: &TokenInputsSpec,
    x: Tensor<3>,
    (looked_up, table_factor): (Tensor<3>, f32),
    (projection, precision): (Tensor<2>, Precision),
    (norm, eps): (Tensor<1>, f64),
) -> Tensor<3> {
    let [batch, seq, all] = looked_up.dims();
    let projected = widen(ops::linear(x, projection, None, precision)).mul_scalar(spec.projection_factor);
    // Each block's own numbers: [batch, seq, n_layers * width] -> [batch, seq, n_layers, width] and back
    let projected = projected.reshape([batch, seq, all / spec.width, spec.width]);
    let normed = ops::rms_norm(projected, norm, eps).reshape([batch, seq, all]);
    (normed + looked_up.mul_scalar(table_factor)).mul_scalar(spec.sum_factor)
}
