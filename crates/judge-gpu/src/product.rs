//! Products: by cuBLASLt on NVIDIA GPUs (`cublas.rs`), by Burn's kernels elsewhere.

use burn::tensor::{DType, Tensor};
use burn_cubecl::tensor::CubeTensor;

use crate::residual::add;
use crate::tensors::{burn, cube};

/// How products are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Products {
    /// Whether a product of f32 may use ten bits after the point alone, where a GPU has TF32.
    pub tf32: bool,
}

/// The first failure of a product by cuBLASLt in this process, which nothing else tells: whoever waits for what products gave must ask.
pub fn failure() -> Option<String> {
    #[cfg(feature = "cuda")]
    return crate::cublas::failure();
    #[cfg(not(feature = "cuda"))]
    None
}

/// `factor · x · weightᵀ`, and `onto` where there is one: `x` `[rows, d_in]`, `weight` `[d_out, d_in]` of the same dtype, `onto`
/// `[rows, d_out]` in f32, give `[rows, d_out]` in `dtype`: that of the operands or f32, and f32 with `onto`. Sums are f32.
pub fn product(
    x: Tensor<2>,
    weight: Tensor<2>,
    onto: Option<Tensor<2>>,
    factor: f64,
    dtype: DType,
    products: Products,
) -> Tensor<2> {
    let (x, weight) = (cube(x), cube(weight));
    assert_eq!(x.dtype, weight.dtype, "a product of two dtypes");
    #[cfg(feature = "cuda")]
    if let Some(operands) = on_cuda::operands(&x, products) {
        return burn(on_cuda::product(x, weight, onto.map(cube), (factor, dtype, operands)));
    }
    let _ = products;
    let y = multiply::<2>(x, weight, true);
    match onto {
        Some(onto) => add(onto, y, factor),
        None => cast(if factor == 1.0 { y } else { y.mul_scalar(factor) }, dtype),
    }
}

/// Products one by one, `a` `[heads, m, k]` with `b` `[heads, n, k]` where `is_transposed`, else `[heads, k, n]`: `[heads, m, n]` in
/// `dtype`, that of the operands or f32.
pub fn batched(a: Tensor<3>, b: Tensor<3>, is_transposed: bool, dtype: DType, products: Products) -> Tensor<3> {
    let (a, b) = (cube(a), cube(b));
    assert_eq!(a.dtype, b.dtype, "products of two dtypes");
    #[cfg(feature = "cuda")]
    if let Some(operands) = on_cuda::operands(&a, products) {
        return burn(on_cuda::batched(a, b, is_transposed, (dtype, operands)));
    }
    let _ = products;
    cast(multiply::<3>(a, b, is_transposed), dtype)
}

/// A product by Burn's kernels.
fn multiply<const D: usize>(a: CubeTensor, b: CubeTensor, is_transposed: bool) -> Tensor<D> {
    let (a, b) = (burn::<D>(a), burn::<D>(b));
    a.matmul(if is_transposed { b.swap_dims(D - 2, D - 1) } else { b })
}

fn cast<const D: usize>(x: Tensor<D>, dtype: DType) -> Tensor<D> {
    if x.dtype() == dtype { x } else { x.cast(dtype) }
}

#[cfg(feature = "cuda")]
mod on_cuda {
    use burn::backend::Device as _;
    use burn_cubecl::kernel::into_contiguous;

    use super::*;
    use crate::cublas::{self, Operands, Shape};
    use crate::tensors::empty;

    /// What cuBLASLt takes `x` for; `None` elsewhere than on an NVIDIA GPU.
    pub(super) fn operands(x: &CubeTensor, products: Products) -> Option<Operands> {
        let cubecl::Device::Cuda(_) = x.device else { return None };
        cublas::operands(x.dtype, products.tf32)
    }

    /// Queues products onto `c`, or without one, into `d`.
    fn enqueue(shape: Shape, factor: f64, [a, b]: [CubeTensor; 2], c: Option<CubeTensor>, d: &CubeTensor) {
        let cubecl::Device::Cuda(device) = &d.device else { return };
        let c = c.map_or_else(|| d.handle.clone(), |c| c.handle);
        cublas::enqueue(device.to_id(), shape, factor as f32, [a.handle, b.handle, c, d.handle.clone()]);
    }

    /// The rows of a matrix as they lie, copied where a row's numbers are not side by side.
    fn rows(x: CubeTensor) -> CubeTensor {
        let rank = x.meta.shape().num_dims();
        let (shape, strides) = (x.meta.shape(), x.meta.strides());
        let is_row = strides[rank - 1] == 1 || shape[rank - 1] == 1;
        if is_row && strides[rank - 2] >= shape[rank - 1] { x } else { into_contiguous(x) }
    }

    pub(super) fn product(
        x: CubeTensor,
        weight: CubeTensor,
        onto: Option<CubeTensor>,
        (factor, dtype, operands): (f64, DType, Operands),
    ) -> CubeTensor {
        let (x, weight) = (rows(x), rows(weight));
        let ([m, k], [n, _]) =
            ([x.meta.shape()[0], x.meta.shape()[1]], [weight.meta.shape()[0], weight.meta.shape()[1]]);
        let onto = onto.map(rows);
        let of_onto = onto.as_ref().map_or(n, |onto| onto.meta.strides()[0].max(n));
        let out = empty(&x, [m, n], if onto.is_some() { DType::F32 } else { dtype });
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
        };
        if m * n > 0 {
            enqueue(shape, factor, [x, weight], onto, &out);
        }
        out
    }

    pub(super) fn batched(
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
        };
        if heads * m * n > 0 {
            enqueue(shape, 1.0, [a, b], None, &out);
        }
        out
    }
}
