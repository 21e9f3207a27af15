//! With how many bits a decoder of composed operations computes what, and the casts at the edges of
//! operations.
//!
//! Operations take activations in any float dtype and cast them where they need another one, so
//! there is one body of each for every precision. What is not named in [`Precision`] is f32
//! wherever it runs: the residual stream, norms, rotations, softmax, activations, logits.

use burn::tensor::{DType, Tensor};

use crate::Dtype;

/// What is narrower than f32.
///
/// A residual stream in f32 costs little: it is read and written a few times in a block. And dozens of
/// additions round nothing away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Precision {
    /// Matrices, what their products take in, and what comes out of these; queries, keys and values,
    /// also those that are kept while text is written. Sums within products are f32, and so are scores.
    pub(crate) products: DType,
    /// Whether an NVIDIA GPU may take products of f32 with ten bits after the point (TF32).
    pub(crate) tf32: bool,
}

impl Precision {
    /// f32 throughout.
    pub(crate) const FULL: Self = Self { products: DType::F32, tf32: false };

    /// Products in bf16.
    pub(crate) const HALF: Self = Self { products: DType::BF16, tf32: false };

    /// What a dtype means on GPUs.
    pub(crate) fn on_gpus(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F32 => Self::FULL,
            Dtype::Tf32 => Self { tf32: true, ..Self::FULL },
            Dtype::Bf16 => Self::HALF,
        }
    }

    /// The dtype of the weights, by which factors such as Gemma's embedding scale are rounded.
    pub(crate) fn dtype(self) -> Dtype {
        if self.products == DType::BF16 { Dtype::Bf16 } else { Dtype::F32 }
    }
}

/// A tensor in another dtype, or the tensor itself if it is in it already.
///
/// No operation may be given two dtypes: a GPU's kernel takes the second for the first, without an
/// error.
pub(crate) fn cast<const D: usize>(x: Tensor<D>, dtype: DType) -> Tensor<D> {
    if x.dtype() == dtype { x } else { x.cast(dtype) }
}

/// Numbers in f32 as sums of three in bf16, exactly but for those below 2⁻¹¹⁰ or so: each has eight bits of the 24. What is no number stays none.
/// The rows of the three lie one below the other, `[rows, width]` to `[3 * rows, width]`.
#[cfg_attr(not(any(test, feature = "cuda")), allow(dead_code, reason = "elsewhere than on NVIDIA GPUs all is f32"))]
pub(super) fn parts(x: Tensor<2>) -> Tensor<2> {
    let first = x.clone().cast(DType::BF16);
    let rest = x - widen(first.clone());
    let second = rest.clone().cast(DType::BF16);
    let third = (rest - widen(second.clone())).cast(DType::BF16);
    Tensor::cat(vec![first, second, third], 0)
}

/// The sum of the three blocks of rows, `[3 * rows, width]` to `[rows, width]`, the small ones first.
#[cfg_attr(not(any(test, feature = "cuda")), allow(dead_code, reason = "elsewhere than on NVIDIA GPUs all is f32"))]
pub(super) fn joined(x: Tensor<2>) -> Tensor<2> {
    let [rows, _] = x.dims();
    let part = |number: usize| x.clone().narrow(0, number * rows / 3, rows / 3);
    part(0) + (part(1) + part(2))
}

/// A tensor in f32, exactly.
pub(crate) fn widen<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    cast(x, DType::F32)
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;

    #[test]
    fn three_parts_are_the_number_to_the_last_bit() {
        let numbers: Vec<f32> = (0..4096_u32)
            .map(|i| {
                let bits = i.wrapping_mul(2_654_435_761);
                f32::from_bits((bits & 0x807f_ffff) | (100 + bits % 50) << 23)
            })
            .chain([0.0, 1.0, -3.5, f32::MIN_POSITIVE, 16_777_215.0])
            .collect();
        let count = numbers.len();
        let x = Tensor::<1>::from_data(&numbers[..], &Device::flex()).reshape([1, count]);
        let parts = parts(x);
        assert_eq!((parts.dims(), parts.dtype()), ([3, count], DType::BF16));
        let found = joined(widen(parts)).into_data().try_to_vec::<f32>().unwrap();
        assert_eq!(found, numbers);
        for odd in [f32::NAN, f32::INFINITY] {
            let x = Tensor::<2>::from_data([[odd, 1.0]], &Device::flex());
            let found = joined(widen(super::parts(x))).into_data().try_to_vec::<f32>().unwrap();
            assert!(!found[0].is_finite() && found[1] == 1.0, "{found:?}");
        }
    }
}
