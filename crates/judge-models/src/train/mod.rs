//! Next-token training of a small decoder: the decoder that inference runs, with Burn's autodiff
//! under it.
//!
//! [`Trainer`] owns the parameters, the optimiser's moments and the number of steps done, all as
//! host numbers. A checkpoint is therefore exactly its state, and a run that was stopped resumes
//! bit for bit. It is for models of a few million parameters on the CPU: every step builds the
//! decoder anew from the host's copy.
//!
//! ```text
//! step(batch) ─► problem      checks the batch
//!             ─► gradients    one thread for each shard of the batch: loss, and d loss / d parameter
//!             ─► sum in the order of shards, / examples, scaled down to max_grad_norm
//!             ─► adamw        moves each parameter, at the rate of schedule
//! save, resume, export ─► checkpoint
//! ```
//!
//! Batches are the caller's: what is read, in what order and how it is tokenised is not known here,
//! and not part of a checkpoint.

mod adamw;
mod checkpoint;
mod gradients;
mod problem;
mod schedule;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData};
use judge_core::request::TokenId;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::Serialize;
use serde_json::Value;

use crate::arch::ModelSpec;
use crate::engine::tensor::decoder::{Decoder, Pass};
use crate::engine::tensor::rotation::Rotation;
use crate::{Dtype, Error};

pub use adamw::AdamW;
pub use problem::TrainProblem;
pub use schedule::Schedule;

/// How a [`Trainer`] learns. [`Trainer::new`] checks the ranges.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrainSettings {
    /// The optimiser.
    pub optimizer: AdamW,
    /// The learning rate over time.
    pub schedule: Schedule,
    /// Gradients with a larger Euclidean norm over all parameters are scaled down to it. Positive;
    /// by default 1.
    pub max_grad_norm: f64,
    /// Standard deviation of the initial matrices; those that write into the residual stream get it
    /// divided by `sqrt(2 * n_layers)`, as GPT-2 has it. Positive; by default 0.02.
    pub init_spread: f64,
    /// Seed of the initial parameters, by default 0. Nothing else is random.
    pub seed: u64,
    /// A batch is cut into at most this many parts of whole examples, each on a thread of its own;
    /// their gradients are added in order, so the result depends on this number, but not on what
    /// the machine does. At least 1, by default 2.
    pub shards: usize,
}

impl Default for TrainSettings {
    fn default() -> Self {
        Self {
            optimizer: AdamW::default(),
            schedule: Schedule::default(),
            max_grad_norm: 1.0,
            init_spread: 0.02,
            seed: 0,
            shards: 2,
        }
    }
}

/// A sequence to learn from.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The tokens: at least two, at most the model's context, all in the vocabulary.
    pub tokens: Vec<TokenId>,
    /// For each token how much its cross-entropy, given the tokens before it, counts. Finite and
    /// not negative, shape `[tokens.len()]`; nothing precedes the first token, so its weight is not
    /// used.
    pub weights: Vec<f32>,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepReport {
    /// Weighted cross-entropy before the step, in nats, summed over tokens and divided by the
    /// number of examples.
    pub loss: f64,
    /// Euclidean norm of that loss's gradient over all parameters, before it was scaled down.
    pub grad_norm: f64,
    /// The learning rate that was used.
    pub learning_rate: f64,
}

/// One tensor of the checkpoint that is being made, and the optimiser's moments of it. The three
/// lists are row-major and of the same length.
#[derive(Clone, Debug, PartialEq)]
struct Parameter {
    /// Its name in a Hugging Face folder.
    name: String,
    /// Its shape there.
    shape: Vec<usize>,
    /// The numbers that are learnt.
    values: Vec<f32>,
    /// Running mean of the gradient, from 0.
    mean: Vec<f32>,
    /// Running mean of the gradient's square, from 0.
    square: Vec<f32>,
}

/// A decoder in training. It owns everything that a step depends on but the batch; a clone trains
/// on its own.
///
/// ```
/// use judge_models::train::{Example, TrainSettings, Trainer};
///
/// let config = r#"{"model_type": "llama", "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
///     "vocab_size": 11, "rms_norm_eps": 1e-6, "max_position_embeddings": 32, "tie_word_embeddings": true}"#;
/// let mut trainer = Trainer::new(config, TrainSettings::default())?;
/// let example = Example { tokens: vec![1, 2, 3], weights: vec![0.0, 1.0, 1.0] };
/// let report = trainer.step(&[example])?;
/// assert!((report.loss - 2.0 * 11f64.ln()).abs() < 0.1); // untrained: every token is as likely
/// # Ok::<(), judge_models::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Trainer {
    /// What `config_json` describes.
    config: Arc<ModelSpec>,
    /// The configuration as it was given, which a checkpoint must agree with.
    config_json: Value,
    /// How it learns; checked, and the same from the first step to the last.
    settings: TrainSettings,
    /// All tensors of the model, in the order of `ModelSpec::tensors`, which initial values and
    /// checkpoints follow.
    parameters: Vec<Parameter>,
    /// Steps taken, those before a checkpoint included.
    steps_done: u64,
}

