//! How a trainer learns.

use std::path::PathBuf;

use serde::Serialize;

use super::adamw::AdamW;
use super::schedule::Schedule;
use super::tuning::Tuning;

/// How a [`Trainer`](super::Trainer) learns. [`Trainer::new`](super::Trainer::new) checks the ranges.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrainSettings {
    /// What is learnt; by default a low-rank adapter of all projections.
    pub tuning: Tuning,
    /// The optimiser.
    pub optimizer: AdamW,
    /// The learning rate over time.
    pub schedule: Schedule,
    /// Gradients with a larger Euclidean norm over all that is learnt are scaled down to it, as
    /// `torch.nn.utils.clip_grad_norm_` does. Positive; `None` for no bound. By default 1.
    pub max_grad_norm: Option<f64>,
    /// What a batch's loss is divided by.
    pub mean: Mean,
    /// A batch is cut into parts of at most so many examples, whose gradients are added in order. So the
    /// result depends on this number by rounding, and the memory of a step on it alone, whatever the batch's
    /// size. At least 1, by default 8.
    pub micro_batch: usize,
    /// Blocks whose activations are kept at once; `None`, the default, for all. With a number a pass keeps what goes
    /// into every so many blocks and computes these blocks again on the way back, from the top down: memory is
    /// that of these inputs and of so many blocks, and time grows by up to one more forward pass. It changes
    /// rounding alone. At least 1.
    pub blocks_at_once: Option<usize>,
    /// Micro-batches that are computed side by side. It changes no bit, and is no part of a checkpoint. At
    /// least 1, by default 2.
    #[serde(skip)]
    pub threads: usize,
    /// A file that keeps what goes into the lowest block that is learnt, for each sequence, so that the blocks below run
    /// once for it and not in every epoch: `4 * d_model` bytes for each token. It is made if it is not there, and may
    /// be deleted after the run. It changes no bit, and is no part of a checkpoint. `None`, the default: lower blocks
    /// run whenever a sequence is seen.
    #[serde(skip)]
    pub states: Option<PathBuf>,
    /// Whether an adapter's folder names its base by the place where it lies (`base_model_name_or_path`), by default yes; not
    /// where that place is gone afterwards, as a temporary folder is. It is no part of a checkpoint.
    #[serde(skip)]
    pub names_base: bool,
    /// Seed of an adapter's first factors and of an encoder's new head, by default 0. Nothing else here is random: there
    /// is no dropout.
    pub seed: u64,
    /// What the batches are made of and their order, in the caller's words, such as a hash: a checkpoint of
    /// other data is refused. By default empty.
    pub data: String,
}

/// What the sum of a batch's losses is divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mean {
    /// The count of what the loss adds up: target tokens by their weights, or examples. As transformers does
    /// over a global batch.
    #[default]
    Counted,
    /// The number of examples.
    Examples,
}

impl Default for TrainSettings {
    fn default() -> Self {
        Self {
            tuning: Tuning::default(),
            optimizer: AdamW::default(),
            schedule: Schedule::default(),
            max_grad_norm: Some(1.0),
            mean: Mean::default(),
            micro_batch: 8,
            blocks_at_once: None,
            threads: 2,
            states: None,
            names_base: true,
            seed: 0,
            data: String::new(),
        }
    }
}
