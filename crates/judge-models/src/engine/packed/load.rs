//! A packed decoder from a checkpoint, tensor by tensor, so that little more than the packed weights is in memory.

use std::sync::Arc;

use super::decoder::{Linear, PackedDecoder};
use super::kernel::Supported;
use super::pack::PackedLinear;
use super::places::KeyPlaces;
use super::tile::Word;
use crate::arch::{HeadSpec, LinearSpec, ModelSpec, NormSpec};
use crate::engine::block::{Block, Build};
use crate::engine::token_inputs::TokenInputs;
use crate::weights::{Numbers, Table, Tensors};
use crate::{Dtype, Error};

impl PackedDecoder {
    /// Packs the decoder that `spec` describes from its checkpoint in this dtype, as [`ModelSpec::tensors`] lists the tensors.
    pub(crate) fn load(
        spec: Arc<ModelSpec>,
        kernel: Supported,
        dtype: Dtype,
        tensors: &mut dyn Tensors,
    ) -> Result<Self, Error> {
        let mut packing = Packing::new(kernel, dtype, tensors);
        let table =
            |name: &String, packing: &mut Packing<'_>| packing.matrix(&[(name.clone(), spec.d_vocab)], spec.d_model);
        let embedding = table(&spec.embedding, &mut packing)?;
        let inputs = spec.token_inputs.as_ref();
        let token_inputs =
            inputs.map(|inputs| TokenInputs::build(inputs, spec.n_layers(), &mut packing)).transpose()?;
        let blocks = spec.blocks.iter().map(|block| Block::build(block, &mut packing)).collect::<Result<_, _>>()?;
        let norm = packing.norm(&spec.norm)?;
        let head = match &spec.head {
            HeadSpec::Own(name) => Some(table(name, &mut packing)?),
            HeadSpec::Embedding | HeadSpec::Labels(_) => None,
        };
        let embedding_factor = spec.embedding_scale.map(|scale| scale.factor(dtype));
        let word = packing.word;
        let lasting = Arc::new(KeyPlaces::lasting(&spec.blocks, word));
        let in_turn = Arc::new(KeyPlaces::in_turn(&spec.blocks, word));
        Ok(Self { kernel, lasting, in_turn, embedding, embedding_factor, token_inputs, blocks, norm, head, spec })
    }
}

/// Packs tensors as they are handed over.
pub(super) struct Packing<'a> {
    kernel: Supported,
    /// What a word of matrices holds.
    pub(super) word: Word,
    pub(super) dtype: Dtype,
    pub(super) tensors: &'a mut dyn Tensors,
}

impl<'a> Packing<'a> {
    pub(super) fn new(kernel: Supported, dtype: Dtype, tensors: &'a mut dyn Tensors) -> Self {
        let word = match dtype {
            Dtype::F32 => Word::Single,
            Dtype::Bf16 => Word::Pair,
        };
        Self { kernel, word, dtype, tensors }
    }

    /// The rows of several tensors, by name and number of rows, below one another.
    pub(super) fn matrix(&mut self, parts: &[(String, usize)], d_in: usize) -> Result<PackedLinear, Error> {
        let mut matrix = PackedLinear::zeros(self.kernel, self.word, parts.iter().map(|(_, rows)| rows).sum(), d_in);
        let mut first = 0;
        for (name, rows) in parts {
            let fill = &mut |row, values: Numbers<'_>| matrix.fill(first + row, values);
            self.tensors.take_rows(name, [*rows, d_in], self.dtype, fill)?;
            first += rows;
        }
        Ok(matrix)
    }

    /// The biases of a projection behind one another, if it has any.
    fn bias(&mut self, linear: &LinearSpec) -> Result<Option<Vec<f32>>, Error> {
        let mut bias = Vec::new();
        for (name, rows) in linear.biases() {
            bias.append(&mut self.tensors.take(&name, &[rows], self.dtype)?);
        }
        Ok(linear.bias.then_some(bias))
    }
}

impl Build for Packing<'_> {
    type Linear = Linear;
    type Norm = Vec<f32>;

    fn linear(&mut self, linear: &LinearSpec) -> Result<Linear, Error> {
        let bias = self.bias(linear)?;
        Ok(Linear { weight: self.matrix(&linear.weights(), linear.d_in)?, bias })
    }

    fn router(&mut self, router: &LinearSpec) -> Result<Linear, Error> {
        let rows = router.stems.iter().map(|(_, rows)| rows).sum();
        let mut weight = PackedLinear::zeros(self.kernel, Word::Single, rows, router.d_in);
        let mut first = 0;
        for (name, rows) in router.weights() {
            weight.fill(first, Numbers::F32(&self.tensors.take(&name, &[rows, router.d_in], self.dtype)?));
            first += rows;
        }
        Ok(Linear { weight, bias: self.bias(router)? })
    }

    fn norm(&mut self, norm: &NormSpec) -> Result<Vec<f32>, Error> {
        let mut weight = self.tensors.take(&norm.name, &[norm.len], self.dtype)?;
        weight.iter_mut().for_each(|w| *w = norm.weight(*w));
        Ok(weight)
    }

    fn table(&mut self, name: &str, shape: [usize; 2]) -> Result<Table, Error> {
        self.tensors.table(name, shape, self.dtype)
    }

    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn numbers(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        self.tensors.take(name, shape, self.dtype)
    }
}
