//! Why a model cannot be trained. The rest of the crate has an error of its own, which this one may hold.

use std::path::PathBuf;

/// Why a model cannot be trained, or its training cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The model's folder or a file of the run cannot be read or written, or a device fails.
    #[error(transparent)]
    Model(#[from] crate::Error),
    /// A setting is outside its range.
    #[error("{setting} is {found}, expected {expected}")]
    Setting {
        /// Its path in [`TrainSettings`](super::TrainSettings) or in the loss, such as `optimizer.beta1`.
        setting: &'static str,
        /// Its value.
        found: String,
        /// What is accepted.
        expected: String,
    },
    /// A model of which something is not trained here.
    #[error("{family} models are not trained: {reason}")]
    Family {
        /// The `model_type`.
        family: &'static str,
        /// What of it is not trained, and what to do where there is a way.
        reason: &'static str,
    },
    /// The loss reads a head over the vocabulary, which the folder does not have.
    #[error(
        "the loss reads next tokens, but {path} is a {family} model without a head over the vocabulary; \
         use a loss on a score head",
        path = path.display()
    )]
    NoHead {
        /// The folder.
        path: PathBuf,
        /// The `model_type`.
        family: &'static str,
    },
    /// Scores are asked of a loss that reads the head over the vocabulary.
    #[error("the loss {loss} reads labels of the vocabulary and no score head; ask for label logits")]
    NoScores {
        /// The loss.
        loss: &'static str,
    },
    /// The folder's head of labels has other labels than the loss.
    #[error(
        "labels of the score head of {path}: expected {expected}, as the loss reads, found {found}; start from a \
         folder without such a head, or choose classes (points of the scale) that fit it",
        path = path.display()
    )]
    ScoreLabels {
        /// The folder.
        path: PathBuf,
        /// How many the loss has.
        expected: usize,
        /// How many the head has.
        found: usize,
    },
    /// A target of an adapter that no projection has as its name's end.
    #[error("no projection of the chosen layers is called {target}; there are {}", known.join(", "))]
    NoTarget {
        /// What was asked for.
        target: String,
        /// The last parts of the names that there are.
        known: Vec<String>,
    },
    /// A batch without examples.
    #[error("the batch has no examples")]
    EmptyBatch,
    /// An example that cannot be learnt from.
    #[error("example {index} of the batch: {problem}")]
    Example {
        /// Its place in the batch, from 0.
        index: usize,
        /// What is wrong with it.
        problem: ExampleProblem,
    },
    /// The loss does not depend on a parameter, which would stay as it is.
    #[error("the loss has no gradient for {parameter}: leave it out of what is trained, or read a later layer")]
    NoGradient {
        /// Its name in the folder or in the adapter.
        parameter: String,
    },
    /// Loss or gradient stopped being finite. What is learnt is as before the step.
    #[error(
        "after {step} steps the loss is {loss} and the gradient's norm {grad_norm}; \
         the first examples of the batch where that is so are {first} to {last}"
    )]
    Diverged {
        /// Steps done before.
        step: u64,
        /// The loss, as in [`StepReport`](super::StepReport).
        loss: f64,
        /// The gradient's norm.
        grad_norm: f64,
        /// The first example of the first micro-batch that is not finite.
        first: usize,
        /// Its last example.
        last: usize,
    },
    /// A step whose learning rate is too great for what is learnt, which is as before the step.
    #[error("after {step} steps another one at the learning rate {learning_rate:e} would make {parameter} infinite")]
    Overflow {
        /// Steps done before.
        step: u64,
        /// The learning rate.
        learning_rate: f64,
        /// The name of the first parameter in the folder or in the adapter.
        parameter: String,
    },
    /// A file of states that cannot be used.
    #[error("{path} {problem}", path = path.display())]
    States {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: StatesProblem,
    },
    /// A file is not a checkpoint.
    #[error("{path} is no checkpoint: {source}", path = path.display())]
    NoCheckpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it as a safetensors file.
        source: safetensors::SafeTensorError,
    },
    /// A checkpoint without one of its tensors, or with one in another shape or dtype.
    #[error(
        "{path} is no checkpoint of this run: {tensor} is {found}, expected F32 {expected:?}",
        path = path.display()
    )]
    CheckpointTensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// Its shape in this run.
        expected: Vec<usize>,
        /// What is there.
        found: String,
    },
    /// A checkpoint of another format, model, loss or data, or of other settings.
    #[error("the checkpoint's {what} is {found:?}, this run's is {expected}")]
    OtherRun {
        /// The entry of the metadata that differs: `format`, `model`, `loss`, `settings` or `steps_done`.
        what: &'static str,
        /// What this run has there.
        expected: String,
        /// What the checkpoint has there; empty if nothing.
        found: String,
    },
    /// What was written does not hold the numbers that were trained.
    #[error("what was written as {path} does not give back {tensor}; the folder is not kept", path = path.display())]
    NotReadBack {
        /// Where it was to be.
        path: PathBuf,
        /// The first tensor that differs.
        tensor: String,
    },
}

/// What is wrong with a file of states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatesProblem {
    /// It begins otherwise.
    #[error("is no file of states; name another")]
    NoStates,
    /// Its states come out of other blocks.
    #[error("has states of another model or of other blocks; name another file, or delete it")]
    Other,
    /// States are not what was written.
    #[error("is damaged: states in it are not what was written; delete it")]
    Damaged,
    /// Another process has it open.
    #[error("is in use by another run; name another file")]
    Held,
}

/// What is wrong with an example.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExampleProblem {
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
    /// A list of another length than it needs.
    #[error("{found} {what}, expected {expected}")]
    Count {
        /// What the list holds.
        what: &'static str,
        /// How many are needed.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// A value that is not what it must be.
    #[error("{what} is {found}, expected {expected}")]
    Value {
        /// What it is.
        what: String,
        /// Its value.
        found: String,
        /// What is accepted.
        expected: String,
    },
    /// Nothing of the example counts.
    #[error("nothing of it counts: all weights are 0")]
    Nothing,
}

impl ExampleProblem {
    /// A value that is not what it must be.
    pub(super) fn value(what: impl ToString, found: impl ToString, expected: impl ToString) -> Self {
        Self::Value { what: what.to_string(), found: found.to_string(), expected: expected.to_string() }
    }
}

impl From<crate::WeightsError> for TrainError {
    fn from(error: crate::WeightsError) -> Self {
        Self::Model(error.into())
    }
}

impl TrainError {
    /// A setting outside its range.
    pub(super) fn setting(setting: &'static str, found: impl ToString, expected: impl ToString) -> Self {
        Self::Setting { setting, found: found.to_string(), expected: expected.to_string() }
    }
}
