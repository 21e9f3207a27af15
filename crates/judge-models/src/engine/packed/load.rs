//! Loading: makes a [`PackedDecoder`] of a checkpoint, tensor by tensor.
//!
//! [`Packing`] is the engine's [`Build`]: it turns each described tensor into the form that passes
//! use. `PackedDecoder::load` is called by `model.rs`; `encoder.rs` uses [`Packing`] for its own
//! tensors. Names and shapes come from the description; `checked.rs` has compared them with the
//! checkpoint before, and `weights/` reads, converts and rounds.
//!
//! | described | becomes | rounded to |
//! |---|---|---|
//! | projection, embedding, head | [`PackedLinear`] of the model's word, or of codes | the dtype |
//! | router | [`PackedLinear`] of single words: logits are f32 products | the dtype, as stored |
//! | norm, bias, other vectors | `Vec<f32>` | the dtype |
//! | table of token inputs | [`Table`], which may stay in its file | the dtype |
//!
//! A matrix is allocated as zeros and filled some rows at a time, so little more than the packed
//! weights is in memory while a model loads.

use std::sync::Arc;

use judge_arch::{HeadSpec, LinearSpec, ModelSpec, NormSpec};
use judge_kernels::codes::Coding;
use judge_kernels::kernel::Kernel;
use judge_kernels::numbers::Numbers;
use judge_kernels::pack::{Linear, PackedLinear};
use judge_kernels::section::Section;
use judge_kernels::supported::Supported;
use judge_kernels::tile::{LANES, Word};

use super::cache::PackedCache;
use super::decoder::PackedDecoder;
use super::kv_layout::KvLayout;
use crate::engine::block::{Block, Build};
use crate::engine::token_inputs::TokenInputs;
use crate::weights::{Table, Tensors};
use crate::{Dtype, Error};

impl PackedDecoder {
    /// Packs the decoder that `spec` describes: embedding, positions, token inputs, blocks, final norm and
    /// head, in this order. `dtype` decides the word of matrices, keys and values: pairs for bf16,
    /// single numbers for f32.
    ///
    /// A head of labels is not packed: `model.rs` keeps it on the host.
    ///
    /// # Errors
    /// Those of [`Tensors`]: a tensor that is missing, has another shape, or holds a number that is
    /// not finite.
    pub(crate) fn load(
        spec: Arc<ModelSpec>,
        kernel: Supported,
        dtype: Dtype,
        tensors: &mut dyn Tensors,
        cache: &mut PackedCache,
    ) -> Result<Self, Error> {
        let mut packing = Packing::new(kernel, dtype, tensors, cache);
        let table =
            |name: &String, packing: &mut Packing<'_>| packing.matrix(&[(name.clone(), spec.d_vocab)], spec.d_model);
        let embedding = table(&spec.embedding, &mut packing)?;
        let rows = |(name, rows): &(String, usize)| (name.clone(), *rows);
        let positions =
            spec.positions.as_ref().map(|table| packing.matrix(&[rows(table)], spec.d_model)).transpose()?;
        let inputs = spec.token_inputs.as_ref();
        let token_inputs =
            inputs.map(|inputs| TokenInputs::build(inputs, spec.n_layers(), dtype, &mut packing)).transpose()?;
        let blocks = spec.blocks.iter().map(|block| Block::build(block, &mut packing)).collect::<Result<_, _>>()?;
        let norm = packing.norm(&spec.norm)?;
        let head = match &spec.head {
            HeadSpec::Own(name) => Some(table(name, &mut packing)?),
            HeadSpec::Embedding | HeadSpec::Labels(_) | HeadSpec::Absent(_) => None,
        };
        let head_bias = spec.head_bias().map(|name| packing.numbers(name, &[spec.d_vocab])).transpose()?;
        let embedding_factor = spec.embedding_scale.map(|scale| scale.factor(dtype));
        let (word, kernel_of_integers) = (packing.word, packing.kernel_of_integers());
        let lasting = Arc::new(KvLayout::lasting(&spec.blocks, word));
        let in_turn = Arc::new(KvLayout::in_turn(&spec.blocks, word));
        Ok(Self {
            kernel,
            kernel_of_integers,
            lasting,
            in_turn,
            embedding,
            embedding_factor,
            positions,
            token_inputs,
            blocks,
            norm,
            head,
            head_bias,
            spec,
        })
    }
}