impl Trainer {
    /// A decoder with random parameters, as the text of a `config.json` describes it. The same text
    /// and settings give the same parameters on every machine.
    ///
    /// # Errors
    /// If the text is not JSON or describes no model that this crate builds, the model has experts,
    /// or a setting is out of range.
    pub fn new(config_json: &str, settings: TrainSettings) -> Result<Self, Error> {
        let path = || "config.json".into();
        let config_json: Value =
            serde_json::from_str(config_json).map_err(|source| Error::Json { path: path(), source })?;
        let config = ModelSpec::from_json(&config_json).map_err(|problem| Error::Config { path: path(), problem })?;
        problem::check_model(&config)?;
        problem::check_settings(&settings)?;
        let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
        let parameters = config
            .tensors()
            .into_iter()
            .map(|(name, shape)| {
                let values = initial(&config, &settings, &name, &shape, &mut rng);
                let zeros = vec![0.0; values.len()];
                Parameter { name, shape, values, mean: zeros.clone(), square: zeros }
            })
            .collect();
        Ok(Self { config: Arc::new(config), config_json, settings, parameters, steps_done: 0 })
    }

    /// How many steps were taken, those before a checkpoint included.
    #[must_use]
    pub fn steps_done(&self) -> u64 {
        self.steps_done
    }

    /// How many numbers are learnt.
    #[must_use]
    pub fn n_parameters(&self) -> usize {
        self.parameters.iter().map(|parameter| parameter.values.len()).sum()
    }

    /// Moves the parameters against the gradient of the batch's loss: the examples' weighted
    /// cross-entropies, summed over tokens and divided by the number of examples.
    ///
    /// # Errors
    /// If the batch is empty, an example is not what [`Example`] says, or loss or gradient are not
    /// finite; the parameters are then as before.
    pub fn step(&mut self, batch: &[Example]) -> Result<StepReport, Error> {
        problem::check_batch(batch, &self.config)?;
        let part = batch.len().div_ceil(self.settings.shards);
        let parts: Vec<&[Example]> = batch.chunks(part).collect();
        let this = &*self;
        let results = std::thread::scope(|scope| {
            let running: Vec<_> =
                parts.iter().map(|part| scope.spawn(move || gradients::of_part(this, part))).collect();
            running.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
        });
        let (mut loss, mut sum) = (0.0, Vec::new());
        for result in results {
            let (part_loss, part_sum) = match result {
                Ok(result) => result?,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            loss += part_loss;
            if sum.is_empty() {
                sum = part_sum;
            } else {
                for (all, one) in sum.iter_mut().flatten().zip(part_sum.iter().flatten()) {
                    *all += one;
                }
            }
        }
        let n = batch.len() as f64;
        let loss = loss / n;
        let square: f64 = sum.iter().flatten().map(|&g: &f32| f64::from(g).powi(2)).sum();
        let grad_norm = square.sqrt() / n;
        if !loss.is_finite() || !grad_norm.is_finite() {
            return Err(Error::Train { problem: TrainProblem::Diverged { step: self.steps_done, loss, grad_norm } });
        }
        let cut = (self.settings.max_grad_norm / grad_norm).min(1.0);
        let learning_rate = self.settings.schedule.learning_rate(self.steps_done);
        self.steps_done += 1;
        for (parameter, gradient) in self.parameters.iter_mut().zip(&sum) {
            let factor = (cut / n) as f32;
            self.settings.optimizer.update(parameter, gradient, factor, learning_rate, self.steps_done);
        }
        Ok(StepReport { loss, grad_norm, learning_rate })
    }

    /// Logits of `labels` after the last of `tokens`, shape `[labels.len()]`, with the parameters
    /// as they are now: products of the normed last state with the head's rows, in f32, without the
    /// final soft-cap, like the label logits of a loaded model.
    ///
    /// # Errors
    /// If there are no tokens or no labels, more of either than the context holds, or one that is
    /// not in the vocabulary.
    pub fn label_logits(&self, tokens: &[TokenId], labels: &[TokenId]) -> Result<Vec<f32>, Error> {
        problem::check_tokens(tokens, 1, &self.config)?;
        problem::check_tokens(labels, 1, &self.config)?;
        let device = burn::tensor::Device::flex();
        let decoder = self.decoder(&device)?;
        let rotation = Rotation::new(&self.config.ropes, tokens.len(), &device);
        let ids = token_data(tokens.iter().copied(), [1, tokens.len()]);
        let Some(states) =
            decoder.forward(ids, &[rotation], Pass::default(), &mut |_, _| std::ops::ControlFlow::Continue(()))
        else {
            return Err(Error::NothingRead);
        };
        let [_, seq, d_model] = states.dims();
        // [1, seq, d_model] -> [1, 1, d_model] -> [1, d_model] -> [1, labels]
        let last = decoder.final_norm(states.narrow(1, seq - 1, 1)).reshape([1, d_model]);
        let logits = last.matmul(decoder.head_rows(labels).transpose());
        Ok(host_values(logits))
    }

    /// Writes everything that the next step depends on, but for the batches, to one file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), Error> {
        checkpoint::save(self, path)
    }

