//! The token inputs of all blocks, made once for a pass: what blocks get of each position's token
//! besides the residual stream. `TokenInputsSpec` of `judge-arch` has the formula, `engine/token_inputs.rs` the
//! weights; `decoder.rs` calls both functions before the first block.

use burn::tensor::{Int, Tensor, TensorData};
use judge_arch::ModelSpec;

use super::ops;
use super::parameters::{Linear, Norm};
use super::precision::{Precision, widen};
use crate::engine::token_inputs::TokenInputs;
use crate::weights::Table;

/// A table's rows for the tokens `ids`, looked up on the host and put beside the same `tokens`
/// `[batch, seq]` on their device: `[batch, seq, n_layers * width]` in f32.
pub(super) fn looked_up(table: &Table, ids: &[usize], tokens: &Tensor<2, Int>) -> Tensor<3> {
    let (width, [batch, seq]) = (table.width(), tokens.dims());
    let mut rows = vec![0.0; ids.len() * width];
    for (&id, row) in ids.iter().zip(rows.chunks_exact_mut(width)) {
        table.row(id, row);
    }
    Tensor::from_data(TensorData::new(rows, [batch, seq, width]), &tokens.device())
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
