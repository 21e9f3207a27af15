//! What a card needs at run time, looked for before Burn needs it, which panics where something is missing; and where Burn keeps what it
//! has found out about a card, and in how many streams it works there.

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

/// Has the choice of kernels and the compiled kernels kept in the user's cache folder, for the next process, and all threads of this one
/// share each card's stream. Must come before anything else that knows of cards; does nothing the second time, or if the program has
/// configured cubecl itself.
#[cfg(feature = "cuda")]
pub(crate) fn configure() {
    use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};
    // What a `cubecl.toml` or the environment says holds, as it would have without this.
    let config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    if !CubeClRuntimeConfig::try_set(adapted(config)) {
        tracing::debug!("cubecl is configured already: its caches and streams are as that says");
    }
}

/// With compiled kernels kept, and all of it in the user's cache folder, but where another folder was named; and with one stream for all
/// threads, but where one for each task was asked for.
#[cfg(feature = "cuda")]
fn adapted(mut config: cubecl::config::CubeClRuntimeConfig) -> cubecl::config::CubeClRuntimeConfig {
    use cubecl::config::cache::CacheConfig;
    use cubecl::config::streaming::StreamPolicy;
    config.compilation.cache = true;
    // cubecl's default: `target/` of whatever package the working folder is in.
    if matches!(config.environment.path, CacheConfig::Target) {
        config.environment.path = CacheConfig::Global;
    }
    // cubecl's default: a stream for each thread, which has pools of memory of its own that outlive the thread, and waits whenever it
    // takes up a tensor of another's, such as a weight. Cards have streams of their own either way, and so run side by side.
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
