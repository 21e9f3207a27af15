//! Rows of a tensor in the dtype that was asked for, as they are handed to a loader.

use std::borrow::Cow;
use std::ops::Range;

use half::bf16;
use rayon::prelude::*;

/// Whole rows of a tensor, row-major, in the dtype that was asked for.
#[derive(Clone, Copy)]
pub enum Numbers<'a> {
    /// Those of a model in bf16.
    Bf16(&'a [bf16]),
    /// Those of a model in f32.
    F32(&'a [f32]),
}

impl Numbers<'_> {
    /// Elements, not bytes or rows.
    #[allow(clippy::len_without_is_empty)] // nobody asks
    pub fn len(self) -> usize {
        match self {
            Self::Bf16(values) => values.len(),
            Self::F32(values) => values.len(),
        }
    }

    /// The index and value of the first element that is NaN or infinite, found on all threads.
    pub fn not_finite(self) -> Option<(usize, f32)> {
        let first = match self {
            Self::Bf16(values) => values.par_iter().position_first(|x| !x.is_finite()),
            Self::F32(values) => values.par_iter().position_first(|x| !x.is_finite()),
        };
        first.map(|index| (index, self.get(index)))
    }

    /// The element of this index, widened to f32.
    pub(crate) fn get(self, index: usize) -> f32 {
        match self {
            Self::Bf16(values) => values[index].to_f32(),
            Self::F32(values) => values[index],
        }
    }
}

impl<'a> Numbers<'a> {
    /// Some elements in a row.
    pub fn part(self, range: Range<usize>) -> Self {
        match self {
            Self::Bf16(values) => Self::Bf16(&values[range]),
            Self::F32(values) => Self::F32(&values[range]),
        }
    }

    /// So many elements at a time, at least one; the last part may have fewer.
    pub fn chunks(self, size: usize) -> impl Iterator<Item = Self> {
        let size = size.max(1);
        (0..self.len()).step_by(size).map(move |from| self.part(from..self.len().min(from + size)))
    }

    /// All elements in f32: borrowed where they are f32, else a copy. Widening bf16 is exact.
    pub fn widened(self) -> Cow<'a, [f32]> {
        match self {
            Self::Bf16(values) => values.iter().map(|x| x.to_f32()).collect(),
            Self::F32(values) => Cow::Borrowed(values),
        }
    }
}
