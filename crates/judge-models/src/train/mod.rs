//! Next-token training of a small decoder: the decoder that inference runs, with Burn's autodiff
//! under it.
//!
//! [`Trainer`] owns the parameters, the optimiser's moments and the number of steps done, all as
//! host numbers. A checkpoint is therefore exactly its state, and a run that was stopped resumes
//! bit for bit. It is for models of a few million parameters on the CPU: every step builds the
//! decoder anew from the host's copy.
//!
//! ```text
//! step(batch) ─► check        checks the batch
//!             ─► gradients    one thread for each shard of the batch: loss, and d loss / d parameter
//!             ─► sum in the order of shards, / examples, scaled down to max_grad_norm
//!             ─► adamw        moves each parameter, at the rate of schedule
//! save, resume, export ─► checkpoint
//! ```
//!
//! Batches are the caller's: what is read, in what order and how it is tokenised is not known here,
//! and not part of a checkpoint.

mod adamw;
mod check;
mod checkpoint;
mod example;
mod gradients;
mod host;
mod parameter;
pub(crate) mod problem;
mod schedule;
mod settings;
mod step;
mod trainer;

pub use adamw::AdamW;
pub use example::Example;
pub use problem::TrainProblem;
pub use schedule::Schedule;
pub use settings::TrainSettings;
pub use step::StepReport;
pub use trainer::Trainer;

#[cfg(test)]
mod tests;
