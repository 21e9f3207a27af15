//! Devices, dtypes and forms of weights read from their names, as command lines and run records have them.
//!
//! Apart from the types, which errors name: what reads them fails with an [`Error`].

use std::str::FromStr;

use crate::device::{Device, WeightForm};
use crate::error::Error;

impl FromStr for Device {
    type Err = Error;

    /// Reads `cpu`, `cuda:INDEX` or `wgpu:INDEX`.
    ///
    /// # Errors
    /// [`Error::UnknownDevice`] for any other text. Whether there is such a device is not asked.
    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "cpu" {
            return Ok(Self::Cpu);
        }
        let of_index = match text.split_once(':') {
            Some(("cuda", index)) => index.parse().map(Self::Cuda).ok(),
            Some(("wgpu", index)) => index.parse().map(Self::Wgpu).ok(),
            _ => None,
        };
        of_index.ok_or_else(|| Error::UnknownDevice { found: text.to_owned() })
    }
}

impl FromStr for WeightForm {
    type Err = Error;

    /// Reads `as-stored` or `int8`.
    ///
    /// # Errors
    /// [`Error::UnknownWeightForm`] for any other text.
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::from_name(text).ok_or_else(|| Error::UnknownWeightForm { found: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dtype, Kernel, UnknownDtype};

    #[test]
    fn names_survive_the_round_trip() {
        for device in [Device::Cpu, Device::Cuda(0), Device::Cuda(12), Device::Wgpu(0), Device::Wgpu(1)] {
            assert_eq!(device.to_string().parse::<Device>().unwrap(), device);
        }
        for kernel in Kernel::by_speed(true) {
            assert_eq!(kernel.to_string().parse::<Kernel>().unwrap(), kernel);
        }
        for form in WeightForm::ALL {
            assert_eq!(form.to_string().parse::<WeightForm>().unwrap(), form);
        }
        for dtype in [Dtype::F32, Dtype::Tf32, Dtype::Bf16] {
            assert_eq!(dtype.to_string().parse::<Dtype>().unwrap(), dtype);
        }
    }

    #[test]
    fn other_names_are_refused() {
        for text in ["", "CPU", "cuda", "cuda:", "cuda:-1", "wgpu", "wgpu:", "opencl:0", "mps"] {
            assert!(matches!(text.parse::<Device>(), Err(Error::UnknownDevice { .. })), "{text}");
        }
        assert!(matches!("f16".parse::<Dtype>(), Err(UnknownDtype { .. })));
        let error = "int4".parse::<WeightForm>().unwrap_err().to_string();
        assert_eq!(error, "\"int4\" is no form of weights: expected as-stored or int8");
        let error = "sse2".parse::<Kernel>().unwrap_err().to_string();
        assert!(error.starts_with("\"sse2\" is no kernel: expected amx, amx-int8, "), "{error}");
        assert!(error.ends_with(", neon-int8 or portable"), "{error}");
    }
}
