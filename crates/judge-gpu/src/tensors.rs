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
use cubecl::zspace::Strides;
use cubecl::zspace::metadata::Metadata;

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

/// Joins tensors along an axis; one alone stays as it is.
pub(crate) fn joined(mut parts: Vec<Tensor<3>>, axis: usize) -> Tensor<3> {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => Tensor::cat(parts.into_iter().chain(last).collect(), axis),
    }
}

/// Part of a tensor's memory: from its number `start` on, numbers of this shape so far apart.
pub(crate) fn view(x: &CubeTensor, start: usize, shape: [usize; 3], strides: [usize; 3]) -> CubeTensor {
    let handle = x.handle.clone().offset_start((start * x.dtype.size()) as u64);
    let meta = Metadata::new(Shape::from(shape), Strides::new(&strides));
    CubeTensor::new(x.client.clone(), handle, meta, x.device.clone(), x.dtype)
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
