//! The service, as each of its requests sees it.

use std::sync::Arc;

use super::key::Key;
use super::limits::Limits;
use super::metrics::Metrics;
use super::queue::RequestQueue;
use super::registry::Registry;
use super::shares::Lines;

/// The service.
pub(super) struct App {
    pub(super) queue: RequestQueue,
    pub(super) key: Option<Key>,
    /// Whether it asks for no key and listens on the loopback address, so that pages in a browser on this machine reach it.
    pub(super) is_open_here: bool,
    pub(super) limits: Limits,
    /// Of the bodies of requests.
    pub(super) bytes: Lines,
    pub(super) metrics: Metrics,
    pub(super) registry: Arc<Registry>,
    /// When the service started, in seconds since 1970.
    pub(super) started: u64,
    pub(super) label_mass: bool,
    /// Whether there is a page to try it.
    pub(super) page: bool,
    pub(super) quiet: bool,
}
