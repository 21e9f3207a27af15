//! With how many bits a decoder of composed operations computes what, and the casts at the edges of
//! operations.
//!
//! Operations take activations in any float dtype and cast them where they need another one, so
//! there is one body of each for every precision. What is not named in [`Precision`] is f32
//! wherever it runs: the residual stream, norms, rotations, softmax, activations, logits. A GPU may
//! take the products among it with ten bits after the point (TF32), unless they are taken in parts.

use burn::tensor::{DType, Tensor};

use crate::Dtype;

/// What is narrower than f32.
///
/// A residual stream in f32 is cheap: its few reads and writes per block are fused with norms and
/// additions, some hundredths of the time that the products take. And dozens of additions round
/// nothing away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Precision {
    /// Matrices, what their products take in, and what comes out of these; sums within are f32.
    pub(crate) products: DType,
    /// Queries, keys and values where one kernel takes a whole prompt; see
    /// [`ops::attention`](super::ops::attention). Keys and values are also kept in it while text is
    /// written.
    pub(crate) attention: DType,
    /// Whether products of f32 are taken in parts that a GPU does not round (`product.rs`), where
    /// products are f32 at all. A processor needs none.
    pub(crate) in_parts: bool,
}

impl Precision {
    /// f32 throughout, as far as one product of the device is. On processors and through wgpu it is: cubecl's kernels
    /// round what they multiply where an interface has TF32, and of GPUs' interfaces CUDA alone does.
    pub(crate) const FULL: Self = Self { products: DType::F32, attention: DType::F32, in_parts: false };

    /// f32 throughout, on devices that round what a product takes.
    pub(crate) const IN_PARTS: Self = Self { in_parts: true, ..Self::FULL };

    /// Products in bf16, attention in f16.
    ///
    /// Burn's attention runs on a GPU's matrix units for f16 alone. Its eleven significant bits are
    /// three more than those of bf16. Queries, keys and values of trained models stay well within
    /// its range; a reading beyond it is not finite, and is refused.
    pub(crate) const HALF: Self = Self { products: DType::BF16, attention: DType::F16, in_parts: false };

    /// What a dtype means on GPUs.
    pub(crate) fn on_gpus(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F32 => Self::IN_PARTS,
            Dtype::Tf32 => Self::FULL,
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
