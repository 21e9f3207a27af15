//! What requests want of a model, and how their answers are made of what passes bring, whichever
//! engine runs them.
//!
//! `model.rs` hands in requests and takes outcomes; `engine/` gets jobs and gives back what a pass
//! brought. This module reads neither folders nor weights, and no tensor of a device enters it.
//!
//! ```text
//! check      refuses a request that asks in vain, before any work
//! jobs       a request ─► the sequences that answer it (`judge-text` tokenises them)
//! groups     sequences that can share passes
//! driver     runs an engine's passes (the trait of `passes`) and reads what each brings:
//!              labels      states ─► label logits
//!              next_token  logits ─► a token (sampling), log-probabilities, the mass of labels
//!              written     a text that is being written
//! answers    parts of a request, until all are there ─► Outcome (finite refuses NaN and infinity)
//! ```
//!
//! `pooling` is for engines too, so that there is one way to pool; `side_by_side` walks over rows of logits. `context` is what all of this knows of a model,
//! and `texts` what the model is fed for a prompt.

pub(crate) mod answers;
mod check;
pub(crate) mod context;
pub(crate) mod driver;
mod finite;
pub(crate) mod groups;
pub(crate) mod jobs;
pub(crate) mod labels;
pub(crate) mod next_token;
pub(crate) mod passes;
pub(crate) mod pooling;
pub(crate) mod reply;
pub(crate) mod sampling;
mod side_by_side;
mod texts;
mod written;
