//! The description of an encoder: what it is built from, and what its tensors are called.

use judge_core::TokenId;

use super::rope::RopeConfig;
use super::spec::{Activation, LinearSpec, NamedShape};

/// What an encoder is built from: a transformer whose positions all see one another, so that nothing is written behind a text. Families differ in this data
/// alone.
///
/// It names tensors as a folder does whose model is bare, without the name that classes with a head put before them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EncoderSpec {
    /// `model_type`.
    pub(crate) family: &'static str,
    pub(crate) d_model: usize,
    pub(crate) n_heads: usize,
    /// Rows of the embedding.
    pub(crate) d_vocab: usize,
    /// Longest text in tokens, special ones included.
    pub(crate) max_len: usize,
    pub(crate) norm_eps: f64,
    pub(crate) norm_place: NormPlace,
    pub(crate) activation: Activation,
    /// The rotations that blocks name by their place here.
    pub(crate) ropes: Vec<RopeConfig>,
    pub(crate) embedding: EmbeddingSpec,
    pub(crate) blocks: Vec<EncoderBlockSpec>,
    /// The norm behind the last block, where the stream between blocks is not normed.
    pub(crate) final_norm: Option<LayerNormSpec>,
    pub(super) names: StoredNames,
}

/// Which rows each half of a block norms (Xiong et al., *On Layer Normalization in the Transformer Architecture*, 2020).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NormPlace {
    /// What enters it: `x + f(norm(x))` (ModernBERT).
    Pre,
    /// The sum behind it: `norm(x + f(x))` (BERT).
    Post,
}

/// What the first layer's states are summed from. All tables are `d_model` wide.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EmbeddingSpec {
    /// The table of the tokens' states, `[d_vocab, d_model]`.
    pub(crate) words: String,
    /// That of the kinds of text, of which one text has the first; with its number of rows.
    pub(crate) types: Option<(String, usize)>,
    pub(crate) positions: Option<PositionsSpec>,
    pub(crate) norm: LayerNormSpec,
}

/// A table of positions' states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PositionsSpec {
    pub(crate) name: String,
    pub(crate) rows: usize,
    /// RoBERTa: this token has the row of its own number, all others are counted, from the row behind it on.
    pub(crate) padding: Option<TokenId>,
}

/// What one block is, and what its weights are called.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EncoderBlockSpec {
    /// How far a position sees to either side; `None`: all of the text.
    pub(crate) window: Option<usize>,
    /// Which of the model's rotations; `None`: none.
    pub(crate) rope: Option<usize>,
    pub(crate) attention_norm: Option<LayerNormSpec>,
    /// All queries, all keys, all values.
    pub(crate) qkv: LinearSpec,
    pub(crate) out: LinearSpec,
    pub(crate) mlp_norm: LayerNormSpec,
    /// As wide as `down` takes, or twice that: then the first half goes through the activation and is multiplied with the second.
    pub(crate) up: LinearSpec,
    pub(crate) down: LinearSpec,
}

/// A norm that subtracts the mean: `(x - mean) / sqrt(variance + eps) * weight + bias`, all `[d_model]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LayerNormSpec {
    /// Its name without `.weight` and `.bias`.
    pub(crate) stem: String,
    pub(crate) bias: bool,
}

impl LayerNormSpec {
    pub(crate) fn weight(&self) -> String {
        format!("{}.weight", self.stem)
    }

    pub(crate) fn bias(&self) -> Option<String> {
        self.bias.then(|| format!("{}.bias", self.stem))
    }
}

/// How the names in a file differ from those of the bare model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredNames {
    /// What classes with a head put before them.
    pub(super) prefix: &'static str,
    /// Beginnings of the names of heads and buffers, which no state depends on.
    pub(super) others: &'static [&'static str],
}

/// What norms were called before PyTorch's names, in files that were converted from TensorFlow's.
const OLD_NAMES: [(&str, &str); 2] = [("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")];

impl EncoderSpec {
    pub(crate) fn n_layers(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn head_dim(&self) -> usize {
        self.d_model / self.n_heads
    }

    /// What a tensor of a file is called here; `None` for one of a head, which is not read.
    pub(crate) fn own_name(&self, stored: &str) -> Option<String> {
        let name = stored.strip_prefix(self.names.prefix).unwrap_or(stored);
        if self.names.others.iter().any(|other| name.starts_with(other)) {
            return None;
        }
        let renamed = OLD_NAMES.iter().find_map(|(old, new)| Some(format!("{}{new}", name.strip_suffix(old)?)));
        Some(renamed.unwrap_or_else(|| name.to_owned()))
    }

    /// Every tensor that the model is made of, in the order of the forward pass.
    pub(crate) fn tensors(&self) -> Vec<NamedShape> {
        let EmbeddingSpec { words, types, positions, norm } = &self.embedding;
        let table = |name: &String, rows: usize| (name.clone(), vec![rows, self.d_model]);
        let mut all = vec![table(words, self.d_vocab)];
        all.extend(types.iter().map(|(name, rows)| table(name, *rows)));
        all.extend(positions.iter().map(|positions| table(&positions.name, positions.rows)));
        let mut norms = vec![norm];
        for block in &self.blocks {
            for linear in [&block.qkv, &block.out, &block.up, &block.down] {
                all.extend(linear.weights().into_iter().map(|(name, rows)| (name, vec![rows, linear.d_in])));
                all.extend(linear.biases().into_iter().map(|(name, rows)| (name, vec![rows])));
            }
            norms.extend(block.attention_norm.iter().chain([&block.mlp_norm]));
        }
        norms.extend(&self.final_norm);
        let names = norms.into_iter().flat_map(|norm| [Some(norm.weight()), norm.bias()]).flatten();
        all.extend(names.map(|name| (name, vec![self.d_model])));
        all
    }
}
