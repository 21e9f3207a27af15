//! What a card needs at run time, looked for before Burn needs it, which panics where something is missing; and where Burn keeps what it
//! has found out about a card.

use std::path::PathBuf;

use crate::device::CudaProblem;

/// A header that every kernel compiled at run time may include.
const HEADER: &str = "include/cuda_fp16.h";

/// What a machine has.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Whether the driver's library can be loaded.
    driver: bool,
    /// Cards that the driver shows to this process.
    cards: usize,
    /// Whether the library of the compiler at run time can be loaded.
    compiler: bool,
    /// Where the toolkit is taken to be, if anywhere.
    toolkit: Option<PathBuf>,
}

impl Machine {
    /// Looks at this machine. Nothing is run on a card.
    #[cfg(feature = "cuda")]
    pub(crate) fn probe() -> Self {
        use burn::tensor::{Device, DeviceType};
        // SAFETY: both calls only try to load a library by each of its names.
        let (driver, compiler) =
            unsafe { (cudarc::driver::sys::is_culib_present(), cudarc::nvrtc::sys::is_culib_present()) };
        let cards = if driver { Device::enumerate(DeviceType::Cuda).into_vec().len() } else { 0 };
        Self { driver, cards, compiler, toolkit: cubecl::cuda::install::cuda_path() }
    }

    /// Says what keeps card `index` from being used, if anything does.
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

/// Has the choice of kernels and the compiled kernels kept in the user's cache folder, for the next process. Must come before anything
/// else that knows of cards; does nothing the second time, or if the program has configured cubecl itself.
#[cfg(feature = "cuda")]
pub(crate) fn keep_caches() {
    use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
    // What a `cubecl.toml` or the environment says holds, as it would have without this.
    let config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    if !CubeClRuntimeConfig::try_set(with_caches(config)) {
        tracing::debug!("cubecl is configured already: its caches are where that says");
    }
}

/// With compiled kernels kept, and all of it in the user's cache folder, but where another folder was named.
#[cfg(feature = "cuda")]
fn with_caches(mut config: cubecl::config::CubeClRuntimeConfig) -> cubecl::config::CubeClRuntimeConfig {
    use cubecl::config::cache::CacheConfig;
    config.compilation.cache = true;
    // cubecl's default: `target/` of whatever package the working folder is in.
    if matches!(config.environment.path, CacheConfig::Target) {
        config.environment.path = CacheConfig::Global;
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
    fn caches_are_the_user_s_but_where_a_folder_is_named() {
        use cubecl::config::CubeClRuntimeConfig;
        use cubecl::config::cache::CacheConfig;
        let config = with_caches(CubeClRuntimeConfig::default());
        assert!(config.compilation.cache && !config.autotune.disable_cache);
        assert!(matches!(config.environment.path, CacheConfig::Global));
        let mut named = CubeClRuntimeConfig::default();
        named.environment.path = CacheConfig::Directory("here".into());
        assert!(
            matches!(with_caches(named).environment.path, CacheConfig::Directory(path) if path == PathBuf::from("here"))
        );
    }
}
