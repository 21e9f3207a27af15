//! What an NVIDIA GPU needs on this machine.
//!
//! `devices.rs` calls [`Machine::check`] before it makes a CUDA device.
//! Burn would panic, at its first use of the GPU, where a library or a header is missing; here the first of
//! them is an error that says what to install. Nothing is run on the GPU. `docs/gpu.md` says the
//! same for users.
//!
//! The search order for the toolkit is cubecl's own. What it finds here is what its compiler will
//! use.

use std::path::PathBuf;

use crate::device::CudaProblem;

/// A header that kernels compiled at run time include, below the toolkit's folder. It stands for
/// all of CUDA's headers.
const HEADER: &str = "include/cuda_fp16.h";

/// What a machine has of the things that a GPU needs.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Whether the driver's library (`libcuda`) can be loaded.
    driver: bool,
    /// GPUs that the driver shows to this process, after `CUDA_VISIBLE_DEVICES`; 0 without a
    /// driver.
    cards: usize,
    /// Whether the library of the run-time compiler (`libnvrtc`) can be loaded.
    compiler: bool,
    /// Whether the library of products (`libcublasLt`) can be loaded.
    products: bool,
    /// The folder of the CUDA toolkit as cubecl finds it; `None` if it finds none.
    toolkit: Option<PathBuf>,
}

impl Machine {
    /// Looks at this machine. Loads libraries of NVIDIA and runs nothing on a GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn probe() -> Self {
        use burn::tensor::{Device, DeviceType};
        let (driver, compiler) = (judge_gpu::cuda::has_driver(), judge_gpu::cuda::has_compiler());
        let cards = if driver { Device::enumerate(DeviceType::Cuda).into_vec().len() } else { 0 };
        let products = judge_gpu::cublas::is_present();
        Self { driver, cards, compiler, products, toolkit: cubecl::cuda::install::cuda_path() }
    }

    /// Makes sure that the GPU of this index can be used.
    ///
    /// # Errors
    /// The first problem, in the order of [`CudaProblem`]: driver, number of GPUs, compiler, library of
    /// products, headers.
    pub(crate) fn check(&self, index: usize) -> Result<(), CudaProblem> {
        if !self.driver {
            return Err(CudaProblem::NoDriver);
        }
        if index >= self.cards {
            return Err(CudaProblem::NoSuchCard { found: self.cards });
        }
        if !self.compiler {
            return Err(CudaProblem::NoCompiler);
        }
        if !self.products {
            return Err(CudaProblem::NoProducts);
        }
        match &self.toolkit {
            Some(toolkit) if toolkit.join(HEADER).is_file() => Ok(()),
            toolkit => Err(CudaProblem::NoHeaders { looked: toolkit.as_ref().map(|toolkit| toolkit.join(HEADER)) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thing_missing_is_named() {
        let toolkit = tempfile::tempdir().unwrap();
        let header = toolkit.path().join(HEADER);
        let mut machine = Machine { driver: false, cards: 0, compiler: false, products: false, toolkit: None };
        assert_eq!(machine.check(0), Err(CudaProblem::NoDriver));
        machine.driver = true;
        assert_eq!(machine.check(0), Err(CudaProblem::NoSuchCard { found: 0 }));
        machine.cards = 2;
        assert_eq!(machine.check(2), Err(CudaProblem::NoSuchCard { found: 2 }));
        assert_eq!(machine.check(1), Err(CudaProblem::NoCompiler));
        machine.compiler = true;
        assert_eq!(machine.check(1), Err(CudaProblem::NoProducts));
        machine.products = true;
        assert_eq!(machine.check(1), Err(CudaProblem::NoHeaders { looked: None }));
        machine.toolkit = Some(toolkit.path().to_owned());
        assert_eq!(machine.check(1), Err(CudaProblem::NoHeaders { looked: Some(header.clone()) }));
        std::fs::create_dir(toolkit.path().join("include")).unwrap();
        std::fs::write(&header, "").unwrap();
        assert_eq!(machine.check(1), Ok(()));
    }
}
