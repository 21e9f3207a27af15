//! A model behind a service that speaks the chat-completions API of OpenAI, which many servers imitate: a [`TextModel`](judge_core::TextModel) that only writes text.
//!
//! `settings` says what is asked and how hard, `key` holds the secret, `wire` makes bodies of requests and `answer` makes outcomes of what comes back, `transport` sends one request,
//! `gate` bounds how many are sent at once and per minute, `backoff` says when a failed one is sent again, `usage` counts, `model` puts these together. This module is the
//! only place of the workspace with a client that sends users' texts anywhere.

mod answer;
mod backoff;
mod gate;
mod http_date;
mod key;
mod model;
mod problem;
mod settings;
mod transport;
mod usage;
mod wire;

pub use key::{ApiKey, KeyProblem};
pub use model::ApiModel;
pub use problem::ApiProblem;
pub use settings::{ApiSettings, MaxTokensField};
pub use usage::{ApiUsage, Prices};
