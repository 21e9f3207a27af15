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

use judge_kernels::codes::{CodeNumbers, Coding};
use safetensors::Dtype as Stored;

use super::groups::groups;
use crate::Error;
use crate::codes::Coded;
use crate::error::TensorProblem;
use crate::raw::{Floats, Raw};

/// The tensors of a module beside its codes and scales.
pub(super) struct Beside<'a> {
    /// `weight_shape`.
    pub(super) shape: Raw<'a>,
    /// `weight_zero_point`, packed along columns: `[⌈out · bits / 32⌉, groups]`.
    pub(super) zeros: Option<Raw<'a>>,
    /// `weight_g_idx` `[in]`: the group of each column.
    pub(super) groups: Option<Raw<'a>>,
}

/// A matrix of `(code - zero) * scale`, with one scale and one zero point for each group of columns of a row. Its tensors are joined,
/// and its scales are one for each block of rows and columns `block`. That the scales have the shape of such a grid was checked by the
/// caller.
///
/// # Errors
/// [`Error::Tensor`] for tensors that do not fit the shape, `weight_shape` among them, or each
/// other.
pub(super) fn packed<'a>(
    codes: Raw<'a>,
    shape: [usize; 2],
    bits: usize,
    scales: Floats<'a>,
    block: [usize; 2],
    beside: Beside<'a>,
) -> Result<Coded<'a>, Error> {
    let [out, width] = shape;
    let codes = codes.of_dtype(Stored::I32, "I32")?.of_shape(&[out, (width * bits).div_ceil(32)])?;
    let stored = stored_shape(&beside.shape)?;
    if stored != [out as i64, width as i64] {
        let found = stored.iter().map(|&size| usize::try_from(size).unwrap_or(0)).collect();
        return Err(beside.shape.fault(TensorProblem::Shape { expected: shape.to_vec(), found }));
    }
    let across = width.div_ceil(block[1]);
    let zeros = beside.zeros.map(|zeros| zeros.of_shape(&[(out * bits).div_ceil(32), across])?.words()).transpose()?;
    // Without signs where there are zero points; else with signs, as what was added is taken off again.
    let numbers = if zeros.is_some() { CodeNumbers::Unsigned } else { CodeNumbers::Signed };
    let coding = Coding {
        groups: groups(beside.groups, width, block[1], across)?,
        n_groups: across,
        has_zeros: zeros.is_some(),
        ..Coding::scaled(bits, numbers, width, block[1])
    };
    // Taking 2^(bits - 1) off is turning the highest bit round, as a code with a sign.
    let added = if zeros.is_some() { 0 } else { 1 << (bits - 1) };
    let (per_word, mask, bytes_of_row) = (32 / bits, (1 << bits) - 1, 4 * (width * bits).div_ceil(32));
    Ok(Coded::new(coding, vec![scales], move |&Coding { bits, width, n_groups, .. }, first, rows| {
        rows.fill_groups(n_groups, first, |row, group| {
            let word = zeros.map_or(0, |zeros| zeros.get(row / per_word * n_groups + group));
            let zero = (word >> (bits * (row % per_word)) & mask) as f32;
            (zero, scales.get(row / block[0] * n_groups + group))
        });
        // Words are little-endian, so element k of a row is in byte k · bits / 8, and none crosses a byte.
        for (row, codes_of_row) in rows.codes.chunks_exact_mut(width).enumerate() {
            let stored = &codes.bytes[(first + row) * bytes_of_row..][..bytes_of_row];
            for (column, code) in codes_of_row.iter_mut().enumerate() {
                let found = match bits {
                    4 => stored[column / 2] >> (4 * (column % 2)) & 15,
                    _ => stored[column],
                };
                *code = found ^ added;
            }
        }
    }))
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
