//! The state of a training run: the parameters, the optimiser's moments and the number of steps done.
//!
//! `step.rs` moves it, `checkpoint.rs` keeps it.

use std::sync::Arc;

use judge_core::request::TokenId;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde_json::Value;

use super::check;
use super::host::{host_values, token_data};
use super::parameter::{Parameter, initial};
use super::settings::TrainSettings;
use crate::Error;
use crate::arch::ModelSpec;
use crate::engine::tensor::decoder::{Decoder, Pass};
use crate::engine::tensor::rotation::Rotation;

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
    pub(super) config: Arc<ModelSpec>,
    /// The configuration as it was given, which a checkpoint must agree with.
    pub(super) config_json: Value,
    /// How it learns; checked, and the same from the first step to the last.
    pub(super) settings: TrainSettings,
    /// All tensors of the model, in the order of `ModelSpec::tensors`, which initial values and
    /// checkpoints follow.
    pub(super) parameters: Vec<Parameter>,
    /// Steps taken, those before a checkpoint included.
    pub(super) steps_done: u64,
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
        check::check_model(&config)?;
        check::check_settings(&settings)?;
        let mut rng = ChaCha8Rng::seed_from_u64(settings.seed);
        let parameters = config
            .tensors()
            .into_iter()
            .map(|(name, shape)| {
                let values = initial(&config, settings.init_spread, &name, &shape, &mut rng);
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

    /// Logits of `labels` after the last of `tokens`, shape `[labels.len()]`, with the parameters
    /// as they are now: products of the normed last state with the head's rows, in f32, without the
    /// final soft-cap, like the label logits of a loaded model.
    ///
    /// # Errors
    /// If there are no tokens or no labels, more of either than the context holds, or one that is
    /// not in the vocabulary.
    pub fn label_logits(&self, tokens: &[TokenId], labels: &[TokenId]) -> Result<Vec<f32>, Error> {
        check::check_tokens(tokens, 1, &self.config)?;
        check::check_tokens(labels, 1, &self.config)?;
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

    /// The decoder with the parameters as they are now, on a device with or without autodiff.
    /// Copies all of them.
    pub(super) fn decoder(&self, device: &burn::tensor::Device) -> Result<Decoder, Error> {
        Decoder::new(Arc::clone(&self.config), device, &mut |name, _| {
            let found = self.parameters.iter().find(|parameter| parameter.name == name);
            found
                .map(|parameter| parameter.values.clone())
                .ok_or_else(|| Error::TensorNames { missing: vec![name.to_owned()], unused: Vec::new() })
        })
    }
}
