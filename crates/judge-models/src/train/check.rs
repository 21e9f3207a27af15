//! Checks before any work. `Trainer` calls them; what runs after them relies on their ranges.

use std::path::Path;

use judge_arch::{Architecture, MlpSpec};
use judge_core::Layer;
use judge_core::model::Dimensions;
use judge_core::request::TokenId;

use super::error::{ExampleProblem, TrainError};
use super::schedule::Course;
use super::settings::TrainSettings;
use super::tuning::Tuning;

/// How far the sum of a target's probabilities may be from 1.
const TOLERANCE: f64 = 1e-4;

/// Every number of the settings is in its range; the error names the first that is not. Those of an adapter
/// are checked where it is made.
pub(super) fn check_settings(settings: &TrainSettings) -> Result<(), TrainError> {
    let positive = |x: f64| x.is_finite() && x > 0.0;
    let fraction = |x: f64| (0.0..1.0).contains(&x);
    let (adamw, schedule) = (&settings.optimizer, &settings.schedule);
    let floor = match schedule.course {
        Course::Eased { floor } => floor,
        _ => 0.0,
    };
    let norm = settings.max_grad_norm.unwrap_or(1.0);
    let at_once = settings.blocks_at_once.unwrap_or(1);
    let checks = [
        ("optimizer.beta1", adamw.beta1, fraction(adamw.beta1), "at least 0 and below 1"),
        ("optimizer.beta2", adamw.beta2, fraction(adamw.beta2), "at least 0 and below 1"),
        ("optimizer.epsilon", adamw.epsilon, positive(adamw.epsilon), "a positive number"),
        (
            "optimizer.weight_decay",
            adamw.weight_decay,
            adamw.weight_decay == 0.0 || positive(adamw.weight_decay),
            "0 or a positive number",
        ),
        ("schedule.peak", schedule.peak, positive(schedule.peak), "a positive number"),
        ("schedule.steps", schedule.steps as f64, schedule.steps > 0, "at least 1"),
        ("schedule.course.floor", floor, (0.0..=1.0).contains(&floor), "0 to 1"),
        ("max_grad_norm", norm, positive(norm), "a positive number"),
        ("micro_batch", settings.micro_batch as f64, settings.micro_batch > 0, "at least 1"),
        ("blocks_at_once", at_once as f64, at_once > 0, "at least 1"),
        ("threads", settings.threads as f64, settings.threads > 0, "at least 1"),
    ];
    if let Some((setting, found, _, expected)) = checks.into_iter().find(|check| !check.2) {
        return Err(TrainError::setting(setting, found, expected));
    }
    if schedule.warmup > schedule.steps {
        let most = format!("at most the {} steps of the run", schedule.steps);
        return Err(TrainError::setting("schedule.warmup", schedule.warmup, most));
    }
    Ok(())
}

/// Every number that is to be learnt can be learnt here: all MLPs are dense, blocks have no fixed factors,
/// there is no table of token inputs, norms have no biases, layers have no heads of their own, and the folder's names are
/// the model's own.
/// Of an encoder, no scores by relative position.
pub(super) fn check_model(spec: &Architecture, tuning: &Tuning) -> Result<(), TrainError> {
    let spec = match spec {
        Architecture::Decoder(spec) => spec,
        Architecture::Encoder(spec) if spec.relative.is_some() => {
            let reason = "their scores by relative position are computed without gradients";
            return Err(TrainError::Family { family: spec.family, reason });
        }
        Architecture::Encoder(_) => return Ok(()),
    };
    let blocks = &spec.blocks;
    let reason = if blocks.iter().any(|block| !matches!(block.mlp, None | Some(MlpSpec::Dense(_)))) {
        "nothing here keeps a router from sending all rows to the same few experts"
    } else if spec.token_inputs.is_some() || blocks.iter().any(|block| block.scalar.is_some()) {
        "their blocks have fixed factors or rows of a table for each token"
    } else if spec.norm.bias.is_some() {
        "their norms have biases, and their folders fuse projections in an order of their own"
    } else if spec.labels().is_some_and(|head| head.inner.is_some()) {
        "their layers have heads of their own, which are read and not trained"
    } else if spec.is_tower && matches!(tuning, Tuning::Lora(_)) {
        "an adapter would need the names of the vision-language folder; judge merge writes the text model's own"
    } else {
        return Ok(());
    };
    Err(TrainError::Family { family: spec.family, reason })
}

