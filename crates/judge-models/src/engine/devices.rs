//! What this machine and this build have of the devices that `LoadOptions` names. Builds without GPUs and training lack Burn.
//!
//! `Model::load` calls [`to_burn`] before it opens the folder, so that a GPU that cannot be used is known before anything is read.
//! What an NVIDIA GPU needs on this machine is looked for in `tensor/cuda.rs`.

use crate::device::{Device, DevicesProblem};
use crate::error::Error;

/// Burn's device.
#[cfg(any(test, feature = "tensor"))]
pub(crate) type BurnDevice = burn::tensor::Device;

/// None: this build has no engine on Burn.
#[cfg(not(any(test, feature = "tensor")))]
pub(crate) type BurnDevice = std::convert::Infallible;

impl Device {
    /// Makes sure that this build and this machine have the device, as loading a model there would. Nothing runs on it.
    ///
    /// # Errors
    /// [`Error::NotInBuild`] if this build lacks the device's feature, [`Error::Cuda`] if this machine
    /// lacks what a GPU needs, [`Error::NoAdapter`] if there is no such GPU.
    pub fn check(self) -> Result<(), Error> {
        self.to_burn().map(|_| ())
    }

    /// Bytes of memory that a GPU has in all, used or not; `None` where it is not known: on the processor, and through wgpu.
    ///
    /// # Errors
    /// [`Error::Cuda`] if the driver does not say it. [`check`](Self::check) must have found the device.
    pub fn memory(self) -> Result<Option<u64>, Error> {
        match self {
            #[cfg(feature = "cuda")]
            Self::Cuda(index) => {
                let problem =
                    |code| Error::Cuda { device: self, problem: crate::device::CudaProblem::NoMemorySize { code } };
                judge_gpu::cuda::memory(index).map(Some).map_err(problem)
            }
            _ => Ok(None),
        }
    }

    /// Burn's device for this place; `None` for the processor, whose engine is our own.
    ///
    /// # Errors
    /// [`Error::NotInBuild`] if this build lacks the device's feature, [`Error::Cuda`] if this machine
    /// lacks what a GPU needs, [`Error::NoAdapter`] if there is no such GPU.
    pub(crate) fn to_burn(self) -> Result<Option<BurnDevice>, Error> {
        match self {
            Self::Cpu => Ok(None),
            #[cfg(feature = "cuda")]
            Self::Cuda(index) => {
                let problem = |problem| Error::Cuda { device: self, problem };
                crate::engine::tensor::runtime::configure();
                crate::engine::tensor::cuda::Machine::probe().check(index).map_err(problem)?;
                Ok(Some(burn::tensor::Device::cuda(index)))
            }
            #[cfg(feature = "wgpu")]
            Self::Wgpu(index) => {
                crate::engine::tensor::runtime::configure();
                let mut adapters = burn::tensor::Device::enumerate(burn::tensor::DeviceType::Wgpu).into_vec();
                if index >= adapters.len() {
                    return Err(Error::NoAdapter { device: self, found: adapters.len() });
                }
                Ok(Some(adapters.swap_remove(index)))
            }
            #[allow(unreachable_patterns, reason = "a build may have all features")]
            _ => Err(Error::NotInBuild { device: self }),
        }
    }
}

/// Memory in bytes of the smallest of a model's GPUs, used or not; `None` where it is not known: on
/// the processor, and through wgpu.
///
/// # Errors
/// [`Error::Cuda`] if the driver does not say it.
#[cfg(any(test, feature = "tensor"))]
pub(crate) fn least_memory(devices: &[Device]) -> Result<Option<u64>, Error> {
    let all = devices.iter().map(|device| device.memory()).collect::<Result<Vec<_>, Error>>()?;
    Ok(all.into_iter().flatten().min())
}

/// Burn's devices for those that one model is spread over, in their order; none for the processor.
///
/// # Errors
/// [`Error::Devices`] for anything but one device, or several different GPUs; and those of
/// [`Device::to_burn`].
pub(crate) fn to_burn(devices: &[Device]) -> Result<Vec<BurnDevice>, Error> {
    let fault = |problem| Err(Error::Devices { devices: devices.to_vec(), problem });
    if devices.is_empty() {
        return fault(DevicesProblem::None);
    }
    if devices.len() > 1 && devices.iter().any(|device| !matches!(device, Device::Cuda(_))) {
        return fault(DevicesProblem::NotOnlyCards);
    }
    if let Some((_, &device)) = devices.iter().enumerate().find(|(index, device)| devices[..*index].contains(device)) {
        return fault(DevicesProblem::Twice { device });
    }
    devices.iter().filter_map(|device| device.to_burn().transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_build_lacks_is_named() {
        for (device, built) in [(Device::Cuda(0), cfg!(feature = "cuda")), (Device::Wgpu(0), cfg!(feature = "wgpu"))] {
            if !built {
                let error = device.to_burn().unwrap_err();
                assert!(matches!(error, Error::NotInBuild { .. }));
                assert!(error.to_string().contains(&format!("`{}`", device.feature())), "{error}");
            }
        }
    }

    #[cfg(feature = "wgpu")]
    #[test]
    fn adapters_are_counted() {
        match Device::Wgpu(1000).to_burn() {
            Err(Error::NoAdapter { found, .. }) => assert!(found < 1000),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_model_is_for_cuda_alone_where_several_cards_share_it() {
        for devices in [[Device::Cpu, Device::Cuda(0)], [Device::Wgpu(0), Device::Wgpu(1)]] {
            let error = to_burn(&devices).unwrap_err();
            assert!(matches!(error, Error::Devices { problem: DevicesProblem::NotOnlyCards, .. }), "{error}");
        }
    }
}
