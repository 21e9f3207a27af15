//! The network that is trained: a decoder or an encoder, which run the same batches.

use std::ops::Range;

use burn::module::Module;
use burn::tensor::Tensor;

use super::batch::Batch;
use crate::engine::tensor::decoder::Decoder;
use crate::engine::tensor::encoder::Encoder;
use crate::engine::tensor::parameters::Stored;

/// A network. A copy is a second handle on the same tensors.
#[derive(Module, Debug)]
pub(super) enum Network {
    /// Every position sees those before it.
    Decoder(Decoder),
    /// Every position sees all others. Its head is part of it.
    Encoder(Encoder),
}

impl Network {
    /// The tensors that each parameter is made of.
    pub(super) fn stored(&self) -> &[Stored] {
        match self {
            Self::Decoder(decoder) => decoder.stored(),
            Self::Encoder(encoder) => encoder.stored(),
        }
    }

    /// Number of blocks.
    pub(super) fn n_layers(&self) -> usize {
        match self {
            Self::Decoder(decoder) => decoder.spec().n_layers(),
            Self::Encoder(encoder) => encoder.spec().n_layers(),
        }
    }

    /// Layer 0, `[batch, seq, d_model]`.
    pub(super) fn embed(&self, batch: &Batch) -> Tensor<3> {
        match self {
            Self::Decoder(decoder) => {
                let tokens = Tensor::from_data(batch.tokens.clone(), &decoder.device());
                decoder.embed(tokens, Some(&batch.rotation))
            }
            Self::Encoder(encoder) => encoder.embed(&batch.tokens, &batch.types, &batch.lengths),
        }
    }

    /// The stream after some successive blocks, from the one before them; `visit` is shown the stream after each. Of a
    /// decoder only the rows that are read go on in the last block: `[1, rows, d_model]`.
    pub(super) fn run_blocks(
        &self,
        blocks: Range<usize>,
        x: Tensor<3>,
        batch: &Batch,
        visit: &mut dyn FnMut(usize, &Tensor<3>),
    ) -> Tensor<3> {
        match self {
            Self::Decoder(decoder) => decoder.run_blocks(blocks, x, &batch.rotation, &batch.rows, visit),
            Self::Encoder(encoder) => encoder.run_blocks(blocks, x, &batch.rotation, &batch.lengths, visit),
        }
    }

    /// The states of the last layer that a loss reads, `[places, d_model]`, from what the last block gave: after the final
    /// norm, and of an encoder the one state of each sequence that its head reads.
    pub(super) fn last(&self, x: Tensor<3>, batch: &Batch) -> Tensor<2> {
        match self {
            Self::Decoder(decoder) => decoder.final_norm(x).squeeze_dim::<2>(0),
            Self::Encoder(encoder) => encoder.pooled(x, &batch.lengths),
        }
    }
}
