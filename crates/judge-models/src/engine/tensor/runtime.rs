//! How cubecl, whose kernels Burn runs on GPUs, is set up in this process.
//!
//! `devices.rs` calls [`configure`] before it makes the first device on a GPU.

use cubecl::config::streaming::StreamPolicy;
use cubecl::config::{CubeClRuntimeConfig, RuntimeConfig};

/// Sets cubecl up for this process: all threads share each GPU's stream.
///
/// Must be called before anything else touches cubecl's configuration. It does nothing the second
/// time, or if the program has configured cubecl itself. A `cubecl.toml` and cubecl's environment
/// variables hold as they would without this; [`adapted`] says what is changed of the rest.
pub(crate) fn configure() {
    // What a `cubecl.toml` or the environment says holds, as it would have without this.
    let config = CubeClRuntimeConfig::from_current_dir().override_from_env();
    if !CubeClRuntimeConfig::try_set(adapted(config)) {
        tracing::debug!("cubecl is configured already: its streams are as that says");
    }
}

/// The configuration with cubecl's stream for each thread replaced by one for all threads, unless
/// one for each task was asked for.
///
/// With a stream for each thread, each has pools of memory of its own, which outlive the thread, and
/// waits whenever it takes up a tensor of another's, such as a weight. GPUs have streams of their
/// own either way, and so run side by side.
fn adapted(mut config: CubeClRuntimeConfig) -> CubeClRuntimeConfig {
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
        assert_eq!(adapted(CubeClRuntimeConfig::default()).streaming.policy, StreamPolicy::Single);
        let mut named = CubeClRuntimeConfig::default();
        named.streaming.policy = StreamPolicy::PerTask;
        assert_eq!(adapted(named).streaming.policy, StreamPolicy::PerTask);
    }
}