/// Takes tensors from a checkpoint and packs them.
pub(super) struct Packing<'a> {
    /// Decides how wide rows are padded, see [`PackedLinear`].
    kernel: Supported,
    /// What one word of a matrix holds; follows from `dtype`.
    pub(super) word: Word,
    /// The dtype that weights are rounded to.
    pub(super) dtype: Dtype,
    /// The checkpoint, with adapters merged.
    pub(super) tensors: &'a mut dyn Tensors,
    /// Has the matrices, or gets them.
    cache: &'a mut PackedCache,
    /// Whether a matrix was packed whose codes can be multiplied as integers.
    has_integers: bool,
}

impl<'a> Packing<'a> {
    /// Packs for this kernel, in this dtype.
    pub(super) fn new(
        kernel: Supported,
        dtype: Dtype,
        tensors: &'a mut dyn Tensors,
        cache: &'a mut PackedCache,
    ) -> Self {
        let word = match dtype {
            Dtype::F32 | Dtype::Tf32 => Word::Single,
            Dtype::Bf16 => Word::Pair,
        };
        Self { kernel, word, dtype, tensors, cache, has_integers: false }
    }

    /// The kernel that would multiply some of what was packed as integers.
    pub(super) fn kernel_of_integers(&self) -> Option<Kernel> {
        self.kernel.of_integers().filter(|_| self.has_integers)
    }

    /// One matrix `[sum of rows, d_in]` from several tensors `[rows, d_in]`, given by name and
    /// number of rows, stacked in their order. Queries, keys and values become one projection this
    /// way. Tensors that are stored as codes stay codes, as far as [`codings`](Self::codings) lets them.
    ///
    /// # Errors
    /// Those of [`Tensors::coding`], [`Tensors::take_rows`] and [`Tensors::take_codes`]. The half-filled
    /// matrix is dropped then.
    pub(super) fn matrix(&mut self, parts: &[(String, usize)], d_in: usize) -> Result<PackedLinear, Error> {
        let codings = self.codings(parts, d_in)?;
        self.cached(self.word, parts, d_in, &codings, |packing, matrix, first, (name, rows), coding| {
            let (tensors, shape, dtype) = (&mut *packing.tensors, [*rows, d_in], packing.dtype);
            if coding.is_some() {
                tensors.take_codes(name, shape, dtype, &mut |row, codes| matrix.fill_codes(first + row, codes))?;
            } else {
                tensors.take_rows(name, shape, dtype, &mut |row, values| matrix.fill(first + row, values))?;
            }
            Ok(())
        })
    }

    /// How each of some tensors is to be kept: as it is coded, or dequantised (`None`). All are
    /// dequantised where panels would have rows of differently coded tensors, and those whose scales
    /// take more room than codes save.
    fn codings(&self, parts: &[(String, usize)], d_in: usize) -> Result<Vec<Option<Coding>>, Error> {
        let coding = |(name, rows): &(String, usize)| self.tensors.coding(name, [*rows, d_in]);
        let found = parts.iter().map(coding).collect::<Result<Vec<_>, _>>()?;
        let mut codings: Vec<_> = found.into_iter().map(|coding| coding.filter(Coding::is_small)).collect();
        let ends = parts.iter().scan(0, |end, (_, rows)| {
            *end += rows;
            Some(*end)
        });
        if ends.zip(codings.windows(2)).any(|(end, pair)| pair[0] != pair[1] && !end.is_multiple_of(LANES)) {
            codings.fill(None);
        }
        Ok(codings)
    }

