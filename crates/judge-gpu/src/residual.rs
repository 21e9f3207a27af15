//! What is added to the residual stream.

use burn::backend::cubecl::dtype_to_storage_type;
use burn::tensor::{DType, Tensor};
use cubecl::ir::ElemType;
use cubecl::prelude::*;

use crate::tensors::{burn, contiguous, empty, spread};

/// `x + factor · y` of two tensors of one shape and any float dtypes, in f32.
pub fn add<const D: usize>(x: Tensor<D>, y: Tensor<D>, factor: f64) -> Tensor<D> {
    let shape = x.shape();
    let (x, y) = (contiguous(x), contiguous(y));
    assert_eq!(shape, y.meta.shape().clone(), "what is added has another shape than the residual stream");
    let numbers = shape.num_elements();
    let out = empty(&x, shape, DType::F32);
    if numbers == 0 {
        return burn(out);
    }
    let (count, dim) = spread(&x.client, numbers);
    let client = x.client.clone();
    let dtypes = [x.dtype, y.dtype].map(dtype_to_storage_type);
    // SAFETY: units beyond the last number end at once, and the others read and write one number of each.
    unsafe {
        add_numbers::launch_unchecked(
            &client,
            count,
            dim,
            x.into_buffer_arg(),
            y.into_buffer_arg(),
            out.clone().into_buffer_arg(),
            numbers as u32,
            factor as f32,
            dtypes,
        );
    }
    burn(out)
}

#[cube(launch_unchecked)]
fn add_numbers<X: Float, Y: Float>(
    x: &[X],
    y: &[Y],
    out: &mut [f32],
    numbers: u32,
    factor: f32,
    #[define(X, Y)] _dtypes: [ElemType; 2],
) {
    if ABSOLUTE_POS >= numbers as usize {
        terminate!();
    }
    out[ABSOLUTE_POS] = f32::cast_from(x[ABSOLUTE_POS]) + factor * f32::cast_from(y[ABSOLUTE_POS]);
}
