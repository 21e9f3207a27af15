//! What a GPU needs on this machine, how much memory it has, and how cubecl is set up in this
//! process.
//!
//! `device.rs` calls [`configure`] and [`Machine::check`] before it makes a CUDA device. Burn would
//! panic, at its first use of the GPU, where a library or a header is missing; here the first of
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
    /// The folder of the CUDA toolkit as cubecl finds it; `None` if it finds none.
    toolkit: Option<PathBuf>,
}

impl Machine {
    /// Looks at this machine. Loads libraries of NVIDIA and runs nothing on a GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn probe() -> Self {
        use burn::tensor::{Device, DeviceType};
        // SAFETY: both calls only try to load a library by each of its names.
        let (driver, compiler) =
            unsafe { (cudarc::driver::sys::is_culib_present(), cudarc::nvrtc::sys::is_culib_present()) };
        let cards = if driver { Device::enumerate(DeviceType::Cuda).into_vec().len() } else { 0 };
        Self { driver, cards, compiler, toolkit: cubecl::cuda::install::cuda_path() }
    }

    /// Makes sure that the GPU of this index can be used.
    ///
    /// # Errors
    /// The first problem, in the order of [`CudaProblem`]: driver, number of GPUs, compiler,
    /// headers.
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
        match &self.toolkit {
            Some(toolkit) if toolkit.join(HEADER).is_file() => Ok(()),
            toolkit => Err(CudaProblem::NoHeaders { looked: toolkit.as_ref().map(|toolkit| toolkit.join(HEADER)) }),
        }
    }
}

/// Bytes of memory that GPU `index` has in all, used or not. [`Machine::check`] must have found it.
///
/// # Errors
/// [`CudaProblem::NoMemorySize`] if the driver does not say it.
#[cfg(feature = "cuda")]
pub(crate) fn memory(index: usize) -> Result<u64, CudaProblem> {
    use cudarc::driver::result;
    let problem = |error: cudarc::driver::DriverError| CudaProblem::NoMemorySize { code: error.0 as u32 };
    result::init().map_err(problem)?;
    let device = result::device::get(i32::try_from(index).unwrap_or(i32::MAX)).map_err(problem)?;
    // SAFETY: the device is one that the driver has just given.
    let bytes = unsafe { result::device::total_mem(device) }.map_err(problem)?;
    Ok(bytes as u64)
}

/// Sets cubecl up for this process: compiled kernels and the choice among them are kept in the
/// user's cache folder for the next process, and all threads share each GPU's stream.
///
/// Must be called before anything else touches cubecl's configuration. It does nothing the second
/// time, or if the program has configured cubecl itself. A `cubecl.toml` and cubecl's environment
/// variables hold as they would without this; [`adapted`] says what is changed of the rest.
#[cfg(feature = "cuda")]
pub(crate) fn configure() {
    use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
    // What a `cubecl.toml` or the environment says holds, as it would have without this.
    let config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    if !CubeClRuntimeConfig::try_set(adapted(config)) {
        tracing::debug!("cubecl is configured already: its caches and streams are as that says");
    }
}

/// The configuration with cubecl's defaults replaced where they do not suit a library:
///
/// | setting | cubecl's default | here |
/// |---|---|---|
/// | cache of compiled kernels | off | on, always |
/// | folder of caches | `target/` of the package around the working folder | the user's cache folder, unless another one was named |
/// | streams | one for each thread | one for all threads, unless one for each task was asked for |
#[cfg(feature = "cuda")]
fn adapted(mut config: cubecl::config::CubeClRuntimeConfig) -> cubecl::config::CubeClRuntimeConfig {
    use cubecl::config::cache::CacheConfig;
    use cubecl::config::streaming::StreamPolicy;
    config.compilation.cache = true;
    // cubecl's default: `target/` of whatever package the working folder is in.
    if matches!(config.environment.path, CacheConfig::Target) {
        config.environment.path = CacheConfig::Global;
    }
    // cubecl's default is a stream for each thread. Each has pools of memory of its own, which
    // outlive the thread, and waits whenever it takes up a tensor of another's, such as a weight.
    // GPUs have streams of their own either way, and so run side by side.
    if matches!(config.streaming.policy, StreamPolicy::PerThread) {
        config.streaming.policy = StreamPolicy::Single;
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thing_missing_is_named() {
        let toolkit = tempfile::tempdir().unwrap();
        let header = toolkit.path().join(HEADER);
        let mut machine = Machine { driver: false, cards: 0, compiler: false, toolkit: None };
        assert_eq!(machine.check(0), Err(CudaProblem::NoDriver));
        machine.driver = true;
        assert_eq!(machine.check(0), Err(CudaProblem::NoSuchCard { found: 0 }));
        machine.cards = 2;
        assert_eq!(machine.check(2), Err(CudaProblem::NoSuchCard { found: 2 }));
        assert_eq!(machine.check(1), Err(CudaProblem::NoCompiler));
        machine.compiler = true;
        assert_eq!(machine.check(1), Err(CudaProblem::NoHeaders { looked: None }));
        machine.toolkit = Some(toolkit.path().to_owned());
        assert_eq!(machine.check(1), Err(CudaProblem::NoHeaders { looked: Some(header.clone()) }));
        std::fs::create_dir(toolkit.path().join("include")).unwrap();
        std::fs::write(&header, "").unwrap();
        assert_eq!(machine.check(1), Ok(()));
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn what_cubecl_has_by_default_is_changed_and_no_more() {
        use cubecl::config::CubeClRuntimeConfig;
        use cubecl::config::cache::CacheConfig;
        use cubecl::config::streaming::StreamPolicy;
        let config = adapted(CubeClRuntimeConfig::default());
        assert_eq!(config.streaming.policy, StreamPolicy::Single);
        assert!(config.compilation.cache && !config.autotune.disable_cache);
        assert!(matches!(config.environment.path, CacheConfig::Global));
        let mut named = CubeClRuntimeConfig::default();
        named.environment.path = CacheConfig::Directory("here".into());
        named.streaming.policy = StreamPolicy::PerTask;
        let config = adapted(named);
        assert!(matches!(config.environment.path, CacheConfig::Directory(path) if path.as_os_str() == "here"));
        assert_eq!(config.streaming.policy, StreamPolicy::PerTask);
    }
}
