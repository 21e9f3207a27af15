//! Where the numbers of a model come from: files of tensors, dense or quantised, and adapters over them.
//!
//! Engines see [`Tensors`] alone: names and shapes of a Hugging Face folder, numbers rounded once. What a file holds instead, codes with scales or the names and
//! orders of another program, ends here.

mod convert;
mod gguf;
mod lora;
mod names;
mod open;
mod quantised;
mod raw;
mod rows;
mod safetensors;
mod table;

use std::borrow::Cow;
use std::collections::BTreeSet;

use half::bf16;
use rayon::prelude::*;

use crate::{Dtype, Error};
pub use gguf::GgufProblem;
pub(crate) use gguf::HeadCounts;
pub(crate) use lora::{Adapted, Adapter};
pub(crate) use open::{open, open_renamed};
pub(crate) use safetensors::Checkpoint;
pub(crate) use table::Table;

/// Tensors by name, each handed over once: what engines are loaded from.
pub(crate) trait Tensors {
    /// The values of a tensor of exactly this shape, row-major, rounded to `dtype`. All must be finite, after rounding too.
    fn take(&mut self, name: &str, shape: &[usize], dtype: Dtype) -> Result<Vec<f32>, Error>;

    /// Hands a matrix of exactly this shape to `take` in `dtype`, some rows at a time, each with the index of its first row: every value rounded to
    /// nearest, ties to even, where `dtype` has fewer bits. All must be finite, after rounding too.
    fn take_rows(
        &mut self,
        name: &str,
        shape: [usize; 2],
        dtype: Dtype,
        take: &mut dyn FnMut(usize, Numbers<'_>),
    ) -> Result<(), Error>;

    /// A matrix of exactly this shape whose rows are looked up later, rounded to `dtype`. Where it is stored as it is used it stays in its file, which is not read
    /// now; what is not finite is then found in what is made of it.
    fn table(&mut self, name: &str, shape: [usize; 2], dtype: Dtype) -> Result<Table, Error> {
        Table::collect(shape, |take| self.take_rows(name, shape, dtype, take))
    }

    /// Says that a tensor is not needed.
    fn pass_over(&mut self, name: &str);
}

/// All tensors of a model, handed out one by one; what nobody took is found out by [`finish`](Self::finish).
pub(crate) trait Store: Tensors {
    /// The dtype that suits them.
    fn stored_dtype(&self) -> Dtype;

    /// Whether some of the numbers are f16, whose eleven bits become eight where they are rounded to bf16.
    fn has_f16(&self) -> bool;

    /// How many tokens the embedding, which has this name, is of, where files may hold fewer than the configuration says.
    fn vocabulary(&self, _embedding: &str) -> Option<usize> {
        None
    }

    /// The names that a model finds here.
    fn names(&self) -> Box<dyn Iterator<Item = &str> + '_>;

    /// Those that were taken or passed over.
    fn taken(&self) -> &BTreeSet<String>;

    /// Whether a tensor may be there though no model takes it.
    fn is_redundant(&self, name: &str) -> bool;

    /// Fails unless there is a tensor of this name and shape. Nothing is allocated for it.
    fn expect(&self, name: &str, shape: &[usize]) -> Result<(), Error>;

    /// Fails if `expected` names a tensor that is absent, or if there is one that it does not name and that is not redundant, and lists both; or if one
    /// has another shape.
    fn check(&self, expected: &[(String, Vec<usize>)]) -> Result<(), Error> {
        let names = expected.iter().map(|(name, _)| name.as_str());
        names::compare(names, self.names(), |name| self.is_redundant(name))?;
        expected.iter().try_for_each(|(name, shape)| self.expect(name, shape))
    }

    /// Name, stored dtype and shape, and bytes of every stored tensor, by name: independent of how they are cut into files.
    fn contents(&self) -> Box<dyn Iterator<Item = (&str, String, &[u8])> + '_>;

    /// Fails if a tensor was neither taken nor passed over.
    fn finish(&self) -> Result<(), Error> {
        names::compare(self.taken().iter().map(String::as_str), self.names(), |name| self.is_redundant(name))
    }
}

/// Some numbers of a tensor, row-major.
#[derive(Clone, Copy)]
pub(crate) enum Numbers<'a> {
    Bf16(&'a [bf16]),
    F32(&'a [f32]),
}

impl Numbers<'_> {
    /// How many there are.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Bf16(values) => values.len(),
            Self::F32(values) => values.len(),
        }
    }

    /// The index and value of the first that is not finite.
    fn not_finite(self) -> Option<(usize, f32)> {
        let first = match self {
            Self::Bf16(values) => values.par_iter().position_first(|x| !x.is_finite()),
            Self::F32(values) => values.par_iter().position_first(|x| !x.is_finite()),
        };
        first.map(|index| (index, self.get(index)))
    }

    fn get(self, index: usize) -> f32 {
        match self {
            Self::Bf16(values) => values[index].to_f32(),
            Self::F32(values) => values[index],
        }
    }
}

impl<'a> Numbers<'a> {
    /// In f32.
    fn widened(self) -> Cow<'a, [f32]> {
        match self {
            Self::Bf16(values) => values.iter().map(|x| x.to_f32()).collect(),
            Self::F32(values) => Cow::Borrowed(values),
        }
    }
}
