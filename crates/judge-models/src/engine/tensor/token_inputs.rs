//! The token inputs of all blocks, made once for a pass: what blocks get of each position's token
//! besides the residual stream. `TokenInputsSpec` of `judge-arch` has the formula, `engine/token_inputs.rs` the
//! weights; `decoder.rs` calls both functions before the first block.

use burn::tensor::{Device, Tensor, TensorData};
use judge_arch::ModelSpec;

use super::ops;
use super::parameters::{Linear, Norm};
use super::precision::{Precision, widen};
use crate::engine::token_inputs::TokenInputs;
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
/// `[batch, seq, d_model]` and from what is [`looked_up`] for the same tokens. `None` if the model has no token inputs.
pub(super) fn token_inputs(
    model: &ModelSpec,
    inputs: &TokenInputs<Linear, Norm>,
    x: Tensor<3>,
    looked_up: Tensor<3>,
    precision: Precision,
) -> Option<Tensor<3>> {
    let (spec, projection) = (model.token_inputs.as_ref()?, inputs.projection.weight.val());
    let [batch, seq, all] = looked_up.dims();
    let projected = widen(ops::linear(x, projection, None, precision)).mul_scalar(spec.projection_factor);
    // Each block's own numbers: [batch, seq, n_layers * width] -> [batch, seq, n_layers, width] and back
    let projected = projected.reshape([batch, seq, all / spec.width, spec.width]);
    let normed = ops::rms_norm(projected, inputs.norm.val(), model.norm_eps).reshape([batch, seq, all]);
    Some((normed + looked_up.mul_scalar(inputs.table_factor)).mul_scalar(spec.sum_factor))
}
