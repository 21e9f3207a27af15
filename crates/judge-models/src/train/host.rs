//! Numbers between the host and a device.

use burn::tensor::{Int, Tensor, TensorData};
use judge_core::request::TokenId;

/// Token ids as a tensor of the given shape, which must have as many places.
pub(super) fn token_tensor<const D: usize>(
    ids: impl Iterator<Item = TokenId>,
    shape: [usize; D],
    device: &burn::tensor::Device,
) -> Tensor<D, Int> {
    Tensor::from_data(token_data(ids, shape), device)
}

/// Token ids on the host in the given shape, which must have as many places.
pub(super) fn token_data<const D: usize>(ids: impl Iterator<Item = TokenId>, shape: [usize; D]) -> TensorData {
    TensorData::new(ids.map(i64::from).collect::<Vec<_>>(), shape)
}

/// A float tensor's values, row-major.
pub(super) fn host_values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    // The CPU device's only float type here is f32; `iter` converts were it another.
    tensor.into_data().convert::<f32>().iter::<f32>().collect()
}
