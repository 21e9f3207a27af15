//! Measures how fast matrix products are where a model would run: the ceiling that
//! `examples/throughput` compares a forward pass with.
//!
//! The CPU is measured with the packed path's own products (`rate.rs` of `judge-kernels`), a GPU with
//! Burn's (`tensor/rate.rs`).

use crate::{Device, Error, Kernel};

/// Operations per second that products in bf16 (in f32 through wgpu) reach on a device, the best of some tries. A
/// multiply-add counts as two operations.
///
/// | device | product | by |
/// |---|---|---|
/// | CPU | 1024 rows by 3072 by 3072 | packed weights, on rayon's threads |
/// | GPU | 8192 by 8192 by 8192 | Burn |
///
/// On the CPU no forward pass is faster than its weights' products at this rate. On a GPU one may
/// be: other shapes may have a faster kernel, and products of models are cuBLASLt's where it is.
///
/// `kernel` is for the CPU and ignored on a GPU; `None` is the fastest that the processor has.
///
/// # Errors
/// [`Error::NoKernel`] if the processor lacks the kernel; [`Error::NotInBuild`], [`Error::NoAdapter`] or [`Error::Cuda`] if
/// the GPU cannot be used, [`Error::Device`] if it fails.
pub fn product_rate(device: Device, kernel: Option<Kernel>) -> Result<f64, Error> {
    match device.to_burn()? {
        None => Ok(judge_kernels::rate::product_rate(kernel)?),
        #[cfg(any(test, feature = "tensor"))]
        Some(gpu) => super::tensor::product_rate(&gpu, device.has_f32_alone()),
        #[cfg(not(any(test, feature = "tensor")))]
        Some(none) => match none {},
    }
}
