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

/// `factor · a · b`, onto something and with a bias where there are some: of two matrices, or of those of two lists one by one.
pub(crate) fn product(
    [a, b]: [CubeTensor; 2],
    is_transposed: bool,
    [onto, bias]: [Option<CubeTensor>; 2],
    (factor, dtype, operands): (f64, DType, Operands),
) -> CubeTensor {
    let (a, b) = (rows(a), rows(b));
    let (onto, bias) = (onto.map(rows), bias.map(into_contiguous));
    let mut of_out = a.meta.shape().clone();
    let rank = of_out.num_dims();
    let (m, k) = (of_out[rank - 2], of_out[rank - 1]);
    let n = b.meta.shape()[if is_transposed { rank - 2 } else { rank - 1 }];
    of_out[rank - 1] = n;
    let (batches, strides) = match rank {
        2 => (1, [0; 4]),
        _ => (of_out[0], [a.meta.strides()[0], b.meta.strides()[0], m * n, m * n]),
    };
    let row = |x: &CubeTensor| x.meta.strides()[rank - 2].max(x.meta.shape()[rank - 1]);
    let out = empty(&a, of_out, if onto.is_some() || bias.is_some() { DType::F32 } else { dtype });
    let shape = Shape {
        batches,
        m,
        k,
        n,
        is_transposed,
        rows: [row(&a), row(&b), onto.as_ref().map_or(n, row), n],
        strides,
        operands,
        is_wide: out.dtype == DType::F32 && a.dtype != DType::F32,
        is_added: onto.is_some(),
        is_biased: bias.is_some(),
    };
    if batches * m * n > 0 {
        enqueue(shape, factor, [a, b], [onto, bias], &out);
    }
    out
}
