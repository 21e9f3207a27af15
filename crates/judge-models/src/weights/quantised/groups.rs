//! Which group of scales each column of a matrix belongs to.

use safetensors::Dtype as Stored;

use crate::Error;
use crate::error::TensorProblem;
use crate::weights::raw::Raw;

/// The groups of columns that share scales in a row.
pub(super) enum Groups {
    /// Successive ones, so many in each.
    Even(usize),
    /// One by one: columns were sorted when the groups were made.
    Listed(Vec<u32>),
}

impl Groups {
    /// The groups that a tensor `[in]` of 32-bit indices lists, or without one, or where all are -1, those of so many successive columns.
    ///
    /// # Errors
    /// [`TensorProblem::Index`] for an index that is not below `count`.
    pub(super) fn new(indices: Option<Raw<'_>>, width: usize, size: usize, count: usize) -> Result<Self, Error> {
        let Some(raw) = indices else { return Ok(Self::Even(size)) };
        let words = raw.of_dtype(Stored::I32, "I32")?.of_shape(&[width])?.words()?;
        let of_column = |column| words.get(column) as i32;
        if (0..width).all(|column| of_column(column) == -1) {
            return Ok(Self::Even(size));
        }
        let group = |column| match u32::try_from(of_column(column)) {
            Ok(group) if (group as usize) < count => Ok(group),
            _ => Err(raw.fault(TensorProblem::Index { index: column, found: of_column(column).into(), limit: count })),
        };
        (0..width).map(group).collect::<Result<_, _>>().map(Self::Listed)
    }

    /// The group of a column.
    pub(super) fn of(&self, column: usize) -> usize {
        match self {
            Self::Even(size) => column / size,
            Self::Listed(groups) => groups[column] as usize,
        }
    }
}
