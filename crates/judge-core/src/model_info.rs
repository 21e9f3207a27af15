use serde::{Deserialize, Serialize};

use crate::{Layer, request::Signal};

/// What is known of any model, one behind a service included. What is not known is `None`; nothing is made up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ModelIdentity {
    /// Folder name, hub id, or the name that the service goes by.
    pub name: String,
    /// Hub revision, or the version that the service states.
    pub revision: Option<String>,
    /// Hash that identifies configuration, tokenizer, template and weights, where they can be seen.
    pub fingerprint: Option<String>,
    /// Longest prompt plus new tokens, in tokens.
    pub max_len: Option<usize>,
}

impl ModelIdentity {
    /// A model of which only the name is known.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// What a [`Backbone`](crate::Backbone) says of the model behind it; enough to tell two models apart.
///
/// Made with [`ModelInfo::new`]: fields may be added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelInfo {
    /// Folder name or hub id; for people, not for comparison.
    pub name: String,
    /// Hub revision (commit), where one is known.
    pub revision: Option<String>,
    /// Hash that identifies configuration, tokenizer, template and weights. It may rest on a sample of each large tensor; the backbone's
    /// documentation says so. Compare two with [`same_fingerprint`].
    pub fingerprint: String,
    /// Family tag, e.g. `qwen3` (`model_type` in `config.json`).
    pub family: String,
    /// Number of blocks. Layers run from 0 to `n_layers`, both included.
    pub n_layers: usize,
    /// Width of a state.
    pub d_model: usize,
    /// Query heads of a block's attention.
    pub n_heads: usize,
    /// Number of rows of the output head; of the embedding in a model without one.
    pub d_vocab: usize,
    /// Longest prompt plus new tokens, in tokens.
    pub max_len: usize,
    /// Arithmetic of the weights, e.g. `f32` or `bf16`.
    pub dtype: String,
    /// Where it runs, with what decides about the last bits of a result: e.g. `cpu`, `cpu (avx512-bf16)` or `cuda:0`.
    pub device: String,
    /// `c`, where the model makes `c * tanh(z / c)` of a logit before it chooses a token (Gemma 2). Label logits are without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_soft_cap: Option<f64>,
    /// What a user should know of how it was loaded, in sentences: bits of the weights that were lost without being asked for, for example.
    /// Empty for most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Whether two [fingerprints](ModelInfo::fingerprint) are of one model, like compared with like. One that covers all bytes of the weights
/// is written `full:ALL/SAMPLE`, with that of a sample behind it: two such are the same if all bytes are, and one of them is the same as
/// one of a sample if the samples are.
///
/// ```
/// use judge_core::model::same_fingerprint;
///
/// assert!(same_fingerprint("5eed", "5eed") && !same_fingerprint("5eed", "beef"));
/// assert!(same_fingerprint("full:a11/5eed", "5eed") && same_fingerprint("5eed", "full:a11/5eed"));
/// assert!(!same_fingerprint("full:a11/5eed", "full:b0b/5eed"));
/// ```
#[must_use]
pub fn same_fingerprint(one: &str, other: &str) -> bool {
    let parts = |text: &str| -> (Option<String>, Option<String>) {
        match text.strip_prefix("full:").map(|full| full.split_once('/').unwrap_or((full, ""))) {
            Some((all, sample)) => (Some(all.to_owned()), Some(sample.to_owned()).filter(|sample| !sample.is_empty())),
            None => (None, Some(text.to_owned())),
        }
    };
    match (parts(one), parts(other)) {
        ((Some(one), _), (Some(other), _)) => one == other,
        ((_, one), (_, other)) => one.is_some() && one == other,
    }
}

/// The dimensions of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimensions {
    /// Number of blocks.
    pub n_layers: usize,
    /// Width of a state.
    pub d_model: usize,
    /// Query heads of a block's attention.
    pub n_heads: usize,
    /// Number of rows of the output head; of the embedding in a model without one.
    pub d_vocab: usize,
    /// Longest prompt plus new tokens, in tokens.
    pub max_len: usize,
}

impl ModelInfo {
    /// A model of the given name, fingerprint and dimensions, in `f32` on the CPU, of an unnamed family. Other fields are set afterwards.
    pub fn new(name: impl Into<String>, fingerprint: impl Into<String>, dimensions: Dimensions) -> Self {
        let Dimensions { n_layers, d_model, n_heads, d_vocab, max_len } = dimensions;
        Self {
            name: name.into(),
            revision: None,
            fingerprint: fingerprint.into(),
            family: String::new(),
            n_layers,
            d_model,
            n_heads,
            d_vocab,
            max_len,
            dtype: "f32".to_owned(),
            device: "cpu".to_owned(),
            final_soft_cap: None,
            notes: Vec::new(),
        }
    }

    /// What can be said of it as of any model.
    pub fn identity(&self) -> ModelIdentity {
        ModelIdentity {
            name: self.name.clone(),
            revision: self.revision.clone(),
            fingerprint: Some(self.fingerprint.clone()),
            max_len: Some(self.max_len),
        }
    }

    /// All layers, `Layer(0)` to `Layer(n_layers)`.
    pub fn layers(&self) -> Vec<Layer> {
        (0..=self.n_layers).map(Layer).collect()
    }

    /// How many numbers a signal is.
    pub fn width(&self, signal: Signal) -> usize {
        match signal {
            Signal::State(_) | Signal::Reply(_) => self.d_model,
            Signal::AttentionEntropy => self.n_heads,
        }
    }
}
