//! Products: by cuBLASLt on NVIDIA GPUs (`cublas.rs`), by Burn's kernels elsewhere.

#[cfg(feature = "cuda")]
use burn::backend::{Device as _, DispatchDevice};
use burn::tensor::{DType, Device, Tensor};
use burn_cubecl::tensor::CubeTensor;

#[cfg(feature = "cuda")]
use crate::on_cuda;
use crate::residual::add;
use crate::tensors::{burn, cube};

/// How products are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Products {
    /// Whether a product of f32 may use ten bits after the point alone, where a GPU has TF32.
    pub tf32: bool,
}

/// The first failure of a product by cuBLASLt in this process but those of memory, which nothing else tells: whoever waits for what products gave must ask.
pub fn failure() -> Option<String> {
    #[cfg(feature = "cuda")]
    return crate::cublas::failure();
    #[cfg(not(feature = "cuda"))]
    None
}

/// How many products on this GPU found no memory in this process, and what the last of them said. The number only grows, so that whoever
/// compares it before and after a pass misses none, and nobody takes another's: what such a product gave must not be used. cubecl's own
/// operations that find none are errors of the read.
pub fn memory_failures(device: &Device) -> (u64, String) {
    #[cfg(feature = "cuda")]
    if let DispatchDevice::Cube(cubecl::Device::Cuda(device)) = device.as_dispatch() {
        return crate::cublas::memory_failures(device.to_id().index_id as usize);
    }
    let _ = device;
    (0, String::new())
}

/// `factor · x · weightᵀ`, and `onto` and a bias where there are some: `x` `[rows, d_in]`, `weight` `[d_out, d_in]` of the same dtype,
/// `onto` `[rows, d_out]` and the bias `[d_out]` in f32, give `[rows, d_out]` in `dtype`: that of the operands or f32, and f32 with `onto`
/// or a bias. Sums are f32. The factor is not the bias's.
pub fn product(
    x: Tensor<2>,
    weight: Tensor<2>,
    onto: Option<Tensor<2>>,
    bias: Option<Tensor<1>>,
    factor: f64,
    dtype: DType,
    products: Products,
) -> Tensor<2> {
    let (x, weight) = (cube(x), cube(weight));
    assert_eq!(x.dtype, weight.dtype, "a product of two dtypes");
    #[cfg(feature = "cuda")]
    if let Some(operands) = on_cuda::operands(&x, products.tf32) {
        let added = [onto.map(cube), bias.map(cube)];
        return burn(on_cuda::product([x, weight], true, added, (factor, dtype, operands)));
    }
    let _ = products;
    let y = multiply::<2>(x, weight, true);
    let y = match onto {
        Some(onto) => add(onto, y, factor),
        None => {
            let y = if factor == 1.0 { y } else { y.mul_scalar(factor) };
            cast(y, if bias.is_some() { DType::F32 } else { dtype })
        }
    };
    match bias {
        Some(bias) => y + bias.unsqueeze(),
        None => y,
    }
}

/// Products one by one, `a` `[heads, m, k]` with `b` `[heads, n, k]` where `is_transposed`, else `[heads, k, n]`: `[heads, m, n]` in
/// `dtype`, that of the operands or f32.
pub fn batched(a: Tensor<3>, b: Tensor<3>, is_transposed: bool, dtype: DType, products: Products) -> Tensor<3> {
    let (a, b) = (cube(a), cube(b));
    assert_eq!(a.dtype, b.dtype, "products of two dtypes");
    #[cfg(feature = "cuda")]
    if let Some(operands) = on_cuda::operands(&a, products.tf32) {
        return burn(on_cuda::product([a, b], is_transposed, [None, None], (1.0, dtype, operands)));
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
