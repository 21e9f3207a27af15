//! What a service bounds.

use std::time::Duration;

use super::shares::Percent;

/// The bounds, as the command line has them.
pub(super) struct Limits {
    /// Bytes of a body.
    pub(super) body: usize,
    /// The time for a request's head, for its body, and for a client to take some of an answer.
    pub(super) read: Duration,
    /// The time from then to the answer.
    pub(super) answer: Duration,
    pub(super) connections: usize,
    /// Requests that wait or are judged.
    pub(super) queue: usize,
    /// Bytes of the bodies of requests that wait.
    pub(super) queue_bytes: usize,
    /// Bytes of a request's state, in all of its prompts together.
    pub(super) prompts: usize,
    /// What one client may have of connections, places, bytes and the model.
    pub(super) share: Percent,
}
