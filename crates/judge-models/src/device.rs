use std::fmt;
use std::str::FromStr;

use crate::Error;

/// Where a model runs. There is no default and no fall-back: what cannot be had is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    /// The processor, written `cpu`.
    Cpu,
    /// An NVIDIA card by its index, written `cuda:0`. Needs a build with the feature `cuda`.
    Cuda(usize),
}

impl Device {
    /// Burn's device of this place.
    ///
    /// # Errors
    /// [`Error::NoCuda`] if this build has no CUDA, [`Error::Cuda`] if this machine lacks what a card needs.
    pub(crate) fn to_burn(self) -> Result<burn::tensor::Device, Error> {
        match self {
            Self::Cpu => Ok(burn::tensor::Device::flex()),
            #[cfg(feature = "cuda")]
            Self::Cuda(index) => {
                let problem = |problem| Error::Cuda { device: self, problem };
                crate::cuda::Machine::probe().check(index).map_err(problem)?;
                Ok(burn::tensor::Device::cuda(index))
            }
            #[cfg(not(feature = "cuda"))]
            Self::Cuda(_) => Err(Error::NoCuda { device: self }),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
        }
    }
}

impl FromStr for Device {
    type Err = Error;

    /// Reads `cpu` or `cuda:INDEX`.
    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "cpu" {
            return Ok(Self::Cpu);
        }
        text.strip_prefix("cuda:")
            .and_then(|index| index.parse().ok())
            .map(Self::Cuda)
            .ok_or_else(|| Error::UnknownDevice { found: text.to_owned() })
    }
}

/// Arithmetic of the weights.
///
/// On the CPU `Bf16` means: weights, and what products and attention take in, are rounded to bf16 (to nearest, ties to
/// even); sums, norms, rotations, activations and the residual stream are f32. It is nearer to exact arithmetic than a
/// program that rounds every intermediate state to bf16. On a card it means the same, but that products give bf16, and that
/// attention to a prompt takes f16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// 32-bit floats, written `f32`.
    F32,
    /// bfloat16 weights, written `bf16`.
    Bf16,
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        })
    }
}

impl FromStr for Dtype {
    type Err = Error;

    /// Reads `f32` or `bf16`.
    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "f32" => Ok(Self::F32),
            "bf16" => Ok(Self::Bf16),
            _ => Err(Error::UnknownDtype { found: text.to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_round_trip() {
        for device in [Device::Cpu, Device::Cuda(0), Device::Cuda(12)] {
            assert_eq!(device.to_string().parse::<Device>().unwrap(), device);
        }
        for dtype in [Dtype::F32, Dtype::Bf16] {
            assert_eq!(dtype.to_string().parse::<Dtype>().unwrap(), dtype);
        }
    }

    #[test]
    fn other_names_are_refused() {
        for text in ["", "CPU", "cuda", "cuda:", "cuda:-1", "mps"] {
            assert!(matches!(text.parse::<Device>(), Err(Error::UnknownDevice { .. })), "{text}");
        }
        assert!(matches!("f16".parse::<Dtype>(), Err(Error::UnknownDtype { .. })));
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn cuda_is_an_error_without_cuda() {
        assert!(matches!(Device::Cuda(0).to_burn(), Err(Error::NoCuda { .. })));
    }
}
