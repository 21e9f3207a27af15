//! `config.json` of a Hugging Face folder, lowered to the one description that the decoder is built from.

mod angles;
mod family;
mod problem;
mod rope;
mod tensors;

use judge_core::TokenId;
use serde_json::Value;

pub(crate) use angles::{angles, inverse_frequencies};
pub(crate) use family::OneOrMany;
pub use problem::ConfigProblem;
pub(crate) use rope::RopeConfig;
#[cfg(any(test, feature = "bench"))]
pub(crate) use rope::RopeScaling;
pub(crate) use tensors::Part;

/// Longest context that is believed; a larger number is a damaged file.
const MAX_CONTEXT: usize = 1 << 28;

/// What the decoder is built from. Families differ in this data alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DecoderConfig {
    /// `model_type`.
    pub(crate) family: &'static str,
    pub(crate) n_layers: usize,
    pub(crate) d_model: usize,
    pub(crate) n_heads: usize,
    pub(crate) n_kv_heads: usize,
    pub(crate) head_dim: usize,
    pub(crate) d_ff: usize,
    pub(crate) d_vocab: usize,
    pub(crate) norm_eps: f64,
    /// The stored norm weight `w` stands for `1 + w` (Gemma).
    pub(crate) norm_offset: bool,
    /// A norm after attention and one after the MLP as well (Gemma).
    pub(crate) post_norms: bool,
    /// A norm of each query and key head before rotation (Qwen3).
    pub(crate) qk_norm: bool,
    pub(crate) activation: Activation,
    pub(crate) qkv_bias: bool,
    pub(crate) o_bias: bool,
    pub(crate) mlp_bias: bool,
    /// The checkpoint stores `qkv_proj` and `gate_up_proj` (Phi-3), not their parts.
    pub(crate) fused_projections: bool,
    /// Keys that a query of each block sees, itself included; `None`: all before it. Shape `[n_layers]`.
    pub(crate) windows: Vec<Option<usize>>,
    /// Multiplies query-key products.
    pub(crate) attention_scale: f64,
    /// `c * tanh(score / c)` of the scaled products.
    pub(crate) attention_soft_cap: Option<f64>,
    /// The same of the logits that text is generated from. Readings exclude it.
    pub(crate) final_soft_cap: Option<f64>,
    /// Multiplies embeddings (Gemma).
    pub(crate) embedding_scale: Option<f64>,
    /// The head is the embedding table.
    pub(crate) tied: bool,
    pub(crate) rope: RopeConfig,
    /// Longest prompt plus new tokens.
    pub(crate) max_len: usize,
    /// `eos_token_id`.
    pub(crate) eos: Vec<TokenId>,
}

/// The function inside the gated MLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    /// `x * sigmoid(x)`.
    Silu,
    /// With the error function.
    Gelu,
    /// The tanh approximation of GELU.
    GeluTanh,
}

impl Activation {
    const KNOWN: &'static [&'static str] = &["silu", "swish", "gelu", "gelu_pytorch_tanh", "gelu_new"];

    fn from_name(field: &'static str, name: &str) -> Result<Self, ConfigProblem> {
        match name {
            "silu" | "swish" => Ok(Self::Silu),
            "gelu" => Ok(Self::Gelu),
            "gelu_pytorch_tanh" | "gelu_new" => Ok(Self::GeluTanh),
            _ => Err(ConfigProblem::Unknown { field, found: name.to_owned(), known: Self::KNOWN }),
        }
    }
}

impl DecoderConfig {
    /// Reads a `config.json`, in the layout of transformers 5 or of the releases before.
    pub(crate) fn from_json(config: &Value) -> Result<Self, ConfigProblem> {
        match config {
            Value::Object(fields) => family::lower(fields),
            other => Err(ConfigProblem::Value {
                field: "config.json",
                found: other.to_string(),
                expected: "an object".to_owned(),
            }),
        }
    }

    /// Width of all query heads together.
    pub(crate) fn d_query(&self) -> usize {
        self.n_heads * self.head_dim
    }

    /// Width of all key heads together, which is that of the values.
    pub(crate) fn d_key(&self) -> usize {
        self.n_kv_heads * self.head_dim
    }
}

#[cfg(test)]
mod tests;
