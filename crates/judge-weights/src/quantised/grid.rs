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

use judge_kernels::codes::{CodeNumbers, Coding};
use safetensors::Dtype as Stored;

use crate::Error;
use crate::codes::Coded;
use crate::raw::{Floats, Raw};

/// A matrix of `(value(code) - zero) * scale`, with one scale and one zero point per block: codes, which must be a matrix of this shape,
/// their scales, and zero points, I8 of the scales' shape, without which they are 0. Blocks at the lower and right edges may be cut.
///
/// # Errors
/// [`Error::Tensor`] for codes of another shape or dtype, for scales that are not one per block, and for zero points of another dtype or
/// shape.
pub(super) fn grid<'a>(
    codes: Raw<'a>,
    shape: [usize; 2],
    scales: Floats<'a>,
    zeros: Option<Raw<'a>>,
    block: [usize; 2],
) -> Result<Coded<'a>, Error> {
    let codes = codes.of_shape(&shape)?;
    let numbers = match codes.dtype {
        Stored::F8_E4M3 => CodeNumbers::E4m3,
        Stored::I8 => CodeNumbers::Signed,
        _ => return Err(codes.other_dtype("F8_E4M3 or I8")),
    };
    let of_blocks = [shape[0].div_ceil(block[0].max(1)), shape[1].div_ceil(block[1].max(1))];
    if !fits(scales.raw().shape, of_blocks) {
        return Err(scales.raw().other_shape(&of_blocks));
    }
    let zeros = zeros.map(|zeros| zeros.of_dtype(Stored::I8, "I8")?.of_shape(scales.raw().shape)).transpose()?;
    // Groups are as wide as blocks.
    let coding = Coding { has_zeros: zeros.is_some(), ..Coding::scaled(8, numbers, shape[1], block[1]) };
    let block_rows = block[0].max(1);
    Ok(Coded::new(coding, vec![scales], move |&Coding { width, n_groups, .. }, first, rows| {
        rows.codes.copy_from_slice(&codes.bytes[first * width..][..rows.codes.len()]);
        rows.fill_groups(n_groups, first, |row, group| {
            let at = row / block_rows * n_groups + group;
            (zeros.map_or(0.0, |zeros| f32::from(zeros.bytes[at] as i8)), scales.get(at))
        });
    }))
}

/// Whether a shape is that of a grid of scales. Writers may leave out dimensions of one: `[n]`
/// stands for `[n, 1]`, and a scalar for `[1, 1]`.
pub(super) fn fits(shape: &[usize], grid: [usize; 2]) -> bool {
    shape == grid || shape == [grid[0]] && grid[1] == 1 || shape.is_empty() && grid == [1, 1]
}