    /// Resumes from a file that [`save`](Self::save) wrote with the same configuration and
    /// settings.
    ///
    /// # Errors
    /// If the file cannot be read, is not a checkpoint, or is one of another configuration or other
    /// settings; the trainer is then as before.
    pub fn resume(&mut self, path: &Path) -> Result<(), Error> {
        checkpoint::resume(self, path)
    }

    /// Writes the parameters as a Hugging Face folder's `model.safetensors`, rounded to `dtype` (to
    /// nearest, ties to even). The same parameters give the same bytes.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn export(&self, path: &Path, dtype: Dtype) -> Result<(), Error> {
        checkpoint::export(self, path, dtype)
    }

    /// The decoder with the parameters as they are now, on a device with or without autodiff.
    /// Copies all of them.
    fn decoder(&self, device: &burn::tensor::Device) -> Result<Decoder, Error> {
        Decoder::new(Arc::clone(&self.config), device, &mut |name, _| {
            let found = self.parameters.iter().find(|parameter| parameter.name == name);
            found
                .map(|parameter| parameter.values.clone())
                .ok_or_else(|| Error::TensorNames { missing: vec![name.to_owned()], unused: Vec::new() })
        })
    }
}

/// The first values of a tensor. Matrices get noise around 0; norms start as the identity, which is
/// 1, or 0 where the family adds an offset of 1; biases and other vectors start at 0.
fn initial(
    config: &ModelSpec,
    settings: &TrainSettings,
    name: &str,
    shape: &[usize],
    rng: &mut ChaCha8Rng,
) -> Vec<f32> {
    let len = shape.iter().product();
    if shape.len() == 1 {
        let is_norm = name.ends_with("norm.weight");
        // The norm of a delta rule has no offset.
        let is_plain = config.blocks.iter().flat_map(|block| &block.delta).any(|delta| delta.norm == name);
        return vec![if is_norm && (is_plain || config.norm.offset == 0.0) { 1.0 } else { 0.0 }; len];
    }
    let into_residual = name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight");
    let spread = if into_residual {
        settings.init_spread / (2.0 * config.n_layers() as f64).sqrt()
    } else {
        settings.init_spread
    };
    let mut uniform = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    // Twelve uniform draws have variance 1: near enough to normal, and the same on every machine.
    (0..len).map(|_| (((0..12).map(|_| uniform()).sum::<f64>() - 6.0) * spread) as f32).collect()
}

/// Token ids as a tensor of the given shape, which must have as many places.
fn token_tensor<const D: usize>(
    ids: impl Iterator<Item = TokenId>,
    shape: [usize; D],
    device: &burn::tensor::Device,
) -> Tensor<D, Int> {
    Tensor::from_data(token_data(ids, shape), device)
}

/// Token ids on the host in the given shape, which must have as many places.
fn token_data<const D: usize>(ids: impl Iterator<Item = TokenId>, shape: [usize; D]) -> TensorData {
    TensorData::new(ids.map(i64::from).collect::<Vec<_>>(), shape)
}

/// A float tensor's values, row-major.
fn host_values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    // The CPU device's only float type here is f32; `iter` converts were it another.
    tensor.into_data().convert::<f32>().iter::<f32>().collect()
}
