//! Codes of one byte each, with a scale for every block of rows and columns.
//!
//! FP8 and 8-bit integers of several methods share this form. `fp8.rs` and `compressed.rs` say how
//! large blocks are:
//!
//! ```text
//!  codes [rows, columns]            scales [⌈rows / b0⌉, ⌈columns / b1⌉]
//!  ┌────┬────┬──┐ ┐
//!  │    │    │  │ │ b0 rows         s00  s01  s02        W[r, c] = (value(code[r, c]) - z) * s
//!  ├────┼────┼──┤ ┘                 s10  s11  s12        s and z of block r / b0, c / b1
//!  └────┴────┴──┘  edges are cut
//!    b1 columns
//! ```
//!
//! A scale for each row is the block `[1, columns]`, one for all is `[rows, columns]`.

use judge_kernels::codes::{CodeNumbers, CodedRows, Coding};
use safetensors::Dtype as Stored;

use crate::Error;
use crate::codes::Coded;
use crate::raw::{Floats, Raw};

/// A matrix of `(value(code) - zero) * scale`, with one scale and one zero point per block.
pub(super) struct Grid<'a> {
    /// One byte for each element, row-major.
    codes: &'a [u8],
    /// E4M3 or int8, by the dtype of the codes, in groups as wide as blocks.
    coding: Coding,
    /// The scales of all blocks, row-major.
    scales: Floats<'a>,
    /// Zero points in int8, one for each scale; without them they are 0.
    zeros: Option<&'a [u8]>,
    /// Rows of a block; those at the lower edge may be cut.
    rows: usize,
}

impl<'a> Grid<'a> {
    /// Joins codes, which must be a matrix of this shape, and their scales. Blocks at the lower and
    /// right edges may be cut.
    ///
    /// # Errors
    /// [`Error::Tensor`] for codes of another shape or dtype, and for scales that are not one per
    /// block.
    pub(super) fn new(codes: Raw<'a>, shape: [usize; 2], scales: Floats<'a>, block: [usize; 2]) -> Result<Self, Error> {
        let codes = codes.of_shape(&shape)?;
        let numbers = match codes.dtype {
            Stored::F8_E4M3 => CodeNumbers::E4m3,
            Stored::I8 => CodeNumbers::Signed,
            _ => return Err(codes.other_dtype("F8_E4M3 or I8")),
        };
        let grid = [shape[0].div_ceil(block[0].max(1)), shape[1].div_ceil(block[1].max(1))];
        if !fits(scales.raw().shape, grid) {
            return Err(scales.raw().other_shape(&grid));
        }
        let coding = Coding::scaled(8, numbers, shape[1], block[1]);
        Ok(Self { codes: codes.bytes, coding, scales, zeros: None, rows: block[0].max(1) })
    }

    /// Adds zero points, I8 of the scales' shape.
    ///
    /// # Errors
    /// [`Error::Tensor`] for another dtype or shape.
    pub(super) fn with_zeros(self, zeros: Raw<'a>) -> Result<Self, Error> {
        let zeros = zeros.of_dtype(Stored::I8, "I8")?.of_shape(self.scales.raw().shape)?;
        let coding = Coding { has_zeros: true, ..self.coding };
        Ok(Self { zeros: Some(zeros.bytes), coding, ..self })
    }
}

/// Whether a shape is that of a grid of scales. Writers may leave out dimensions of one: `[n]`
/// stands for `[n, 1]`, and a scalar for `[1, 1]`.
pub(super) fn fits(shape: &[usize], grid: [usize; 2]) -> bool {
    shape == grid || shape == [grid[0]] && grid[1] == 1 || shape.is_empty() && grid == [1, 1]
}

impl Coded for Grid<'_> {
    fn coding(&self) -> &Coding {
        &self.coding
    }

    fn fill(&self, first: usize, rows: &mut CodedRows<'_>) {
        let Coding { width, n_groups, .. } = self.coding;
        rows.codes.copy_from_slice(&self.codes[first * width..][..rows.codes.len()]);
        rows.fill_groups(n_groups, first, |row, group| {
            let at = row / self.rows * n_groups + group;
            (self.zeros.map_or(0.0, |zeros| f32::from(zeros[at] as i8)), self.scales.get(at))
        });
    }

    fn scales(&self) -> Vec<Floats<'_>> {
        vec![self.scales]
    }
}
