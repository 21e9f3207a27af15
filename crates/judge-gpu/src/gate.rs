//! The activation of an MLP, with or without a gate.

use burn::backend::cubecl::dtype_to_storage_type;
use burn::tensor::{DType, Tensor};
use cubecl::ir::ElemType;
use cubecl::prelude::*;
use judge_kernels::functions::Activation;

use crate::tensors::{burn, contiguous, empty, spread};

/// The activation's name, for which a kernel is compiled. Its numbers come with each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Function {
    Silu,
    Gelu,
    GeluTanh,
    Relu,
    ReluSquared,
    ClampedSwish,
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    function: Function,
    /// Numbers of a row of the result.
    width: usize,
    /// Whether a row is the gate and up behind it.
    is_gated: bool,
}

/// `f(gate) · up` of rows `[batch, seq, 2 · width]`, the gate first, or `f(x)` of rows `[batch, seq, width]`: `[batch, seq, width]`
/// in `dtype`, computed in f32.
pub fn gate(x: Tensor<3>, width: usize, activation: Activation, dtype: DType) -> Tensor<3> {
    let [batch, seq, columns] = x.dims();
    let (function, alpha, limit) = match activation {
        Activation::Silu => (Function::Silu, 0.0, 0.0),
        Activation::Gelu => (Function::Gelu, 0.0, 0.0),
        Activation::GeluTanh => (Function::GeluTanh, 0.0, 0.0),
        Activation::Relu => (Function::Relu, 0.0, 0.0),
        Activation::ReluSquared => (Function::ReluSquared, 0.0, 0.0),
        Activation::ClampedSwish { alpha, limit } => (Function::ClampedSwish, alpha, limit),
    };
    let x = contiguous(x);
    let out = empty(&x, [batch, seq, width], dtype);
    let numbers = batch * seq * width;
    if numbers == 0 {
        return burn(out);
    }
    let (count, dim) = spread(&x.client, numbers);
    let client = x.client.clone();
    let dtypes = [x.dtype, dtype].map(dtype_to_storage_type);
    // SAFETY: units beyond the last number end at once; the others read one or two numbers of their row.
    unsafe {
        gate_rows::launch_unchecked(
            &client,
            count,
            dim,
            x.into_buffer_arg(),
            out.clone().into_buffer_arg(),
            numbers as u32,
            alpha,
            limit,
            Kind { function, width, is_gated: columns != width },
            dtypes,
        );
    }
    burn(out)
}

#[cube]
fn sigmoid(x: f32) -> f32 {
    1.0f32 / (1.0f32 + (-x).exp())
}

#[allow(unstable_name_collisions, reason = "`erf` is cubecl's inside of a kernel")]
#[cube(launch_unchecked)]
fn gate_rows<I: Float, O: Float>(
    x: &[I],
    out: &mut [O],
    numbers: u32,
    alpha: f32,
    limit: f32,
    #[comptime] kind: Kind,
    #[define(I, O)] _dtypes: [ElemType; 2],
) {
    let place = ABSOLUTE_POS;
    if place >= numbers as usize {
        terminate!();
    }
    let width = comptime!(kind.width);
    let mut from = place;
    if comptime!(kind.is_gated) {
        from = place + (place / width) * width;
    }
    let mut g = f32::cast_from(x[from]);
    let made = match comptime!(kind.function) {
        Function::Silu => g * sigmoid(g),
        Function::Gelu => 0.5f32 * g * (1.0f32 + (g * 0.707_106_77f32).erf()),
        Function::GeluTanh => {
            let inner = 0.797_884_6f32 * (g + 0.044_715f32 * g * g * g);
            // 1 + tanh(y) = 2 / (1 + exp(-2 y))
            g * sigmoid(2.0f32 * inner)
        }
        Function::Relu => {
            if g < 0.0f32 {
                g = 0.0f32.runtime();
            }
            g
        }
        Function::ReluSquared => {
            if g < 0.0f32 {
                g = 0.0f32.runtime();
            }
            g * g
        }
        Function::ClampedSwish => {
            if g > limit {
                g = limit;
            }
            g * sigmoid(alpha * g)
        }
    };
    if comptime!(kind.is_gated) {
        let mut up = f32::cast_from(x[from + width]);
        if comptime!(matches!(kind.function, Function::ClampedSwish)) {
            up = clamp_nan(up, -limit, limit) + 1.0f32;
        }
        out[place] = O::cast_from(made * up);
    } else {
        out[place] = O::cast_from(made);
    }
}
