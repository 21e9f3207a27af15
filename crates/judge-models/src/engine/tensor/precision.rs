//! With how many bits a decoder of composed operations computes what.

use burn::tensor::{DType, Tensor};

use crate::Dtype;

/// What is narrower than f32. All else is f32 wherever it runs: the residual stream, norms, rotation, softmax, activations, logits. A card
/// may take the products among it with ten bits after the point (TF32).
///
/// A residual stream in f32 is cheap: its few reads and writes per block are fused with norms and additions, some hundredths of the
/// time that the products take, and dozens of additions round nothing away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Precision {
    /// Matrices, what their products take in, and what comes out of these; sums within are f32.
    pub(crate) products: DType,
    /// Queries, keys and values where a kernel made for it takes a whole prompt; see [`ops::attention`](super::ops::attention).
    /// Also what keys and values are kept in while text is written.
    pub(crate) attention: DType,
}

impl Precision {
    /// f32 throughout.
    pub(crate) const FULL: Self = Self { products: DType::F32, attention: DType::F32 };

    /// bf16 products. Burn's attention runs on a card's matrix units for f16 alone, whose eleven bits are also three more than
    /// those of bf16; its range is what queries, keys and values of trained models stay well within, and a reading beyond it
    /// is not finite, which is said.
    pub(crate) const HALF: Self = Self { products: DType::BF16, attention: DType::F16 };

    /// The dtype of the weights.
    pub(crate) fn dtype(self) -> Dtype {
        if self.products == DType::BF16 { Dtype::Bf16 } else { Dtype::F32 }
    }
}

/// A tensor in another dtype; itself, if it is in it already. No operation may be given two dtypes: a device's kernel takes the
/// second for the first without a word.
pub(crate) fn cast<const D: usize>(x: Tensor<D>, dtype: DType) -> Tensor<D> {
    if x.dtype() == dtype { x } else { x.cast(dtype) }
}

/// A tensor in f32.
pub(crate) fn widen<const D: usize>(x: Tensor<D>) -> Tensor<D> {
    cast(x, DType::F32)
}
