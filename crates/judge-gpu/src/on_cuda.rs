//! Products of tensors on NVIDIA GPUs: their shapes and places as cuBLASLt takes them.

use burn::backend::Device as _;
use burn::tensor::DType;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use crate::cublas::{self, Operands, Shape};
use crate::tensors::{empty, view};

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

/// Queues products of matrices one by one, `[lists, rows, columns]` each: `factor · a · b` into `d`, onto `c` and with a bias where there
/// are some.
fn enqueue(
    [a, b]: [CubeTensor; 2],
    is_transposed: bool,
    [c, bias]: [Option<CubeTensor>; 2],
    (factor, operands): (f64, Operands),
    d: CubeTensor,
) {
    let cubecl::Device::Cuda(device) = d.device.clone() else { return };
    assert_eq!(a.dtype, b.dtype, "products of two dtypes");
    let (is_added, is_biased) = (c.is_some(), bias.is_some());
    let [c, bias] = [c, bias].map(|x| x.unwrap_or_else(|| d.clone()));
    let sides = [&a, &b, &c, &d].map(|x| &x.meta);
    let of_d = d.meta.shape();
    let shape = Shape {
        batches: of_d[0],
        m: of_d[1],
        k: a.meta.shape()[2],
        n: of_d[2],
        is_transposed,
        rows: sides.map(|meta| meta.strides()[1].max(meta.shape()[2])),
        strides: sides.map(|meta| meta.strides()[0]),
        operands,
        is_wide: d.dtype == DType::F32 && a.dtype != DType::F32,
        is_added,
        is_biased,
    };
    if shape.batches * shape.m * shape.n > 0 {
        cublas::enqueue(device.to_id(), shape, factor as f32, [a, b, c, d, bias].map(|x| x.handle));
    }
}

/// `x` as cuBLASLt can read it, copied where a row's numbers are not side by side, or where rows lie over one another.
fn rows(x: CubeTensor) -> CubeTensor {
    let rank = x.meta.shape().num_dims();
    let (shape, strides) = (x.meta.shape(), x.meta.strides());
    let is_row = strides[rank - 1] == 1 || shape[rank - 1] == 1;
    if is_row && strides[rank - 2] >= shape[rank - 1] { x } else { into_contiguous(x) }
}

/// A matrix as a list of one.
fn list(x: CubeTensor) -> CubeTensor {
    let x = rows(x);
    let (shape, strides) = (x.meta.shape(), x.meta.strides());
    view(&x, 0, [1, shape[0], shape[1]], [0, strides[0], 1])
}

/// `factor · x · weightᵀ` of matrices, onto something and with a bias where there are some.
pub(crate) fn product(
    [x, weight]: [CubeTensor; 2],
    [onto, bias]: [Option<CubeTensor>; 2],
    (factor, dtype, operands): (f64, DType, Operands),
) -> CubeTensor {
    let dtype = if onto.is_some() || bias.is_some() { DType::F32 } else { dtype };
    let out = empty(&x, [x.meta.shape()[0], weight.meta.shape()[0]], dtype);
    let added = [onto.map(list), bias.map(into_contiguous)];
    enqueue([list(x), list(weight)], true, added, (factor, operands), list(out.clone()));
    out
}

/// Columns of `x` `[heads, rows, columns]` without gaps, from one on, with the rows of successive heads as those of one matrix: `[lists,
/// heads · rows / lists, width]`, as they lie.
fn columns(x: &CubeTensor, lists: usize, first: usize, width: usize) -> CubeTensor {
    let (shape, strides) = (x.meta.shape(), x.meta.strides());
    let rows = shape[0] * shape[1] / lists;
    view(x, first, [lists, rows, width], [rows * strides[1], strides[1], 1])
}

/// See [`side_by_side`](crate::side_by_side).
pub(crate) fn side_by_side(a: CubeTensor, parts: Vec<CubeTensor>, dtype: DType, operands: Operands) -> CubeTensor {
    let a = into_contiguous(a);
    let [heads, m, k] = a.meta.shape().dims();
    let all = parts.iter().map(|part| part.meta.shape()[1]).sum();
    let out = empty(&a, [heads, m, all], dtype);
    let mut first = 0;
    for part in parts {
        let [lists, n, _] = part.meta.shape().dims();
        let into = columns(&out, lists, first, n);
        enqueue([columns(&a, lists, 0, k), rows(part)], true, [None, None], (1.0, operands), into);
        first += n;
    }
    out
}

/// See [`summed`](crate::summed).
pub(crate) fn summed(a: CubeTensor, parts: Vec<CubeTensor>, operands: Operands) -> CubeTensor {
    let a = into_contiguous(a);
    let [heads, m, _] = a.meta.shape().dims();
    let out = empty(&a, [heads, m, parts[0].meta.shape()[2]], a.dtype);
    let mut first = 0;
    for part in parts {
        let [lists, k, n] = part.meta.shape().dims();
        let into = columns(&out, lists, 0, n);
        let onto = (first > 0).then(|| into.clone());
        enqueue([columns(&a, lists, first, k), rows(part)], false, [onto, None], (1.0, operands), into);
        first += k;
    }
    out
}
