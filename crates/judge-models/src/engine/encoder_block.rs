//! The weights of a block of an encoder. Each engine has its own order of operations on them.

#[cfg(any(test, feature = "tensor"))]
use burn::module::Module;
use judge_arch::EncoderBlockSpec;

use super::block::Build;
use crate::Error;

/// The weights of one block; see [`EncoderBlockSpec`]. `L` is an engine's projection, `N` the weight of its norm.
#[derive(Debug)]
#[cfg_attr(any(test, feature = "tensor"), derive(Module))]
pub(crate) struct EncoderBlock<L, N> {
    /// The norm before or after attention; `None` where the input is normed already.
    pub(crate) attention_norm: Option<N>,
    /// Rows: all queries, all keys, all values, `[3 * d_model, d_model]`.
    pub(crate) qkv: L,
    /// From gathered values, `[d_model, d_model]`.
    pub(crate) out: L,
    /// The norm before or after the MLP.
    pub(crate) mlp_norm: N,
    /// `[d_ff, d_model]`; `[2 * d_ff, d_model]` where the first half gates the second.
    pub(crate) up: L,
    /// `[d_model, d_ff]`.
    pub(crate) down: L,
}

impl<L, N> EncoderBlock<L, N> {
    /// Takes the tensors of the block that `spec` describes.
    pub(crate) fn build<B: Build<Linear = L, Norm = N>>(spec: &EncoderBlockSpec, build: &mut B) -> Result<Self, Error> {
        Ok(Self {
            attention_norm: spec.attention_norm.as_ref().map(|norm| build.norm(norm)).transpose()?,
            qkv: build.linear(&spec.qkv)?,
            out: build.linear(&spec.out)?,
            mlp_norm: build.norm(&spec.mlp_norm)?,
            up: build.linear(&spec.up)?,
            down: build.linear(&spec.down)?,
        })
    }
}
