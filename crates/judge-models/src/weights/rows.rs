//! Matrices whose rows are computed from codes: expanded some rows at a time, rounded once, and handed over.

use half::bf16;
use rayon::prelude::*;

use super::Numbers;
use super::raw::Floats;
use crate::Dtype;

/// Elements that are expanded before they are handed over.
const ROWS_AT_ONCE: usize = 1 << 22;

/// Rows expanded by one task: formats that pack a word across rows read each word once.
const ROWS_PER_TASK: usize = 32;

/// A matrix any of whose rows can be computed.
pub(crate) trait Rows: Sync {
    /// Computes the rows from `first` on, row-major, as many as `values` has room for. What is not finite is left to the caller to find.
    fn expand(&self, first: usize, values: &mut [f32]);

    /// The scales that rows are made with, to name the culprit where a row is not finite.
    fn scales(&self) -> Vec<Floats<'_>> {
        Vec::new()
    }
}

/// Hands a matrix of this shape to `take`, some rows at a time, each with the index of its first row: every value rounded to `dtype`, to nearest with
/// ties to even.
///
/// # Errors
/// The first value that is not finite, after rounding too, with its index.
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
