//! Products: by cuBLASLt on NVIDIA GPUs (`cublas.rs`), by Burn's kernels elsewhere.

#[cfg(feature = "cuda")]
use burn::backend::{Device as _, DispatchDevice};
use burn::tensor::{DType, Device, Tensor};

#[cfg(feature = "cuda")]
use crate::on_cuda;
use crate::residual::add;
use crate::tensors::{burn, cube, joined};

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
        return burn(on_cuda::product([x, weight], added, (factor, dtype, operands)));
    }
    let _ = products;
    let y = burn::<2>(x).matmul(burn::<2>(weight).transpose());
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

/// `a` `[heads, m, k]` by each of `parts`, side by side: `[heads, m, n of all parts]` in `dtype`, that of the operands or f32. A part is
/// `[heads, n, k]`, or has fewer heads: each is for as many successive heads of `a` then, whose rows are the rows of one product.
pub fn side_by_side(a: Tensor<3>, parts: &[Tensor<3>], dtype: DType, products: Products) -> Tensor<3> {
    let [heads, m, k] = a.dims();
    #[cfg(feature = "cuda")]
    if let Some(operands) = on_cuda::operands(&cube(a.clone()), products.tf32) {
        return burn(on_cuda::side_by_side(cube(a), parts.iter().cloned().map(cube).collect(), dtype, operands));
    }
    let _ = products;
    let by = |part: &Tensor<3>| {
        let [lists, n, _] = part.dims();
        let rows = a.clone().reshape([lists, heads * m / lists, k]);
        rows.matmul(part.clone().swap_dims(1, 2)).reshape([heads, m, n])
    };
    cast(joined(parts.iter().map(by).collect(), 2), dtype)
}

/// The sum of products of columns of `a` `[heads, m, k of all parts]` with each of `parts`, of which there is at least one, `[heads, k, n]`
/// or with fewer heads as [`side_by_side`] takes them: `[heads, m, n]` in the operands' dtype.
pub fn summed(a: Tensor<3>, parts: &[Tensor<3>], products: Products) -> Tensor<3> {
    let [heads, m, _] = a.dims();
    #[cfg(feature = "cuda")]
    if let Some(operands) = on_cuda::operands(&cube(a.clone()), products.tf32) {
        return burn(on_cuda::summed(cube(a), parts.iter().cloned().map(cube).collect(), operands));
    }
    let _ = products;
    let mut first = 0;
    let by = |part: &Tensor<3>| {
        let [lists, k, n] = part.dims();
        let columns = a.clone().narrow(2, first, k).reshape([lists, heads * m / lists, k]);
        first += k;
        columns.matmul(part.clone()).reshape([heads, m, n])
    };
    let mixed: Vec<Tensor<3>> = parts.iter().map(by).collect();
    mixed.into_iter().reduce(|sum, mixed| sum + mixed).expect("at least one part")
}

fn cast<const D: usize>(x: Tensor<D>, dtype: DType) -> Tensor<D> {
    if x.dtype() == dtype { x } else { x.cast(dtype) }
}
