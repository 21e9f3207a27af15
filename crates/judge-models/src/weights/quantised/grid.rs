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

use safetensors::Dtype as Stored;

use crate::Error;
use crate::weights::raw::{Floats, Raw};
use crate::weights::rows::Rows;

/// A matrix of `(value(code) - zero) * scale`, with one scale and one zero point per block.
pub(super) struct Grid<'a> {
    /// One byte for each element, row-major.
    codes: &'a [u8],
    /// What each byte stands for: [`E4M3`] or [`INT8`], by the dtype of the codes.
    values: &'static [f32; 256],
    /// Columns of the matrix.
    width: usize,
    /// The scales of all blocks, row-major.
    scales: Floats<'a>,
    /// Zero points in int8, one for each scale; without them they are 0.
    zeros: Option<&'a [u8]>,
    /// Rows and columns of a block; those at the lower and right edges may be cut.
    block: [usize; 2],
    /// Blocks side by side.
    across: usize,
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
        let values = match codes.dtype {
            Stored::F8_E4M3 => &E4M3,
            Stored::I8 => &INT8,
            _ => return Err(codes.other_dtype("F8_E4M3 or I8")),
        };
        let grid = [shape[0].div_ceil(block[0].max(1)), shape[1].div_ceil(block[1].max(1))];
        if !fits(scales.raw().shape, grid) {
            return Err(scales.raw().other_shape(&grid));
        }
        Ok(Self { codes: codes.bytes, values, width: shape[1], scales, zeros: None, block, across: grid[1] })
    }

    /// Adds zero points, I8 of the scales' shape.
    ///
    /// # Errors
    /// [`Error::Tensor`] for another dtype or shape.
    pub(super) fn with_zeros(self, zeros: Raw<'a>) -> Result<Self, Error> {
        let zeros = zeros.of_dtype(Stored::I8, "I8")?.of_shape(self.scales.raw().shape)?;
        Ok(Self { zeros: Some(zeros.bytes), ..self })
    }
}

/// Whether a shape is that of a grid of scales. Writers may leave out dimensions of one: `[n]`
/// stands for `[n, 1]`, and a scalar for `[1, 1]`.
pub(super) fn fits(shape: &[usize], grid: [usize; 2]) -> bool {
    shape == grid || shape == [grid[0]] && grid[1] == 1 || shape.is_empty() && grid == [1, 1]
}

impl Rows for Grid<'_> {
    fn expand(&self, first: usize, values: &mut [f32]) {
        for (row, values) in values.chunks_exact_mut(self.width).enumerate() {
            let row = first + row;
            let codes = &self.codes[row * self.width..][..self.width];
            let blocks = values.chunks_mut(self.block[1]).zip(codes.chunks(self.block[1]));
            for (column, (values, codes)) in blocks.enumerate() {
                let at = row / self.block[0] * self.across + column;
                let scale = self.scales.get(at);
                let zero = self.zeros.map_or(0.0, |zeros| INT8[usize::from(zeros[at])]);
                for (value, &code) in values.iter_mut().zip(codes) {
                    *value = (self.values[usize::from(code)] - zero) * scale;
                }
            }
        }
    }

    fn scales(&self) -> Vec<Floats<'_>> {
        vec![self.scales]
    }
}

/// What each byte is in two's complement.
static INT8: [f32; 256] = {
    let mut values = [0.0; 256];
    let mut byte = 0;
    while byte < 256 {
        values[byte] = byte as u8 as i8 as f32;
        byte += 1;
    }
    values
};

/// What each byte is in E4M3 of the OFP8 specification: a sign, four bits of exponent with bias 7,
/// three of fraction. There are no infinities, and all ones behind the sign is NaN. The largest
/// value is 448.
static E4M3: [f32; 256] = {
    let mut values = [0.0; 256];
    let mut byte: u32 = 0;
    while byte < 256 {
        let (exponent, fraction) = ((byte >> 3) & 15, byte & 7);
        let magnitude = match (exponent, fraction) {
            (15, 7) => f32::NAN,
            (0, _) => fraction as f32 / 512.0,
            _ => f32::from_bits(((exponent + 120) << 23) | (fraction << 20)),
        };
        values[byte as usize] = if byte >= 128 { -magnitude } else { magnitude };
        byte += 1;
    }
    values
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_e4m3_are_those_of_the_standard() {
        // The examples of the OFP8 specification: largest, smallest normal, largest and smallest subnormal, zeros.
        for (byte, value) in [(0x7e, 448.0), (0x08, 0.015625), (0x07, 0.013671875), (0x01, 0.001953125), (0x38, 1.0)] {
            assert_eq!((E4M3[byte], E4M3[byte | 128]), (value, -value));
        }
        assert!(E4M3[0x7f].is_nan() && E4M3[0xff].is_nan());
        assert_eq!((E4M3[0].to_bits(), E4M3[128].to_bits()), (0, 1 << 31));
        assert_eq!((INT8[127], INT8[128], INT8[255]), (127.0, -128.0, -1.0));
    }
}
