//! The weights that make the token inputs: what each block gets of a position's token besides the
//! residual stream (Gemma 4's per-layer embeddings).
//!
//! [`TokenInputsSpec`] has the formula. Each engine makes the inputs of all blocks at once before
//! the first block, from these weights, in a file of its own (`packed/token_inputs.rs`,
//! `tensor/token_inputs.rs`); a block then takes its part in
//! [`Ops::gate_tokens`](super::block::Ops::gate_tokens).

#[cfg(any(test, feature = "tensor"))]
use burn::module::Module;
use judge_arch::TokenInputsSpec;

use super::block::Build;
use crate::weights::Table;
use crate::{Dtype, Error};

/// A table that is looked up on the host, and a projection of embeddings in the form that some
/// [`Ops`](super::block::Ops) takes: `L` is its matrix, `N` the weight of its norm.
#[derive(Debug)]
#[cfg_attr(any(test, feature = "tensor"), derive(Module))]
pub(crate) struct TokenInputs<L, N> {
    /// `[tokens, n_layers * width]`, the numbers of block `i` in columns
    /// `i * width..(i + 1) * width`. It stays on the host and, where it can, in its file.
    #[cfg_attr(any(test, feature = "tensor"), module(skip))]
    pub(crate) table: Table,
    /// Factor on rows of the table, rounded as the dtype of the weights asks for.
    #[cfg_attr(any(test, feature = "tensor"), module(skip))]
    pub(crate) table_factor: f32,
    /// `[n_layers * width, d_model]`, from embeddings that are scaled as for the first block.
    pub(crate) projection: L,
    /// `[width]`: one weight for the projected rows of every block, each normed apart.
    pub(crate) norm: N,
}

impl<L, N> TokenInputs<L, N> {
    /// Takes the table, the projection and the norm from a checkpoint, for a model of `n_layers`
    /// blocks with weights of a dtype.
    pub(crate) fn build<B>(spec: &TokenInputsSpec, n_layers: usize, dtype: Dtype, build: &mut B) -> Result<Self, Error>
    where
        B: Build<Linear = L, Norm = N>,
    {
        let (name, rows) = &spec.table;
        Ok(Self {
            table: build.table(name, [*rows, n_layers * spec.width])?,
            table_factor: spec.table_factor.factor(dtype),
            projection: build.linear(&spec.projection)?,
            norm: build.norm(&spec.norm)?,
        })
    }
}