    /// A matrix of the cache, or else one that the cache then gets: `fill` fills the rows of each of
    /// `parts`, given the first of them and how they are kept.
    fn cached(
        &mut self,
        word: Word,
        parts: &[(String, usize)],
        d_in: usize,
        codings: &[Option<Coding>],
        fill: impl Fn(&mut Self, &mut PackedLinear, usize, &(String, usize), &Option<Coding>) -> Result<(), Error>,
    ) -> Result<PackedLinear, Error> {
        // Successive tensors that are kept alike make one section.
        let mut sections: Vec<(usize, Option<Coding>)> = Vec::new();
        for ((_, rows), coding) in parts.iter().zip(codings) {
            match sections.last_mut() {
                Some((count, last)) if last == coding => *count += rows,
                _ => sections.push((*rows, coding.clone())),
            }
        }
        let mut is_there = true;
        let mut matrix = PackedLinear::of(self.kernel, word, d_in, sections, |shape| {
            let mut arrays = Vec::new();
            for length in shape.lengths() {
                match self.cache.take(parts, d_in, length)? {
                    Some(array) => arrays.push(array),
                    None => is_there = false,
                }
            }
            Ok::<_, Error>(if is_there { Section::new(shape, arrays) } else { Section::zeros(shape) })
        })?;
        self.has_integers |= matrix.is_of_integers();
        if is_there {
            parts.iter().for_each(|(name, _)| self.tensors.pass_over(name));
            return Ok(matrix);
        }
        let mut first = 0;
        for (part, coding) in parts.iter().zip(codings) {
            fill(self, &mut matrix, first, part, coding)?;
            first += part.1;
        }
        matrix.arrays().try_for_each(|array| self.cache.put(parts, d_in, array))?;
        Ok(matrix)
    }

    /// The biases of a stacked projection, concatenated in the order of its matrices; `None` if it
    /// has none.
    fn bias(&mut self, linear: &LinearSpec) -> Result<Option<Vec<f32>>, Error> {
        let mut bias = Vec::new();
        for (name, rows) in linear.biases() {
            bias.append(&mut self.tensors.take(&name, &[rows], self.dtype)?);
        }
        Ok(linear.bias.then_some(bias))
    }
}

impl Build for Packing<'_> {
    /// A packed matrix with its bias.
    type Linear = Linear;
    /// Weights of a norm, and any other vector.
    type Norm = Vec<f32>;

    /// The matrices of a projection stacked into one, with their biases.
    fn linear(&mut self, linear: &LinearSpec) -> Result<Linear, Error> {
        let bias = self.bias(linear)?;
        Ok(Linear { weight: self.matrix(&linear.weights(), linear.d_in)?, bias, factors: linear.factors.clone() })
    }

    /// A router in single words, whatever the model's dtype: neither its inputs nor its logits are
    /// rounded to bf16.
    fn router(&mut self, router: &LinearSpec) -> Result<Linear, Error> {
        let parts = router.weights();
        let plain = vec![None; parts.len()];
        let weight =
            self.cached(Word::Single, &parts, router.d_in, &plain, |packing, weight, first, (name, rows), _| {
                let values = packing.tensors.take(name, &[*rows, router.d_in], packing.dtype)?;
                weight.fill(first, Numbers::F32(&values));
                Ok(())
            })?;
        Ok(Linear { weight, bias: self.bias(router)?, factors: router.factors.clone() })
    }

    /// The weight that the norm multiplies by, and its bias behind it where there is one: offset and
    /// factor of the description are applied here, once.
    fn norm(&mut self, norm: &NormSpec) -> Result<Vec<f32>, Error> {
        let mut weight = self.tensors.take(&norm.name, &[norm.len], self.dtype)?;
        weight.iter_mut().for_each(|w| *w = norm.weight(*w));
        if let Some(bias) = &norm.bias {
            weight.append(&mut self.tensors.take(bias, &[norm.len], self.dtype)?);
        }
        Ok(weight)
    }

    /// A matrix whose rows are looked up on the host; see [`Tensors::table`].
    fn table(&mut self, name: &str, shape: [usize; 2]) -> Result<Table, Error> {
        Ok(self.tensors.table(name, shape, self.dtype)?)
    }

    /// A tensor as plain numbers, row-major.
    fn numbers(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Error> {
        Ok(self.tensors.take(name, shape, self.dtype)?)
    }
}
