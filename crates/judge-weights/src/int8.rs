//! Weights rounded to eight bits as they are loaded, for `--weight-form int8`.
//!
//! ```text
//! scale = largest magnitude of the group / 127        groups of GROUP columns of a row
//! code  = W / scale, rounded to nearest, ties to even
//! ```
//!
//! Matrices that are stored as codes already stay what they are, unless their scales take as much
//! room as this form saves, and so does what is taken as plain
//! numbers: vectors, routers and tables.

use judge_kernels::codes::{CodeNumbers, CodedMemory, Coding};
use judge_kernels::widest::{rounded, widest};
use rayon::prelude::*;

use super::table::Table;
use super::tensors::{TakeCodes, TakeRows, Tensors};
use crate::{Dtype, Error};

/// Columns that share a scale.
const GROUP: usize = 128;

/// Rows that are in memory as codes of a byte each, before they are packed.
const ROWS_AT_ONCE: usize = 2048;

/// Rows that one task rounds.
const ROWS_PER_TASK: usize = 32;

/// A model's tensors, whose matrices become codes of eight bits where they are asked for as codes.
pub struct InInt8<'a> {
    /// What is rounded.
    pub tensors: &'a mut dyn Tensors,
}

/// How a matrix of this width is rounded.
fn coding(width: usize) -> Coding {
    Coding::scaled(8, CodeNumbers::Signed, width, GROUP)
}

/// Rounds one row. A group of zeros has the scale 0.
#[inline(always)]
fn round(row: &[f32], codes: &mut [u8], scales: &mut [f32]) {
    for ((values, codes), scale) in row.chunks(GROUP).zip(codes.chunks_mut(GROUP)).zip(scales) {
        let largest = values.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        *scale = largest / 127.0;
        let divisor = if *scale > 0.0 { *scale } else { 1.0 };
        for (code, x) in codes.iter_mut().zip(values) {
            *code = rounded((x / divisor).clamp(-127.0, 127.0)) as u8;
        }
    }
}

impl InInt8<'_> {
    /// The coding of a matrix that stays what it is.
    fn own(&self, name: &str, shape: [usize; 2]) -> Result<Option<Coding>, Error> {
        Ok(self.tensors.coding(name, shape)?.filter(Coding::is_small))
    }
}

impl Tensors for InInt8<'_> {
    fn take(&mut self, name: &str, shape: &[usize], dtype: Dtype) -> Result<Vec<f32>, Error> {
        self.tensors.take(name, shape, dtype)
    }

    fn take_rows(&mut self, name: &str, shape: [usize; 2], dtype: Dtype, take: TakeRows<'_>) -> Result<(), Error> {
        self.tensors.take_rows(name, shape, dtype, take)
    }

    fn table(&mut self, name: &str, shape: [usize; 2], dtype: Dtype) -> Result<Table, Error> {
        self.tensors.table(name, shape, dtype)
    }

    /// Every matrix has one: its own, or that of signed codes of eight bits.
    fn coding(&self, name: &str, shape: [usize; 2]) -> Result<Option<Coding>, Error> {
        Ok(Some(self.own(name, shape)?.unwrap_or_else(|| coding(shape[1]))))
    }

    /// Rounds what is read in `dtype`.
    fn take_codes(&mut self, name: &str, shape: [usize; 2], dtype: Dtype, take: TakeCodes<'_>) -> Result<(), Error> {
        if self.own(name, shape)?.is_some() {
            return self.tensors.take_codes(name, shape, dtype, take);
        }
        let width = shape[1];
        let coding = coding(width);
        let mut memory = CodedMemory::new(&coding, ROWS_AT_ONCE.min(shape[0]));
        self.tensors.take_rows(name, shape, dtype, &mut |first, numbers| {
            for (index, values) in numbers.chunks(ROWS_AT_ONCE * width).enumerate() {
                let count = values.len() / width.max(1);
                let mut rows = memory.rows(&coding, count);
                rows.parts(&coding, ROWS_PER_TASK).enumerate().for_each(|(task, mut rows)| {
                    let from = task * ROWS_PER_TASK * width;
                    let values = values.part(from..from + rows.codes.len()).widened();
                    for (rows, values) in rows.each(&coding).zip(values.chunks(width.max(1))) {
                        widest(
                            #[inline(always)]
                            || round(values, &mut *rows.codes, &mut *rows.scales),
                        );
                    }
                });
                take(first + index * ROWS_AT_ONCE, &rows);
            }
        })
    }

    fn pass_over(&mut self, name: &str) {
        self.tensors.pass_over(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_values_are_within_half_a_step_and_the_largest_keeps_its_value() {
        let width = 300;
        let coding = coding(width);
        assert_eq!(coding.n_groups, 3);
        // The last group is shorter, and the middle one is nothing but zeros.
        let number = |i: usize| if (128..256).contains(&i) { 0.0 } else { ((i * 37) % 101) as f32 / 50.0 - 1.0 };
        let row: Vec<f32> = (0..width).map(number).collect();
        let mut memory = CodedMemory::new(&coding, 1);
        let rows = memory.rows(&coding, 1);
        round(&row, rows.codes, rows.scales);
        let mut values = vec![f32::NAN; width];
        coding.dequantise(&rows, &mut values);
        for (group, (found, expected)) in values.chunks(GROUP).zip(row.chunks(GROUP)).enumerate() {
            let largest = expected.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
            assert_eq!(rows.scales[group], largest / 127.0);
            for (x, y) in found.iter().zip(expected) {
                assert!((x - y).abs() <= largest / 253.9, "{x} for {y}");
                assert!(y.abs() < largest || (x - y).abs() <= 1e-6 * largest);
            }
        }
    }
}