/// A file of states is of use: there are blocks below the lowest one that is learnt, and nothing is read below.
pub(super) fn check_states(path: &Path, first_block: usize, layers: &[Layer]) -> Result<(), TrainError> {
    let expected = match layers.iter().find(|layer| layer.0 < first_block) {
        Some(layer) => format!("no file where the loss reads {layer}, below block {first_block}"),
        None if first_block == 0 => "no file where the lowest block is learnt".to_owned(),
        None => return Ok(()),
    };
    Err(TrainError::setting("states", path.display(), expected))
}

/// What tokens, sequences and layers there are in a model.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Tokens of the vocabulary.
    pub(super) d_vocab: usize,
    /// Longest sequence.
    pub(super) max_len: usize,
    /// Blocks, so the number of the last layer.
    pub(super) n_layers: usize,
    /// Types of tokens by which the texts of a pair are told apart; 0 where all tokens are of one type.
    pub(super) types: usize,
}

impl Limits {
    /// Those of a description.
    pub(super) fn of(spec: &Architecture) -> Self {
        let Dimensions { d_vocab, max_len, n_layers, .. } = spec.dimensions();
        let types = match spec {
            Architecture::Encoder(spec) => spec.embedding.types.as_ref().filter(|types| types.of_pairs),
            Architecture::Decoder(_) => None,
        };
        Self { d_vocab, max_len, n_layers, types: types.map_or(0, |types| types.rows) }
    }
}

/// At least `least` tokens, at most the context, all in the vocabulary.
pub(super) fn check_tokens(tokens: &[TokenId], least: usize, limits: Limits) -> Result<(), ExampleProblem> {
    if tokens.len() < least || tokens.len() > limits.max_len {
        return Err(ExampleProblem::Length { found: tokens.len(), least, most: limits.max_len });
    }
    match tokens.iter().find(|&&token| token as usize >= limits.d_vocab) {
        None => Ok(()),
        Some(token) => {
            Err(ExampleProblem::value("a token", token, format!("one below the vocabulary's {}", limits.d_vocab)))
        }
    }
}

/// No types, or one for each of so many tokens, all in the model's table.
pub(super) fn check_types(types: &[u32], tokens: usize, limits: Limits) -> Result<(), ExampleProblem> {
    let expected = if limits.types == 0 { 0 } else { tokens };
    if !types.is_empty() && types.len() != expected {
        return Err(ExampleProblem::Count { what: "types of tokens", expected, found: types.len() });
    }
    match types.iter().find(|&&kind| kind as usize >= limits.types) {
        None => Ok(()),
        Some(kind) => {
            Err(ExampleProblem::value("the type of a token", kind, format!("one below the model's {}", limits.types)))
        }
    }
}

/// A list of numbers that are finite and not negative, as long as it should be.
pub(super) fn check_numbers(what: &'static str, numbers: &[f32], expected: usize) -> Result<(), ExampleProblem> {
    if numbers.len() != expected {
        return Err(ExampleProblem::Count { what, expected, found: numbers.len() });
    }
    match numbers.iter().position(|x| !x.is_finite() || *x < 0.0) {
        None => Ok(()),
        Some(at) => Err(ExampleProblem::value(format!("{what} {at}"), numbers[at], "a finite number of at least 0")),
    }
}

/// A target has a probability for each of so many labels, and they add up to 1.
pub(super) fn check_target(target: &[f32], labels: usize) -> Result<(), ExampleProblem> {
    check_numbers("probabilities", target, labels)?;
    let sum: f64 = target.iter().map(|&p| f64::from(p)).sum();
    match (sum - 1.0).abs() > TOLERANCE {
        true => Err(ExampleProblem::value("the sum of the target's probabilities", sum, 1)),
        false => Ok(()),
    }
}
