//! Tuning a decoder or an encoder, or a low-rank adapter of it, on examples of what a judge should say.
//!
//! [`Trainer`] starts from the folder of any dense decoder that this crate reads, or of a BERT, RoBERTa or ModernBERT.
//! It owns what is learnt, as host numbers, and the optimiser's moments; all else of the model lies on the device once
//! and gets no gradient. A checkpoint is exactly that state, and a run that was stopped resumes bit for bit.
//!
//! ```text
//! new     folder ─► base.rs        frozen tensors on the plain device
//!                ├► tuning.rs      which tensors are learnt, or the factors of an adapter as PEFT draws them
//!                └► new_head.rs    a head of an encoder that has none
//!
//! step    micro-batches ─► gradients.rs   each: the base with the trainables of this step, on a device with autodiff;
//!                            │            forward, and backward in pieces of the blocks
//!                            ├► lower.rs  blocks below those that are learnt, or what states.rs kept of them
//!                            ├► pass.rs   sequences, padded (batch.rs) ─► states where something is read
//!                            └► loss/     a sum and its count
//!         added in order, divided once, scaled down to max_grad_norm
//!                       ─► adamw.rs       at the rate of schedule.rs
//!
//! run     all steps, with checkpoints ─► run.rs
//! save, resume ─► checkpoint.rs           write ─► write.rs: an adapter's folder as PEFT's, or a model's
//! ```
//!
//! The rest of the crate does not know this room, and it knows two things of the engine: how tensors become
//! a network (`engine/tensor/parameters.rs`), and that it runs its blocks (`network.rs`).
//!
//! Which rows there are, in what order, and how their texts become tokens is the caller's matter.
//! [`TrainSettings::data`] says it in the caller's words, so that a checkpoint of other data is refused.

mod adamw;
mod base;
mod batch;
mod check;
mod checkpoint;
mod error;
mod gradients;
mod loss;
mod lower;
mod network;
mod new_head;
mod pass;
mod run;
mod schedule;
mod settings;
mod states;
mod step;
mod trainable;
mod trainer;
mod tuning;
mod write;

pub use adamw::AdamW;
pub use checkpoint::is_checkpoint;
pub use error::{ExampleProblem, StatesProblem, TrainError};
pub use loss::{
    BradleyTerry, Class, ClassExample, Completion, CompletionExample, Decision, DecisionExample, Labels, Loss, Mark,
    MarkExample, Ordinal, PairExample, ReadFrom, Reward,
};
pub use run::{Run, RunEvent};
pub use schedule::{Course, Schedule};
pub use settings::{Mean, TrainSettings};
pub use states::is_states;
pub use step::StepReport;
pub use trainer::Trainer;
pub use tuning::{Blocks, Lora, Targets, Tuning};

#[cfg(test)]
mod tests;
