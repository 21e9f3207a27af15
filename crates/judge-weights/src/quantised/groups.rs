//! Which group of scales each column of a matrix belongs to.
//!
//! GPTQ and packed `compressed-tensors` have one scale for each row and group of columns. Where
//! columns were sorted by their importance before groups were made (`desc_act`), a tensor `g_idx`
//! lists the group of each.

use judge_kernels::codes::Groups;
use safetensors::Dtype as Stored;

use crate::Error;
use crate::error::TensorProblem;
use crate::raw::Raw;

/// The groups that a tensor `[width]` of 32-bit indices lists, each below `count`. Groups of
/// `size` successive columns if there is no such tensor, or if all of its indices are -1, which
/// writers use for an order that was not changed.
///
/// # Errors
/// [`TensorProblem::Index`] for an index that is negative or not below `count`, and
/// [`TensorProblem`]s of another dtype or shape.
pub(super) fn groups(indices: Option<Raw<'_>>, width: usize, size: usize, count: usize) -> Result<Groups, Error> {
    let Some(raw) = indices else { return Ok(Groups::Even(size)) };
    let words = raw.of_dtype(Stored::I32, "I32")?.of_shape(&[width])?.words()?;
    let of_column = |column| words.get(column) as i32;
    if (0..width).all(|column| of_column(column) == -1) {
        return Ok(Groups::Even(size));
    }
    let group = |column| match u32::try_from(of_column(column)) {
        Ok(group) if (group as usize) < count => Ok(group),
        _ => Err(raw.fault(TensorProblem::Index { index: column, found: of_column(column).into(), limit: count })),
    };
    (0..width).map(group).collect::<Result<_, _>>().map(Groups::Listed)
}
