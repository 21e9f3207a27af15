//! Products of tensors on NVIDIA GPUs: their shapes and places as cuBLASLt takes them.

use burn::backend::Device as _;
use burn::tensor::DType;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use crate::cublas::{self, Operands, Shape};
use crate::tensors::empty;

/// What cuBLASLt takes `x` for; `None` elsewhere than on an NVIDIA GPU.
pub(crate) fn operands(x: &CubeTensor, tf32: bool) -> Option<Operands> {
    let cubecl::Device::Cuda(_) = x.device else { return None };
    match x.dtype {
        DType::BF16 => Some(Operands::Bf16),
        DType::F16 => Some(Operands::F16),
        DType::F32 if tf32 => Some(Operands::Tf32),
        DType::F32 => Some(Operands::F32),
        _ => None,
    }
}

/// Queues products onto `c`, or without one, into `d`, with a bias if there is one.
fn enqueue(shape: Shape, factor: f64, [a, b]: [CubeTensor; 2], [c, bias]: [Option<CubeTensor>; 2], d: &CubeTensor) {
    let cubecl::Device::Cuda(device) = &d.device else { return };
    let [c, bias] = [c, bias].map(|x| x.map_or_else(|| d.handle.clone(), |x| x.handle));
    cublas::enqueue(device.to_id(), shape, factor as f32, [a.handle, b.handle, c, d.handle.clone(), bias]);
}

/// The rows of a matrix as they lie, copied where a row's numbers are not side by side.
fn rows(x: CubeTensor) -> CubeTensor {
    let rank = x.meta.shape().num_dims();
    let (shape, strides) = (x.meta.shape(), x.meta.strides());
    let is_row = strides[rank - 1] == 1 || shape[rank - 1] == 1;
    if is_row && strides[rank - 2] >= shape[rank - 1] { x } else { into_contiguous(x) }
}

pub(crate) fn product(
    x: CubeTensor,
    weight: CubeTensor,
    [onto, bias]: [Option<CubeTensor>; 2],
    (factor, dtype, operands): (f64, DType, Operands),
) -> CubeTensor {
    let (x, weight) = (rows(x), rows(weight));
    let ([m, k], [n, _]) = ([x.meta.shape()[0], x.meta.shape()[1]], [weight.meta.shape()[0], weight.meta.shape()[1]]);
    let (onto, bias) = (onto.map(rows), bias.map(into_contiguous));
    let of_onto = onto.as_ref().map_or(n, |onto| onto.meta.strides()[0].max(n));
    let out = empty(&x, [m, n], if onto.is_some() || bias.is_some() { DType::F32 } else { dtype });
    let shape = Shape {
        batches: 1,
        m,
        k,
        n,
        is_transposed: true,
        rows: [x.meta.strides()[0].max(k), weight.meta.strides()[0].max(k), of_onto, n],
        strides: [0; 4],
        operands,
        is_wide: out.dtype == DType::F32 && x.dtype != DType::F32,
        is_added: onto.is_some(),
        is_biased: bias.is_some(),
    };
    if m * n > 0 {
        enqueue(shape, factor, [x, weight], [onto, bias], &out);
    }
    out
}

pub(crate) fn batched(
    a: CubeTensor,
    b: CubeTensor,
    is_transposed: bool,
    (dtype, operands): (DType, Operands),
) -> CubeTensor {
    let (a, b) = (rows(a), rows(b));
    let size = |x: &CubeTensor, axis: usize| x.meta.shape()[axis];
    let (heads, m, k) = (size(&a, 0), size(&a, 1), size(&a, 2));
    let n = size(&b, if is_transposed { 1 } else { 2 });
    let out = empty(&a, [heads, m, n], dtype);
    let shape = Shape {
        batches: heads,
        m,
        k,
        n,
        is_transposed,
        rows: [a.meta.strides()[1].max(k), b.meta.strides()[1].max(if is_transposed { k } else { n }), n, n],
        strides: [a.meta.strides()[0], b.meta.strides()[0], m * n, m * n],
        operands,
        is_wide: dtype == DType::F32 && a.dtype != DType::F32,
        is_added: false,
        is_biased: false,
    };
    if heads * m * n > 0 {
        enqueue(shape, 1.0, [a, b], [None, None], &out);
    }
    out
}
