use serde::{Deserialize, Serialize};

use crate::{Layer, Signal};

/// What a [`Backbone`](crate::Backbone) says of the model behind it; enough to tell two models apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Folder name or hub id; for people, not for comparison.
    pub name: String,
    /// Hub revision (commit), where one is known.
    pub revision: Option<String>,
    /// Hash that identifies configuration, tokenizer, template and weights.
    pub fingerprint: String,
    /// Family tag, e.g. `qwen3` (`model_type` in `config.json`).
    pub family: String,
    /// Number of blocks. Layers run from 0 to `n_layers`, both included.
    pub n_layers: usize,
    /// Width of a state.
    pub d_model: usize,
    /// Query heads of a block's attention.
    pub n_heads: usize,
    /// Number of rows of the output head.
    pub d_vocab: usize,
    /// Longest prompt plus new tokens, in tokens.
    pub max_len: usize,
    /// Arithmetic of the weights, e.g. `f32` or `bf16`.
    pub dtype: String,
    /// Where it runs, with what decides about the last bits of a result: e.g. `cpu`, `cpu (avx512-bf16)` or `cuda:0`.
    pub device: String,
}

impl ModelInfo {
    /// All layers, `Layer(0)` to `Layer(n_layers)`.
    pub fn layers(&self) -> Vec<Layer> {
        (0..=self.n_layers).map(Layer).collect()
    }

    /// How many numbers a signal is.
    pub fn width(&self, signal: Signal) -> usize {
        match signal {
            Signal::State(_) => self.d_model,
            Signal::AttentionEntropy => self.n_heads,
        }
    }
}
