//! Integers of 4 or 8 bits packed along a row, as `compressed-tensors` packs them
//! (`pack-quantized`).
//!
//! ```text
//!  weight_packed      I32 [out, ⌈in · bits / 32⌉]       element k of a row at bits k · bits of its words,
//!                                                       low bits first, with 2^(bits - 1) added
//!  weight_scale       [⌈out / b0⌉, ⌈in / b1⌉]           blocks of b0 rows and b1 columns
//!  weight_zero_point  I32 [⌈out · bits / 32⌉, ⌈in / b1⌉]   packed in the same way down the rows, optional
//!  weight_g_idx       I32 [in]                          the group of each column, optional
//!  weight_shape       I32 or I64 [2]                    out, in: packing loses the width
//! ```
//!
//! The weight is `(code - zero) * scale`. What was added to codes was added to zero points too, so
//! it cancels; without zero points, `zero` is `2^(bits - 1)`. `compressed.rs` opens such modules.

use judge_kernels::codes::{CodeNumbers, CodedRows, Coding};
use safetensors::Dtype as Stored;

use super::groups::groups;
use crate::Error;
use crate::codes::Coded;
use crate::error::TensorProblem;
use crate::raw::{Floats, Raw, Words};

/// A matrix of `(code - zero) * scale`, with one scale and one zero point for each group of columns
/// of a row.
pub(super) struct Packed<'a> {
    /// The bytes of all words. Words are little-endian, so element `k` of a row is in byte `k ·
    /// bits / 8`.
    codes: &'a [u8],
    /// Codes of 4 or 8 bits, neither of which crosses a byte: without signs where there are zero
    /// points; else with signs, as what was added is taken off again.
    coding: Coding,
    /// The scales, row-major: `across` for each block of rows.
    scales: Floats<'a>,
    /// The packed zero points; `None` for the middle of the range.
    zeros: Option<Words<'a>>,
    /// Rows that share a scale.
    rows: usize,
}

/// The tensors of a module beside its codes and scales.
pub(super) struct Beside<'a> {
    /// `weight_shape`.
    pub(super) shape: Raw<'a>,
    /// `weight_zero_point`, packed along columns: `[⌈out · bits / 32⌉, groups]`.
    pub(super) zeros: Option<Raw<'a>>,
    /// `weight_g_idx` `[in]`: the group of each column.
    pub(super) groups: Option<Raw<'a>>,
}

impl<'a> Packed<'a> {
    /// Joins the tensors of a module of this shape whose scales are one for each block of rows and
    /// columns `block`. That the scales have the shape of such a grid was checked by the caller.
    ///
    /// # Errors
    /// [`Error::Tensor`] for tensors that do not fit the shape, `weight_shape` among them, or each
    /// other.
    pub(super) fn new(
        codes: Raw<'a>,
        shape: [usize; 2],
        bits: usize,
        scales: Floats<'a>,
        block: [usize; 2],
        beside: Beside<'a>,
    ) -> Result<Self, Error> {
        let [out, width] = shape;
        let codes = codes.of_dtype(Stored::I32, "I32")?.of_shape(&[out, (width * bits).div_ceil(32)])?;
        let stored = stored_shape(&beside.shape)?;
        if stored != [out as i64, width as i64] {
            let found = stored.iter().map(|&size| usize::try_from(size).unwrap_or(0)).collect();
            return Err(beside.shape.fault(TensorProblem::Shape { expected: shape.to_vec(), found }));
        }
        let across = width.div_ceil(block[1]);
        let zeros =
            beside.zeros.map(|zeros| zeros.of_shape(&[(out * bits).div_ceil(32), across])?.words()).transpose()?;
        let numbers = if zeros.is_some() { CodeNumbers::Unsigned } else { CodeNumbers::Signed };
        let coding = Coding {
            groups: groups(beside.groups, width, block[1], across)?,
            n_groups: across,
            has_zeros: zeros.is_some(),
            ..Coding::scaled(bits, numbers, width, block[1])
        };
        Ok(Self { codes: codes.bytes, coding, scales, zeros, rows: block[0] })
    }

    /// The zero point of a row and a group, as it is packed in `zeros`.
    fn zero(&self, zeros: Words<'_>, row: usize, group: usize) -> f32 {
        let Coding { bits, n_groups, .. } = self.coding;
        let per_word = 32 / bits;
        let word = zeros.get(row / per_word * n_groups + group);
        (word >> (bits * (row % per_word)) & ((1 << bits) - 1)) as f32
    }
}

/// Both numbers of a `weight_shape`, which are of 32 or 64 bits.
fn stored_shape(raw: &Raw<'_>) -> Result<Vec<i64>, Error> {
    raw.of_shape(&[2])?;
    match raw.dtype {
        Stored::I32 => Ok(raw.bytes.as_chunks().0.iter().map(|&bytes| i32::from_le_bytes(bytes).into()).collect()),
        Stored::I64 => Ok(raw.bytes.as_chunks().0.iter().map(|&bytes| i64::from_le_bytes(bytes)).collect()),
        _ => Err(raw.other_dtype("I32 or I64")),
    }
}

impl Coded for Packed<'_> {
    fn coding(&self) -> &Coding {
        &self.coding
    }

    fn fill(&self, first: usize, rows: &mut CodedRows<'_>) {
        let Coding { bits, width, n_groups, .. } = self.coding;
        rows.fill_groups(n_groups, first, |row, group| {
            let zero = self.zeros.map_or(0.0, |zeros| self.zero(zeros, row, group));
            (zero, self.scales.get(row / self.rows * n_groups + group))
        });
        // Taking 2^(bits - 1) off is turning the highest bit round, as a code with a sign.
        let added = if self.zeros.is_some() { 0 } else { 1 << (bits - 1) };
        let bytes = 4 * (width * bits).div_ceil(32);
        for (row, codes) in rows.codes.chunks_exact_mut(width).enumerate() {
            let stored = &self.codes[(first + row) * bytes..][..bytes];
            for (column, code) in codes.iter_mut().enumerate() {
                let found = match bits {
                    4 => stored[column / 2] >> (4 * (column % 2)) & 15,
                    _ => stored[column],
                };
                *code = found ^ added;
            }
        }
    }

    fn scales(&self) -> Vec<Floats<'_>> {
        vec![self.scales]
    }
}
