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

/// A tensor in f32, exactly.
pub(crate) fn widen<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    cast(x, DType::F32)
}
