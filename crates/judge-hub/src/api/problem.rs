//! What can go wrong between this crate and a service, and which of it another attempt may cure.
//!
//! `settings`, `transport`, `answer` and `model` make these; [`ApiError`] adds
//! the address. `model` asks `is_transient` and retries.

use std::time::Duration;

use crate::agent;

/// What ends the use of a service, with what it is about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiError {
    /// A service cannot be asked, or did not answer.
    #[error("{url}: {problem}")]
    Service {
        /// The address; without user and query where it cannot be used because of them.
        url: String,
        /// What went wrong.
        problem: ApiProblem,
    },
    /// What was given as the key of a service cannot be one.
    #[error("the key of the service: {problem}")]
    Key {
        /// Why, without showing it.
        problem: KeyProblem,
    },
    /// The system gave no threads to run on.
    #[error("cannot start threads: {source}")]
    Threads {
        /// What the system says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Why a text is not a key. It does not show the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyProblem {
    /// The text is empty or only white space.
    #[error("it is empty")]
    Empty,
    /// The text has a character that a header cannot carry: a space, a control character or one
    /// beyond ASCII.
    #[error("character {index} is not a visible ASCII character")]
    Character {
        /// Place of the first such character in the trimmed text, in characters from 0.
        index: usize,
    },
    /// No environment variable has the name that was given.
    #[error("the environment variable {name} is not set")]
    NotSet {
        /// The variable's name.
        name: String,
    },
}

/// What went wrong between this crate and a service. What the service said is shown without the key
/// and cut to a readable length.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApiProblem {
    /// The address cannot be used.
    #[error("not the base URL of a service: {problem}")]
    BaseUrl {
        /// What is wrong with it, and what was expected.
        problem: &'static str,
    },
    /// A variable of the environment, for a proxy or for certificates, cannot be used.
    #[error("{variable} {problem}")]
    Variable {
        /// The variable, e.g. `HTTPS_PROXY`.
        variable: &'static str,
        /// What is wrong with it, and what was expected. The address of a proxy is not shown: it may hold a password.
        problem: String,
    },
    /// The model's name is empty.
    #[error("no model is named: expected the name that the service knows it by")]
    NoModel,
    /// A setting is out of its range.
    #[error("{setting} is {found}, expected {expected}")]
    Setting {
        /// Name of the field of [`ApiSettings`](super::ApiSettings).
        setting: &'static str,
        /// Its value.
        found: f64,
        /// The range, in words.
        expected: &'static str,
    },
    /// The service answered with a status that is neither success (2xx) nor a redirect (3xx), and
    /// the fault is not one item's. Transient are 408, 409, 425, 429, 499 and 5xx, unless a quota is used up.
    #[error("status {status}{}{}", quoted(.said), advice(.status))]
    Status {
        /// The status.
        status: u16,
        /// What the service said; empty if nothing.
        said: String,
    },
    /// The service sent the request elsewhere. No request is sent to where it was not meant to go.
    /// Final.
    #[error(
        "status {status}, a redirect to {location:?}, which is not followed: give the address itself as the base URL"
    )]
    Redirect {
        /// The status, 3xx.
        status: u16,
        /// The address of the `Location` header; empty if there is none.
        location: String,
    },
    /// There was no connection: nobody listens, the name or the proxy is not known, or nobody vouches for a certificate. Transient.
    #[error("no connection: {source}{}", agent::advice(.source))]
    Connection {
        /// What the network client says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The service closed the connection before the answer was complete, or answered what is no HTTP, such as more than 128 headers or
    /// 64 KiB of them. Transient.
    #[error("no complete answer: {source}")]
    Broken {
        /// What the network client says.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The answer was not complete in time. Transient.
    #[error("no answer within {} s", .after.as_secs_f64())]
    Timeout {
        /// The time that one attempt may take.
        after: Duration,
    },
    /// The answer is longer than is read. Transient: another answer may be shorter.
    #[error("the answer is longer than {limit} bytes")]
    ResponseTooLong {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The answer is not a chat completion, although its status says that all is well. Transient.
    #[error("the answer is no chat completion: {problem}{}", quoted(.said))]
    Malformed {
        /// What was expected and found.
        problem: String,
        /// The beginning of the answer.
        said: String,
    },
    /// The service asks for a longer wait than is allowed. Final.
    #[error("the service asks to wait {} s, more than the {} s that are allowed: run it again later ({last})", .asked.as_secs(), .most.as_secs())]
    RetryAfter {
        /// The wait of the `Retry-After` header.
        asked: Duration,
        /// The longest wait that the settings allow.
        most: Duration,
        /// The failure for which the service asks to wait.
        last: Box<ApiProblem>,
    },
    /// So many requests in a row brought nothing but faults of the service: what is wrong is not one row's.
    #[error(
        "{count} requests in a row got no answer, the last one with: {last}; the rows before them keep their results: run it again when the service answers"
    )]
    InARow {
        /// How many.
        count: usize,
        /// The problem of the last one.
        last: Box<ApiProblem>,
    },
    /// All attempts at a request failed, each with a transient problem.
    #[error("{}: {last}", failed(.attempts))]
    Exhausted {
        /// How many attempts were made.
        attempts: usize,
        /// The problem of the last one.
        last: Box<ApiProblem>,
    },
}

impl ApiProblem {
    /// Whether another attempt at the same request may succeed, as far as the problem alone tells.
    /// `answer` overrules it for a quota that is used up.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 408 | 409 | 425 | 429 | 499 | 500..=599),
            Self::Connection { .. }
            | Self::Broken { .. }
            | Self::Timeout { .. }
            | Self::ResponseTooLong { .. }
            | Self::Malformed { .. } => true,
            _ => false,
        }
    }

    /// Whether it is of one request alone, as far as one answer tells: what the service makes of this text. Its row is then
    /// unscored. Everything else would befall the next row as well: an address, a key, a model, a limit or a quota, no connection.
    pub(super) fn is_rows(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 200..=299 | 400 | 408 | 409 | 422 | 425 | 499 | 500..=599),
            Self::Broken { .. } | Self::Timeout { .. } | Self::ResponseTooLong { .. } | Self::Malformed { .. } => true,
            Self::Exhausted { last, .. } => last.is_rows(),
            _ => false,
        }
    }
}

/// What a service said as the end of a message: quoted behind a colon, or nothing.
fn quoted(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said:?}") }
}

/// How many attempts failed, as the beginning of a message.
fn failed(attempts: &usize) -> String {
    match attempts {
        1 => "the only attempt failed with".to_owned(),
        attempts => format!("{attempts} attempts failed, the last one with"),
    }
}

/// What to do about a status that ends a run.
fn advice(status: &u16) -> &'static str {
    match status {
        401 | 403 => " (check the key, and that it may use this model)",
        404 | 405 => " (check the base URL and the name of the model)",
        407 => {
            " (the proxy wants a user and a password: put them into the variable that names it, HTTPS_PROXY or HTTP_PROXY)"
        }
        _ => "",
    }
}
