//! Why a model cannot be trained, and the checks that say so before any work. `Trainer` calls them;
//! what runs behind them relies on their ranges.

use std::path::PathBuf;

use judge_core::request::TokenId;

use super::{Example, TrainSettings};
use crate::Error;
use crate::arch::{HeadSpec, MlpSpec, ModelSpec};

/// Why a model cannot be trained.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainProblem {
    /// A setting is outside its range.
    #[error("{setting} is {found}, expected {expected}")]
    Setting {
        /// Its path in [`TrainSettings`], such as `optimizer.beta1`.
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

/// Every number of the settings is in its range; the error names the first that is not.
pub(super) fn check_settings(settings: &TrainSettings) -> Result<(), Error> {
    let positive = |x: f64| x.is_finite() && x > 0.0;
    let fraction = |x: f64| (0.0..1.0).contains(&x);
    let checks = [
        ("optimizer.beta1", settings.optimizer.beta1, fraction(settings.optimizer.beta1), "at least 0 and below 1"),
        ("optimizer.beta2", settings.optimizer.beta2, fraction(settings.optimizer.beta2), "at least 0 and below 1"),
        ("optimizer.epsilon", settings.optimizer.epsilon, positive(settings.optimizer.epsilon), "a positive number"),
        (
            "optimizer.weight_decay",
            settings.optimizer.weight_decay,
            settings.optimizer.weight_decay == 0.0 || positive(settings.optimizer.weight_decay),
            "0 or a positive number",
        ),
        ("schedule.peak", settings.schedule.peak, positive(settings.schedule.peak), "a positive number"),
        ("schedule.floor", settings.schedule.floor, (0.0..=1.0).contains(&settings.schedule.floor), "0 to 1"),
        ("max_grad_norm", settings.max_grad_norm, positive(settings.max_grad_norm), "a positive number"),
        ("init_spread", settings.init_spread, positive(settings.init_spread), "a positive number"),
        ("shards", settings.shards as f64, settings.shards > 0, "at least 1"),
    ];
    match checks.into_iter().find(|check| !check.2) {
        None => Ok(()),
        Some((setting, found, _, expected)) => {
            Err(Error::Train { problem: TrainProblem::Setting { setting, found, expected } })
        }
    }
}

/// Every number of the model can be learnt here: all MLPs are dense, blocks have no fixed factors,
/// there is no table of token inputs, and next tokens are predicted.
pub(super) fn check_model(config: &ModelSpec) -> Result<(), Error> {
    let (blocks, family) = (&config.blocks, config.family);
    let problem = if blocks.iter().any(|block| !matches!(block.mlp, MlpSpec::Dense(_))) {
        TrainProblem::Experts { family }
    } else if config.token_inputs.is_some() || blocks.iter().any(|block| block.scalar.is_some()) {
        TrainProblem::Fixed { family }
    } else if !matches!(config.head, HeadSpec::Own(_) | HeadSpec::Embedding) {
        TrainProblem::NoHead { family }
    } else {
        return Ok(());
    };
    Err(Error::Train { problem })
}

/// The batch has examples, and each is as [`Example`] says.
pub(super) fn check_batch(batch: &[Example], config: &ModelSpec) -> Result<(), Error> {
    let fault = |problem| Err(Error::Train { problem });
    if batch.is_empty() {
        return fault(TrainProblem::EmptyBatch);
    }
    for Example { tokens, weights } in batch {
        check_tokens(tokens, 2, config)?;
        if tokens.len() != weights.len() {
            return fault(TrainProblem::Weights { tokens: tokens.len(), weights: weights.len() });
        }
        if let Some(at) = weights.iter().position(|weight| !weight.is_finite() || *weight < 0.0) {
            return fault(TrainProblem::Weight { at, found: weights[at] });
        }
    }
    Ok(())
}

/// At least `least` tokens, at most the context, all in the vocabulary.
pub(super) fn check_tokens(tokens: &[TokenId], least: usize, config: &ModelSpec) -> Result<(), Error> {
    if tokens.len() < least || tokens.len() > config.max_len {
        return Err(Error::Train {
            problem: TrainProblem::Length { found: tokens.len(), least, most: config.max_len },
        });
    }
    match tokens.iter().find(|&&token| token as usize >= config.d_vocab) {
        None => Ok(()),
        Some(&found) => Err(Error::Train { problem: TrainProblem::Token { found, d_vocab: config.d_vocab } }),
    }
}
