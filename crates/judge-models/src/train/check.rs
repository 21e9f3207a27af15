//! Checks before any work. `Trainer` calls them; what runs after them relies on their ranges.

use judge_core::request::TokenId;

use super::example::Example;
use super::problem::TrainProblem;
use super::settings::TrainSettings;
use crate::Error;
use crate::arch::{HeadSpec, MlpSpec, ModelSpec};

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
/// there is no table of token inputs, norms have no biases, and next tokens are predicted.
pub(super) fn check_model(config: &ModelSpec) -> Result<(), Error> {
    let (blocks, family) = (&config.blocks, config.family);
    let problem = if blocks.iter().any(|block| !matches!(block.mlp, None | Some(MlpSpec::Dense(_)))) {
        TrainProblem::Experts { family }
    } else if config.token_inputs.is_some() || blocks.iter().any(|block| block.scalar.is_some()) {
        TrainProblem::Fixed { family }
    } else if config.norm.bias.is_some() {
        TrainProblem::Old { family }
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
