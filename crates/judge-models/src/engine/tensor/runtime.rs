//! How cubecl, whose kernels Burn runs on GPUs, is set up in this process.
//!
//! `device.rs` calls [`configure`] before it makes the first device on a GPU.

/// Sets cubecl up for this process: compiled kernels and the choice among them are kept in the
/// user's cache folder for the next process, and all threads share each GPU's stream.
///
/// Must be called before anything else touches cubecl's configuration. It does nothing the second
/// time, or if the program has configured cubecl itself. A `cubecl.toml` and cubecl's environment
/// variables hold as they would without this; [`adapted`] says what is changed of the rest.
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
