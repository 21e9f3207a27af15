//! Where the numbers of a model come from: files of tensors, and adapters over them.

mod lora;
mod safetensors;

use std::borrow::Cow;

use half::bf16;

use crate::{Dtype, Error};
pub(crate) use lora::{Adapted, Adapter};
pub(crate) use safetensors::Checkpoint;

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
