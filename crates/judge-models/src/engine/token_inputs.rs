//! What it takes to make what blocks get of each position's token besides the residual stream; see [`TokenInputsSpec`]. Engines make it for all blocks at once.

use burn::module::Module;

use super::block::Build;
use crate::Error;
use crate::arch::TokenInputsSpec;
use crate::weights::Table;

/// A table that is looked up on the host, and a projection of embeddings, as some [`Ops`](super::block::Ops) takes it.
#[derive(Module, Debug)]
pub(crate) struct TokenInputs<L, N> {
    /// `[tokens, n_layers * width]`.
    #[module(skip)]
    pub(crate) table: Table,
    #[module(skip)]
    pub(crate) table_factor: f32,
    /// `[n_layers * width, d_model]`.
    pub(crate) projection: L,
    /// `[width]`.
    pub(crate) norm: N,
}

impl<L, N> TokenInputs<L, N> {
    /// As it is described, for so many blocks.
    pub(crate) fn build<B>(spec: &TokenInputsSpec, n_layers: usize, build: &mut B) -> Result<Self, Error>
    where
        B: Build<Linear = L, Norm = N>,
    {
        let (name, rows) = &spec.table;
        Ok(Self {
            table: build.table(name, [*rows, n_layers * spec.width])?,
            table_factor: spec.table_factor.factor(build.dtype()),
            projection: build.linear(&spec.projection)?,
            norm: build.norm(&spec.norm)?,
        })
    }
}
