//! What is known of room on the devices: failures that no wait tells.

use burn::tensor::Device;

use super::decoder::Decoder;
use super::host::from_device;
use crate::Error;

/// What has been seen of the failures that no wait tells.
pub(super) struct Watch {
    devices: Vec<Device>,
    /// Products that found no memory up to the last wait, on all of the devices.
    seen: u64,
}

impl Watch {
    /// Of a decoder's devices, from now on.
    pub(super) fn new(decoder: &Decoder) -> Self {
        let devices = decoder.devices();
        let seen = memory_failures(&devices).0;
        Self { devices, seen }
    }

    /// What a wait has brought, unless a product has found no memory since the last one.
    ///
    /// # Errors
    /// That of the wait, and [`Error::Device`].
    pub(super) fn checked<T>(&mut self, found: Result<T, Error>) -> Result<T, Error> {
        let (count, last) = memory_failures(&self.devices);
        let found = found?;
        if count == self.seen {
            return Ok(found);
        }
        self.seen = count;
        Err(Error::Device { source: last.into() })
    }

    /// Waits until all is done that was queued, and has the devices give back what they keep for later. Failures up to here are
    /// known.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        for device in &self.devices {
            from_device(|| device.sync().map(|()| device.memory_cleanup()))?;
        }
        self.seen = memory_failures(&self.devices).0;
        Ok(())
    }
}

/// How many products on these devices found no memory, and what the last one said.
fn memory_failures(devices: &[Device]) -> (u64, String) {
    #[cfg(test)]
    let none = super::faults::products();
    #[cfg(not(test))]
    let none = (0, String::new());
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    return devices
        .iter()
        .map(judge_gpu::memory_failures)
        .fold(none, |(sum, last), (count, said)| (sum + count, if count > 0 { said } else { last }));
    #[cfg(not(any(feature = "cuda", feature = "wgpu")))]
    {
        let _ = devices;
        none
    }
}
