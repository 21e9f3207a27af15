//! Matrices whose rows are computed from what is stored: dequantised some at a time, rounded once,
//! handed over; or handed over as the codes that they are.
//!
//! The formats of `quantised/` and `gguf/` make [`Coded`] of pure functions of mapped bytes; plain numbers of a GGUF file are
//! such a function alone. Two loops run them, [`hand_over`] for `Tensors::take_rows` and `Tensors::take`, [`hand_over_codes`] for
//! `Tensors::take_codes`:
//!
//! ```text
//!  mapped codes ─► Coded::dequantise ─► f32 rows ─► bf16 if asked for ─► first value not finite? ─► take
//!                  32 rows a task, on all threads
//!  mapped codes ─► Coded::fill ─► codes, one a byte ─► any dequantised value not finite? ─► take
//! ```
//!
//! At most some 4 million elements are dequantised at a time, so memory does not grow with the matrix.
//! A row's values depend on its index alone, so the cuts do not show in them.

use half::bf16;
use judge_kernels::codes::CodedMemory;
use judge_kernels::numbers::Numbers;
use rayon::prelude::*;

use super::codes::Coded;
use crate::Dtype;
use crate::tensors::{TakeCodes, TakeRows};

/// Elements that are dequantised before they are handed over: 16 MiB of f32, or one row if that has
/// more.
const ROWS_AT_ONCE: usize = 1 << 22;

/// Rows dequantised by one task: enough that formats which pack a word across rows (AWQ) read most
/// words in one task only.
const ROWS_PER_TASK: usize = 32;

/// Hands a matrix of this shape to `take`, some rows at a time and in order, each time with the
/// index of the first row. `matrix` computes whole rows in f32 from a row on, as many as there is room for. Values are rounded to `dtype`,
/// to nearest with ties to even. A matrix without elements is not handed over at all.
///
/// # Errors
/// Row-major index and value of the first element that is not finite, as computed or after
/// rounding. Its part of the rows is not handed over; those before it are.
pub fn hand_over(
    matrix: impl Fn(usize, &mut [f32]) + Sync,
    [rows, width]: [usize; 2],
    dtype: Dtype,
    take: TakeRows<'_>,
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
        tasks.for_each(|(task, values)| matrix(first + task * ROWS_PER_TASK, values));
        let numbers = match dtype {
            Dtype::F32 | Dtype::Tf32 => Numbers::F32(values),
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

/// Hands the codes of a matrix of this shape to `take`, some rows at a time and in order, each time
/// with the index of the first row. That values are finite, also when they are rounded to `dtype`,
/// is checked by dequantising them. A matrix without elements is not handed over at all.
///
/// # Errors
/// Those of [`hand_over`].
pub fn hand_over_codes(
    matrix: &Coded<'_>,
    [rows, width]: [usize; 2],
    dtype: Dtype,
    take: TakeCodes<'_>,
) -> Result<(), (usize, f32)> {
    if rows == 0 || width == 0 {
        return Ok(());
    }
    let coding = &matrix.coding;
    let at_once = (ROWS_AT_ONCE / width).clamp(1, rows);
    let mut memory = CodedMemory::new(coding, at_once);
    for first in (0..rows).step_by(at_once) {
        let count = at_once.min(rows - first);
        let mut coded = memory.rows(coding, count);
        let wrong = coded.parts(coding, ROWS_PER_TASK).enumerate().map(|(task, mut rows)| {
            let start = first + task * ROWS_PER_TASK;
            matrix.fill(start, &mut rows);
            let mut values = vec![0.0; rows.codes.len()];
            coding.dequantise(&rows, &mut values);
            let rounds = |x: f32| if dtype == Dtype::Bf16 { bf16::from_f32(x).to_f32() } else { x };
            let wrong = values.iter().position(|&x| !rounds(x).is_finite());
            wrong.map(|index| (start * width + index, rounds(values[index])))
        });
        if let Some(wrong) = wrong.flatten_iter().min_by_key(|(index, _)| *index) {
            return Err(wrong);
        }
        take(first, &coded);
    }
    Ok(())
}
