//! What blocks get of each position's token besides the residual stream.

use burn::tensor::{Device, Tensor, TensorData};

use super::ops;
use super::precision::widen;
use crate::arch::TokenInputsSpec;
use crate::weights::Table;

/// A table's rows of tokens `[batch, seq]`, looked up on the host, on a device: `[batch, seq, n_layers * width]`.
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

/// The token inputs of all blocks, `[batch, seq, n_layers * width]` in f32, of embeddings `[batch, seq, d_model]` and of what is [`looked_up`] for their tokens. Of
/// `spec` are the factors; `projection` is `[n_layers * width, d_model]`, and `norm` a weight `[width]` and what is added to mean squares.
pub(super) fn token_inputs(
    spec: &TokenInputsSpec,
    x: Tensor<3>,
    (looked_up, table_factor): (Tensor<3>, f32),
    projection: Tensor<2>,
    (norm, eps): (Tensor<1>, f64),
) -> Tensor<3> {
    let [batch, seq, all] = looked_up.dims();
    let projected = widen(ops::linear(x, projection, None)).mul_scalar(spec.projection_factor);
    // Each block's own numbers: [batch, seq, n_layers * width] -> [batch, seq, n_layers, width] and back
    let projected = projected.reshape([batch, seq, all / spec.width, spec.width]);
    let normed = ops::rms_norm(projected, norm, eps).reshape([batch, seq, all]);
    (normed + looked_up.mul_scalar(table_factor)).mul_scalar(spec.sum_factor)
}
