//! Stand-in for `cubecl-llvm` 0.11.3: the names that `cubecl-cuda` 0.11.3 uses, with no compiler behind them.
//!
//! `cubecl-cuda` has two compilers. This workspace selects the one that writes CUDA C++ (`cubecl`'s feature `cuda-cpp`), so the
//! other is never asked; if a build without that feature did ask, it would get an error that says so. The README beside this
//! crate says why it exists.

use std::convert::Infallible;
use std::ffi::c_char;

use cubecl_core::prelude::KernelDefinition;
use cubecl_runtime::compiler::CompilationError;
use cubecl_runtime::kernel::BufferIOAttr;

/// What a caller is told.
const ABSENT: &str =
    "this build has no LLVM: it needs the feature `cuda-cpp` of cubecl, which compiles CUDA C++ instead";

/// The part for NVIDIA's cards.
pub mod nvptx {
    /// Versions of PTX.
    pub mod ptx_version {
        use std::convert::Infallible;
        use std::fmt;

        /// A version of PTX that LLVM emits: there is none.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct PtxVersion(Infallible);

        impl PtxVersion {
            /// The newest version that a driver loads and LLVM emits.
            #[must_use]
            pub fn for_driver(_driver: i32) -> Option<Self> {
                None
            }
        }

        impl fmt::Display for PtxVersion {
            fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {}
            }
        }
    }
}

/// What all targets share.
pub mod shared {
    /// What of a device's features LLVM can make use of.
    pub mod lowered_features {
        use cubecl_core::ir::DeviceProperties;

        /// Whom code is emitted for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum GpuTarget {
            /// NVIDIA's cards.
            Nvptx,
        }

        /// Would remove what LLVM cannot emit. Nothing is emitted here, so nothing is removed.
        pub fn restrict_features(_properties: &mut DeviceProperties, _target: GpuTarget) {}
    }
}

/// Whom the compiler emits code for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LlvmTarget {
    /// NVIDIA's cards.
    #[default]
    Nvptx,
}

/// A compiler that refuses.
#[derive(Clone, Debug, Default)]
pub struct PlironCompiler {
    /// Whom it would emit code for.
    pub target: LlvmTarget,
}

impl PlironCompiler {
    /// Compiles nothing.
    ///
    /// # Errors
    /// Always, with the feature that is missing.
    pub fn compile(
        &mut self,
        _kernel: KernelDefinition,
        _options: &PlironOptions,
    ) -> Result<PlironArtifact, CompilationError> {
        Err(CompilationError::Generic {
            reason: ABSENT.to_owned(),
            backtrace: cubecl_core::environment::backtrace::BackTrace::capture(),
        })
    }

    /// The language that it would read.
    #[must_use]
    pub fn lang_tag(&self) -> &'static str {
        "llvm-absent"
    }
}

/// Settings of the compiler, as `cubecl-cuda` fills them in.
#[derive(Clone, Debug, Default)]
pub struct PlironOptions {
    /// A processor; `cubecl-cuda` names none.
    pub arch: Option<Infallible>,
    /// The card's architecture.
    pub sm_arch: Option<cubecl_core::ir::nvidia::SmArch>,
    /// The version of PTX.
    pub ptx_version: Option<nvptx::ptx_version::PtxVersion>,
    /// Whether launch parameters are constants of the grid.
    pub grid_constants: bool,
}

/// A compiled kernel, in the form in which `cubecl-cuda` loads it.
#[derive(Clone, Debug)]
pub struct NvptxModule {
    /// PTX, ended by a zero.
    pub ptx: Vec<c_char>,
    /// The kernel's name in it.
    pub entrypoint: String,
    /// LLVM's own text of it.
    pub ir: String,
    /// Bytes of shared memory that a launch reserves.
    pub shared_memory_size: usize,
    /// Which buffers are read and which are written.
    pub io: Vec<BufferIOAttr>,
}

/// What a compiler brings. None is ever made here.
#[derive(Clone, Debug)]
pub enum PlironArtifact {
    /// Code for this processor.
    Jit(Infallible),
    /// Code for a card.
    NvptxCode(NvptxModule),
}
