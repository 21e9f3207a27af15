//! Matrices whose rows are computed from codes: expanded some at a time, rounded once, handed over.
//!
//! The formats of `quantised/` and `gguf/` implement [`Rows`] as pure functions of mapped bytes.
//! [`hand_over`] runs them for `Tensors::take_rows` and `Tensors::take`:
//!
//! ```text
//!  mapped codes ─► Rows::expand ─► f32 rows ─► bf16 if asked for ─► first value not finite? ─► take
//!                  32 rows a task, on all threads
//! ```
//!
//! At most some 4 million elements are expanded at a time, so memory does not grow with the matrix.
//! A row's values depend on its index alone, so the cuts do not show in them.

use half::bf16;
use rayon::prelude::*;

use super::Numbers;
use super::raw::Floats;
use crate::Dtype;

/// Elements that are expanded before they are handed over: 16 MiB of f32, or one row if that has
/// more.
const ROWS_AT_ONCE: usize = 1 << 22;

/// Rows expanded by one task: enough that formats which pack a word across rows (AWQ) read most
/// words in one task only.
const ROWS_PER_TASK: usize = 32;

/// A matrix `[rows, width]` any of whose rows can be computed, by several threads at a time. The
/// shape is known to whoever made it, and was checked against its tensors then.
pub(crate) trait Rows: Sync {
    /// Computes whole rows in f32 from row `first` on, as many as `values` has room for, row-major.
    /// Values may be NaN or infinite if a scale is; the caller looks for them.
    ///
    /// # Panics
    /// If there are not so many rows.
    fn expand(&self, first: usize, values: &mut [f32]);

    /// The scales that rows are made with. Where a value is not finite, the error names a scale
    /// that is not finite rather than the codes. None by default.
    fn scales(&self) -> Vec<Floats<'_>> {
        Vec::new()
    }
}

/// Hands a matrix of this shape to `take`, some rows at a time and in order, each time with the
/// index of the first row. Values are rounded to `dtype`, to nearest with ties to even. A matrix
/// without elements is not handed over at all.
///
/// # Errors
/// Row-major index and value of the first element that is not finite, as computed or after
/// rounding. Its part of the rows is not handed over; those before it are.
pub(super) fn hand_over(
    matrix: &dyn Rows,
    [rows, width]: [usize; 2],
    dtype: Dtype,
    take: &mut dyn FnMut(usize, Numbers<'_>),
) -> Result<(), (usize, f32)> {
    if rows == 0 || width == 0 {
        return Ok(());
    }
    let at_once = (ROWS_AT_ONCE / width).clamp(1, rows);
    let mut values = vec![0.0_f32; at_once * width];
    let mut rounded = vec![bf16::ZERO; if dtype == Dtype::Bf16 { values.len() } else { 0 }];
    for first in (0..rows).step_by(at_once) {
        let count = at_once.min(rows - first) * width;
        let values = &mut values[..count];
        let tasks = values.par_chunks_mut(ROWS_PER_TASK * width).enumerate();
        tasks.for_each(|(task, values)| matrix.expand(first + task * ROWS_PER_TASK, values));
        let numbers = match dtype {
            Dtype::F32 => Numbers::F32(values),
            Dtype::Bf16 => {
                let rounded = &mut rounded[..count];
                rounded.par_iter_mut().zip(&*values).for_each(|(rounded, &value)| *rounded = bf16::from_f32(value));
                Numbers::Bf16(rounded)
            }
        };
        if let Some((index, value)) = numbers.not_finite() {
            return Err((first * width + index, value));
        }
        take(first, numbers);
    }
    Ok(())
}
