//! A model behind a service that speaks OpenAI's chat-completions API, which many servers imitate, or answers decisions.
//! It is a [`TextModel`](judge_core::TextModel): it only writes text.
//!
//! This module (feature `api`) is the only place in the workspace with a client that sends users'
//! texts anywhere. It owns the requests over the network and what is made of their answers. It does
//! not own prompts, judges, or the order in which items are asked about: those are `judge-core`'s.
//!
//! ```text
//! Exchange ─► model      one thread for each request in flight
//!               wire       Request ─► JSON body, or a refusal before anything is sent
//!               gate       waits for a free place and for the limits per minute
//!               transport  one POST, and the bytes that come back
//!               answer     bytes ─► Outcome, or an ApiProblem that is transient or final
//!               backoff    how long to wait before the next attempt
//!             usage      counts requests and tokens
//! Exchange ◄─ Outcome, as soon as it is known
//! ```
//!
//! `settings` are checked once, in `ApiModel::new`. `key` keeps the secret out of everything that
//! is shown.
//!
//! Invariants that others rely on:
//!
//! - An outcome depends on its own request alone, up to what the service does. Order and
//!   concurrency do not show in what is sent.
//! - Text that a service wrote is never asked for again, whatever a judge makes of it.
//! - No request goes to another address than the one in the settings.
//! - The key appears in the `Authorization` header and nowhere else.

mod answer;
mod backoff;
mod gate;
mod key;
mod model;
mod problem;
mod settings;
mod transport;
mod usage;
mod wire;

pub use key::ApiKey;
pub use model::ApiModel;
pub use problem::{ApiError, ApiProblem, KeyProblem};
pub use settings::{ApiRoute, ApiSettings, MaxTokensField};
pub use usage::{ApiUsage, Prices};
