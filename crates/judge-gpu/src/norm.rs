//! RMSNorm and LayerNorm of rows.

use burn::backend::cubecl::dtype_to_storage_type;
use burn::tensor::{DType, Tensor};
use cubecl::ir::ElemType;
use cubecl::prelude::*;
use judge_kernels::functions::NormKind;

use crate::rows::{Sharing, row, sum};
use crate::tensors::{burn, contiguous, empty};

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    norm: NormKind,
    /// Numbers of a row.
    width: usize,
    /// Whether a bias is behind the weight.
    is_biased: bool,
    sharing: Sharing,
}

/// The norm of each row of `x` along the last axis, times `weight`, in f32 inside: the shape of `x`, in `dtype`.
///
/// `weight` has the width of a row, or twice as many numbers, of which the second half is added.
pub fn norm<const D: usize>(kind: NormKind, x: Tensor<D>, weight: Tensor<1>, eps: f64, dtype: DType) -> Tensor<D> {
    let shape = x.shape();
    let width = shape[D - 1];
    let x = contiguous(x);
    let rows = shape.num_elements() / width.max(1);
    let out = empty(&x, shape, dtype);
    if rows == 0 {
        return burn(out);
    }
    let sharing = Sharing::of(&x.client);
    let weight = contiguous(weight);
    let kind = Kind { norm: kind, width, is_biased: weight.meta.shape()[0] > width, sharing };
    let (count, dim) = sharing.launch(rows);
    let (from, to) = (dtype_to_storage_type(x.dtype), dtype_to_storage_type(dtype));
    let of_weight = dtype_to_storage_type(weight.dtype);
    let client = x.client.clone();
    // SAFETY: units beyond the last row end at once, and a row is read and written within its width.
    unsafe {
        norm_rows::launch_unchecked(
            &client,
            count,
            dim,
            x.into_buffer_arg(),
            weight.into_buffer_arg(),
            out.clone().into_buffer_arg(),
            rows as u32,
            eps as f32,
            kind,
            [from, of_weight, to],
        );
    }
    burn(out)
}

#[cube(launch_unchecked)]
fn norm_rows<I: Float, W: Float, O: Float>(
    x: &[I],
    weight: &[W],
    out: &mut [O],
    rows: u32,
    eps: f32,
    #[comptime] kind: Kind,
    #[define(I, W, O)] _dtypes: [ElemType; 3],
) {
    let row = row(kind.sharing);
    // Of a cube that is shared by one row all units end, so none waits for another.
    if row >= rows as usize {
        terminate!();
    }
    let width = comptime!(kind.width);
    let units = comptime!(kind.sharing.units as usize);
    let start = row * width;
    let first = UNIT_POS_X as usize;
    let mut mean = 0.0f32;
    if comptime!(matches!(kind.norm, NormKind::LayerNorm)) {
        let mut total = 0.0f32;
        for i in range_stepped(first, width, units) {
            total += f32::cast_from(x[start + i]);
        }
        mean = sum(total, kind.sharing) / comptime!(width as f32);
    }
    let mut squares = 0.0f32;
    for i in range_stepped(first, width, units) {
        let value = f32::cast_from(x[start + i]) - mean;
        squares += value * value;
    }
    let factor = 1.0f32 / (sum(squares, kind.sharing) / comptime!(width as f32) + eps).sqrt();
    for i in range_stepped(first, width, units) {
        let mut value = (f32::cast_from(x[start + i]) - mean) * factor * f32::cast_from(weight[i]);
        if comptime!(kind.is_biased) {
            value += f32::cast_from(weight[width + i]);
        }
        out[start + i] = O::cast_from(value);
    }
}
