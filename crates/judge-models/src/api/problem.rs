use std::time::Duration;

/// What went wrong between this crate and a service. What the service said is shown without the key and cut to a readable length.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiProblem {
    /// The address cannot be used.
    #[error("not the base URL of a service: {problem}")]
    BaseUrl {
        /// What is wrong.
        problem: &'static str,
    },
    /// The model's name is empty.
    #[error("no model is named: expected the name that the service knows it by")]
    NoModel,
    /// A setting is out of its range.
    #[error("{setting} is {found}, expected {expected}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// Its value.
        found: f64,
        /// The range.
        expected: &'static str,
    },
    /// The service answered with a status other than 200.
    #[error("status {status}{}", quoted(.said))]
    Status {
        /// The status.
        status: u16,
        /// What the service said; empty if nothing.
        said: String,
    },
    /// The service sent the request elsewhere. No request is sent to where it was not meant to go.
    #[error(
        "status {status}, a redirect to {location:?}, which is not followed: give the address itself as the base URL"
    )]
    Redirect {
        /// The status.
        status: u16,
        /// Where to; empty if it does not say.
        location: String,
    },
    /// The connection failed, or broke before the answer was complete.
    #[error("no complete answer: {source}")]
    Connection {
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The answer was not complete in time.
    #[error("no answer within {} s", .after.as_secs_f64())]
    Timeout {
        /// The time.
        after: Duration,
    },
    /// The answer is longer than is read.
    #[error("the answer is longer than {limit} bytes")]
    ResponseTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The answer is not a chat completion, although its status says that all is well.
    #[error("the answer is no chat completion: {problem}{}", quoted(.said))]
    Malformed {
        /// What was expected and found.
        problem: String,
        /// Its beginning.
        said: String,
    },
    /// The service asks for a longer wait than is allowed.
    #[error("the service asks to wait {} s, more than the {} s that are allowed: run it again later ({last})", .asked.as_secs(), .most.as_secs())]
    RetryAfter {
        /// What it asks for.
        asked: Duration,
        /// What is allowed.
        most: Duration,
        /// The failure for which it asks.
        last: Box<ApiProblem>,
    },
    /// All attempts at a request failed.
    #[error("{attempts} attempts failed, the last one with: {last}")]
    Exhausted {
        /// How many.
        attempts: usize,
        /// The last failure.
        last: Box<ApiProblem>,
    },
}

impl ApiProblem {
    /// Whether another attempt may succeed.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 409 | 429 | 500..=599),
            Self::Connection { .. } | Self::Timeout { .. } | Self::ResponseTooLong { .. } | Self::Malformed { .. } => {
                true
            }
            _ => false,
        }
    }
}

fn quoted(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said:?}") }
}
