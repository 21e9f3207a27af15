//! Burn's tensors to cubecl's and back.

use burn::backend::DispatchDevice;
use burn::tensor::kind::Basic;
use burn::tensor::{BackendPrimitive, DType, Device, Shape, Tensor};
use burn_cubecl::CubeBackend;
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
use burn_cubecl::tensor::CubeTensor;
use cubecl::calculate_cube_count_elemwise;
use cubecl::client::Client;
use cubecl::prelude::{CubeCount, CubeDim};

/// Whether what is on this device can be given to this crate.
pub fn runs_on(device: &Device) -> bool {
    matches!(device.as_dispatch(), DispatchDevice::Cube(_))
}

/// The tensor as cubecl has it.
///
/// # Panics
/// If it is not on a device of cubecl's.
pub(crate) fn cube<const D: usize, K>(tensor: Tensor<D, K>) -> CubeTensor
where
    K: Basic + BackendPrimitive<CubeBackend, Primitive = CubeTensor>,
{
    match tensor.try_into_primitive::<CubeBackend>() {
        Ok(tensor) => tensor,
        Err(error) => panic!("a tensor that is not on a GPU: {error:?}"),
    }
}

/// The tensor with its numbers in row-major order, without gaps.
pub(crate) fn contiguous<const D: usize, K>(tensor: Tensor<D, K>) -> CubeTensor
where
    K: Basic + BackendPrimitive<CubeBackend, Primitive = CubeTensor>,
{
    into_contiguous(cube(tensor))
}

/// Burn's view of the tensor.
pub(crate) fn burn<const D: usize>(tensor: CubeTensor) -> Tensor<D> {
    Tensor::from_primitive::<CubeBackend>(tensor)
}

/// Memory for a tensor beside another one, with nothing in it yet, in row-major order without gaps.
pub(crate) fn empty(beside: &CubeTensor, shape: impl Into<Shape>, dtype: DType) -> CubeTensor {
    empty_device_contiguous_dtype(beside.client.clone(), beside.device.clone(), shape.into(), dtype)
}

/// The cubes and their units for an operation that has a unit for each number.
pub(crate) fn spread(client: &Client, numbers: usize) -> (CubeCount, CubeDim) {
    let dim = CubeDim::new(client, numbers);
    (calculate_cube_count_elemwise(client, numbers, dim), dim)
}
