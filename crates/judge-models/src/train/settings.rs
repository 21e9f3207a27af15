//! How a trainer learns.

use serde::Serialize;

use super::adamw::AdamW;
use super::schedule::Schedule;

/// How a [`Trainer`](super::Trainer) learns. [`Trainer::new`](super::Trainer::new) checks the ranges.
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
