//! A packed decoder from a checkpoint, tensor by tensor, so that little more than the packed weights is in memory.

use std::sync::Arc;

use super::Kernel;
use super::decoder::{Linear, PackedDecoder};
use super::pack::PackedLinear;
use super::tile::Word;
use crate::arch::DecoderConfig;
use crate::engine::block::{self, Block, Build, NamedRows};
use crate::weights::{Checkpoint, Numbers};
use crate::{Dtype, Error};

impl PackedDecoder {
    /// Packs the decoder that `config` describes from its checkpoint in this dtype, as [`DecoderConfig::tensors`] lists the tensors.
    pub(crate) fn load(
        config: Arc<DecoderConfig>,
        kernel: Kernel,
        dtype: Dtype,
        checkpoint: &mut Checkpoint,
    ) -> Result<Self, Error> {
        let word = match dtype {
            Dtype::F32 => Word::Single,
            Dtype::Bf16 => Word::Pair,
        };
        let mut packing = Packing { kernel, word, dtype, checkpoint };
        let table = [config.d_vocab, config.d_model];
        let embedding = packing.matrix(&[("model.embed_tokens.weight".to_owned(), table[0])], table[1])?;
        let blocks =
            (0..config.n_layers).map(|block| Block::build(&config, block, &mut packing)).collect::<Result<_, _>>()?;
        let norm = block::norm(&config, "model.norm.weight", config.d_model, &mut packing)?;
        let head = if config.tied {
            None
        } else {
            Some(packing.matrix(&[("lm_head.weight".to_owned(), table[0])], table[1])?)
        };
        Ok(Self { kernel, word, embedding, blocks, norm, head, config })
    }
}

struct Packing<'a> {
    kernel: Kernel,
    word: Word,
    dtype: Dtype,
    checkpoint: &'a mut Checkpoint,
}

impl Packing<'_> {
    /// The rows of several tensors, by name and number of rows, below one another.
    fn matrix(&mut self, parts: &[NamedRows], d_in: usize) -> Result<PackedLinear, Error> {
        let mut matrix = PackedLinear::zeros(self.kernel, self.word, parts.iter().map(|(_, rows)| rows).sum(), d_in);
        let mut first = 0;
        for (name, rows) in parts {
            let fill = &mut |row, values: Numbers<'_>| matrix.fill(first + row, values);
            self.checkpoint.take_rows(name, [*rows, d_in], self.dtype, fill)?;
            first += rows;
        }
        Ok(matrix)
    }
}

impl Build for Packing<'_> {
    type Linear = Linear;
    type Norm = Vec<f32>;

    fn vector(&mut self, name: &str, len: usize) -> Result<Vec<f32>, Error> {
        self.checkpoint.take(name, &[len], self.dtype)
    }

    fn linear(&mut self, parts: &[NamedRows], d_in: usize, bias: Option<Vec<f32>>) -> Result<Linear, Error> {
        Ok(Linear { weight: self.matrix(parts, d_in)?, bias })
    }

    fn norm(&mut self, weight: Vec<f32>) -> Vec<f32> {
        weight
    }
}
