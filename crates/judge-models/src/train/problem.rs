//! Why a model cannot be trained. `check.rs` says so before any work.

use std::path::PathBuf;

use judge_core::request::TokenId;

/// Why a model cannot be trained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainProblem {
    /// A setting is outside its range.
    #[error("{setting} is {found}, expected {expected}")]
    Setting {
        /// Its path in [`TrainSettings`](super::TrainSettings), such as `optimizer.beta1`.
        setting: &'static str,
        /// Its value.
        found: f64,
        /// What is accepted.
        expected: &'static str,
    },
    /// A model with experts: nothing here keeps a router from sending all rows to the same few.
    #[error("models with experts, such as {family}, are not trained")]
    Experts {
        /// Its `model_type`.
        family: &'static str,
    },
    /// A model of the layout of GPT-2 or GPT-NeoX: nothing here says with which values norms with
    /// biases and fused projections begin.
    #[error("models whose norms have biases, such as {family}, are not trained")]
    Old {
        /// Its `model_type`.
        family: &'static str,
    },
    /// A model whose blocks have fixed factors, which no training of the reference changes, or rows
    /// of a table for each token.
    #[error("models with fixed factors of blocks or tables of token inputs, such as {family}, are not trained")]
    Fixed {
        /// Its `model_type`.
        family: &'static str,
    },
    /// A model without a head over the vocabulary, which next tokens are predicted with.
    #[error(
        "models without a head over the vocabulary, such as classifiers and base classes of {family}, are not trained"
    )]
    NoHead {
        /// Its `model_type`.
        family: &'static str,
    },
    /// A batch without examples.
    #[error("the batch is empty")]
    EmptyBatch,
    /// A sequence that is too short or too long.
    #[error("a sequence of {found} tokens, expected {least} to {most}")]
    Length {
        /// Its length in tokens.
        found: usize,
        /// Shortest that is accepted.
        least: usize,
        /// Longest that is accepted: the model's context.
        most: usize,
    },
    /// Tokens and weights of an example differ in number.
    #[error("{tokens} tokens, but {weights} weights")]
    Weights {
        /// How many tokens.
        tokens: usize,
        /// How many weights.
        weights: usize,
    },
    /// A weight is negative or not finite.
    #[error("the weight at {at} is {found}, expected a finite number of at least 0")]
    Weight {
        /// Its index in the example, from 0.
        at: usize,
        /// Its value.
        found: f32,
    },
    /// A token that is not in the vocabulary.
    #[error("token {found} is not below the vocabulary's {d_vocab}")]
    Token {
        /// The token.
        found: TokenId,
        /// Size of the vocabulary.
        d_vocab: usize,
    },
    /// The loss does not depend on a parameter, which would stay as it was drawn.
    #[error("the loss has no gradient for {parameter}")]
    NoGradient {
        /// Its name in a Hugging Face folder.
        parameter: String,
    },
    /// Loss or gradient stopped being finite. The parameters are those before the step.
    #[error("after {step} steps the loss is {loss} and the gradient's norm {grad_norm}")]
    Diverged {
        /// Steps done before.
        step: u64,
        /// The loss, as in [`StepReport`](super::StepReport).
        loss: f64,
        /// The gradient's norm.
        grad_norm: f64,
    },
    /// A file cannot be written.
    #[error("cannot write {path}: {source}", path = path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file is not a checkpoint.
    #[error("{path} is no checkpoint: {source}", path = path.display())]
    NoCheckpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it as a safetensors file.
        source: safetensors::SafeTensorError,
    },
    /// A checkpoint of another format, another configuration or other settings.
    #[error("the checkpoint's {what} is {found}, this run's is {expected}")]
    OtherRun {
        /// The entry of the metadata that differs: `format`, `config`, `settings` or `steps_done`.
        what: &'static str,
        /// What this run has there.
        expected: String,
        /// What the checkpoint has there; empty if nothing.
        found: String,
    },
}
