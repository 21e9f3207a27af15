//! Where a model runs ([`Device`]) and what its weights are kept as ([`WeightForm`]): settings of
//! `LoadOptions` by name, and why they may be refused.
//!
//! Names alone, which are part of `ModelInfo` and of run records; `from_str.rs` reads them and must stay the inverse of what is
//! written here. Whether this machine has a device is for `engine/tensor/devices.rs` to find out. What depends on the model
//! ([`DevicesProblem::Encoder`], [`DevicesProblem::TooMany`]) is found in `model.rs`.

use std::fmt;
use std::path::PathBuf;

/// Where a model runs. There is no fallback: what this machine or this build cannot do is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    /// The processor, written `cpu`.
    Cpu,
    /// An NVIDIA GPU by its index from 0 among those that the driver shows to this process, written
    /// `cuda:0`. Needs a build with the feature `cuda`.
    Cuda(usize),
    /// A GPU of any maker through wgpu, which goes through Vulkan, Metal or Direct3D 12, by its index
    /// from 0 among those that it lists (discrete ones first, software last), written `wgpu:0`. In f32
    /// alone. Needs a build with the feature `wgpu`.
    Wgpu(usize),
}

impl Device {
    /// The feature of this crate that a build needs for this device; empty for the processor.
    pub(crate) fn feature(self) -> &'static str {
        match self {
            Self::Cpu => "",
            Self::Cuda(_) => "cuda",
            Self::Wgpu(_) => "wgpu",
        }
    }

    /// Whether it is a GPU that has f32 alone: the interface says nothing of other numbers that could be
    /// relied on for all makers.
    pub(crate) fn has_f32_alone(self) -> bool {
        matches!(self, Self::Wgpu(_))
    }
}

/// The names of devices with commas between them, as errors and `ModelInfo::device` show them.
pub(crate) fn names(devices: &[Device]) -> String {
    devices.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(index) => write!(f, "cuda:{index}"),
            Self::Wgpu(index) => write!(f, "wgpu:{index}"),
        }
    }
}

/// What weights are kept as in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeightForm {
    /// What the folder has, written `as-stored`: numbers in the [`Dtype`](crate::Dtype). On the processor matrices of
    /// few bits stay codes of 8 or 4 bits, unless their scales would take as much room as that saves, and
    /// products see the same numbers as if they had been expanded, unless a kernel is named that
    /// [multiplies integers](crate::Kernel::multiplies_integers).
    #[default]
    AsStored,
    /// Matrices in 8 bits, written `int8`, on the processor alone: about half the memory of bf16, and
    /// half the time of reading it while one text is written. Each number is rounded to the nearest
    /// of 255 steps up to the largest magnitude of its group, 128 columns of a row; products see that
    /// number in the [`Dtype`](crate::Dtype), or as it is with a kernel of integers.
    /// Matrices that the folder has as codes, vectors, routers of experts and
    /// tables of token inputs stay as they are.
    Int8,
}

judge_core::names! { WeightForm {
    AsStored: "as-stored",
    Int8: "int8",
} }

/// Why a model cannot be spread over some devices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DevicesProblem {
    /// No device is named.
    #[error("none is named")]
    None,
    /// One of several devices is not an NVIDIA GPU. Only these can share a model.
    #[error("only cards that run with CUDA can share a model")]
    NotOnlyCards,
    /// A device is named more than once.
    #[error("{device} is named more than once")]
    Twice {
        /// The device.
        device: Device,
    },
    /// An encoder is to run elsewhere than on the processor.
    #[error("the model is an encoder, which runs on the processor only: name cpu")]
    Encoder,
    /// Packed weights are to be kept, which only the processor has.
    #[error("packed weights are kept for the processor only: leave out the folder, or name cpu")]
    PackedCache,
    /// Weights are to be kept in a form that only the processor has.
    #[error("weights in {form} are for the processor only: leave it out, or name cpu")]
    WeightForm {
        /// The form.
        form: WeightForm,
    },
    /// Products of ten bits after the point are asked for, which only NVIDIA GPUs have.
    #[error("tf32 products are for NVIDIA GPUs only: use f32")]
    Tf32,
    /// Weights in bf16 are asked for through wgpu.
    #[error("there models run in f32 alone, not in bf16: use f32")]
    F32Alone,
    /// There are fewer blocks than devices.
    #[error("the model has {n_layers} blocks, and each device needs one")]
    TooMany {
        /// Blocks of the model.
        n_layers: usize,
    },
}

/// What keeps a GPU from being used. Of several problems the one that comes first here is named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaProblem {
    /// NVIDIA's driver is not installed: its library cannot be loaded.
    #[error("NVIDIA's driver is not installed: its library (libcuda) cannot be loaded")]
    NoDriver,
    /// The driver shows fewer GPUs than the index needs.
    #[error("the driver shows {found} cards to this process, numbered from 0")]
    NoSuchCard {
        /// GPUs that the driver shows to this process.
        found: usize,
    },
    /// The compiler that kernels need at run time (NVRTC) is absent.
    #[error("NVIDIA's run-time compiler cannot be loaded: install NVRTC (libnvrtc) of CUDA 12 or 13")]
    NoCompiler,
    /// The library of products (cuBLASLt) is absent.
    #[error(
        "NVIDIA's library of products cannot be loaded: install cuBLAS of CUDA 12 or 13 (libcublasLt; the package cuda-libraries, or \
         nvidia-cublas of Python's) where the system's library path or LD_LIBRARY_PATH finds it"
    )]
    NoProducts,
    /// The headers of CUDA that kernels include are absent.
    #[error("CUDA's headers are not there ({}): install them, and set CUDA_PATH to the folder that has include/", looked_for(.looked))]
    NoHeaders {
        /// The file that was looked for; `None` if no folder of a toolkit was found at all.
        looked: Option<PathBuf>,
    },
    /// The driver does not say how much memory the GPU has.
    #[error("the driver does not say how much memory it has (CUDA error {code}): say how many tokens a batch may have")]
    NoMemorySize {
        /// The driver's error, a `CUresult`.
        code: u32,
    },
}

/// Where headers were looked for, as the message of [`CudaProblem::NoHeaders`] says it.
fn looked_for(looked: &Option<PathBuf>) -> String {
    match looked {
        Some(path) => format!("no {}", path.display()),
        None => "neither CUDA_PATH nor /usr/local/cuda, /opt/cuda or an installed nvcc".to_owned(),
    }
}
