//! The fields of `config.json` that all decoder families have.
//!
//! A family's file flattens [`Shape`] into a struct with its own fields, reads both with serde, and
//! calls [`Shape::lower`] for a plain Llama of that size, which it then changes. Defaults are
//! merged into the JSON before (`families.rs`), so fields without `Option` are always present
//! there.
//!
//! An absent field takes the default, while a `null` overrides it: `"sliding_window": null` means
//! no window.

use std::collections::BTreeMap;

use judge_core::request::TokenId;
use judge_kernels::functions::{Activation, NormKind};
use serde::Deserialize;
use serde_json::Value;

use super::checks::{MAX_CONTEXT, norm_eps, size};
use super::decoder_fields::{AttentionNames, BlockNorms, DecoderFields, MlpNames, Multipliers, QkNorm, Qkv};
use super::problem::ConfigProblem;
use super::rope::{RopeContext, RopeFields, RopeRules};
use super::spec::EMBEDDING;

/// Fields of all families. `families.rs` gives those that a family calls otherwise these names.
#[derive(Deserialize)]
pub(super) struct Shape {
    /// Rows of the embedding; may exceed the tokenizer's size.
    pub(super) vocab_size: usize,
    /// `d_model`.
    pub(super) hidden_size: usize,
    /// Width inside the MLP; in some families with experts, inside each expert.
    pub(super) intermediate_size: usize,
    /// Number of blocks.
    pub(super) num_hidden_layers: usize,
    /// Query heads of a block.
    pub(super) num_attention_heads: usize,
    /// Key heads of a block; `None`: as many as query heads.
    pub(super) num_key_value_heads: Option<usize>,
    /// Coordinates of a head; `None`: `hidden_size / num_attention_heads`.
    pub(super) head_dim: Option<usize>,
    /// The context in tokens, before a scaling of the rotation stretches it.
    pub(super) max_position_embeddings: usize,
    /// Epsilon of norms.
    pub(super) rms_norm_eps: f64,
    /// The name of the function inside the MLP, or inside experts.
    pub(super) hidden_act: String,
    /// Whether the head is the embedding.
    pub(super) tie_word_embeddings: bool,
    /// Rope fields in the layout of transformers 5.
    pub(super) rope_parameters: Option<RopeFields>,
    /// Rope fields of earlier releases; they win where a file has both.
    pub(super) rope_scaling: Option<RopeFields>,
    /// Base of the rotation, used where the rope fields state none.
    pub(super) rope_theta: Option<f64>,
    /// Part of a head that rotates, used where the rope fields state none.
    pub(super) partial_rotary_factor: Option<f64>,
    /// Context before scaling. Unlike the two fields before, it wins over the one in the rope
    /// fields.
    pub(super) original_max_position_embeddings: Option<usize>,
    /// Tokens that end a text.
    pub(super) eos_token_id: Option<TokenIds>,
    /// How the family reads its rope fields. Not a field of the file: the family sets it before
    /// [`Shape::lower`].
    #[serde(skip)]
    pub(super) rope_rules: RopeRules,
}

/// The token ids that a field such as `eos_token_id` names, alone or in a list. A negative id stands
/// for none: no token has it, and transformers, which compares tokens with it, never finds one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenIds(pub Vec<TokenId>);

impl TokenIds {
    /// What a value says; `None` if it is neither an id nor a list of ids.
    pub fn of(value: &Value) -> Option<Self> {
        let ids = match value {
            Value::Array(ids) => ids.iter().map(Value::as_i64).collect::<Option<Vec<_>>>()?,
            _ => vec![value.as_i64()?],
        };
        let ids = ids.into_iter().filter(|&id| id >= 0).map(|id| TokenId::try_from(id).ok());
        ids.collect::<Option<_>>().map(Self)
    }
}

impl<'de> Deserialize<'de> for TokenIds {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::of(&value).ok_or_else(|| serde::de::Error::custom(format_args!("expected {TOKEN_IDS}")))
    }
}

/// What a field of token ids must be, for errors.
pub const TOKEN_IDS: &str = "a token id, a list of token ids, or null";

impl Shape {
    /// Checks the fields and describes a plain Llama of this shape, which families then change:
    /// norms before both halves, one rotation for all blocks, no windows, biases, experts or
    /// factors.
    ///
    /// # Errors
    /// [`ConfigProblem`] for a size out of its range, heads that do not divide, unknown
    /// activations, and rope fields that are not read.
    pub(super) fn lower(self) -> Result<DecoderFields, ConfigProblem> {
        let n_heads = size("num_attention_heads", self.num_attention_heads, 1 << 16)?;
        let d_model = size("hidden_size", self.hidden_size, 1 << 20)?;
        let n_kv_heads = size("num_key_value_heads", self.num_key_value_heads.unwrap_or(n_heads), n_heads)?;
        if n_heads % n_kv_heads != 0 {
            let expected = format!("a divisor of num_attention_heads {n_heads}");
            return Err(ConfigProblem::value("num_key_value_heads", n_kv_heads, expected));
        }
        let head_dim = match self.head_dim {
            Some(head_dim) => size("head_dim", head_dim, 1 << 16)?,
            None if d_model % n_heads == 0 => d_model / n_heads,
            None => {
                let expected = format!("a multiple of num_attention_heads {n_heads}");
                return Err(ConfigProblem::value("hidden_size", d_model, expected));
            }
        };
        let n_layers = size("num_hidden_layers", self.num_hidden_layers, 1 << 12)?;
        let (rope, max_len) = self.rope_scaling.or(self.rope_parameters).unwrap_or_default().lower(&RopeContext {
            rope_theta: self.rope_theta,
            partial_rotary_factor: self.partial_rotary_factor,
            original_max_position_embeddings: self.original_max_position_embeddings,
            max_position_embeddings: size("max_position_embeddings", self.max_position_embeddings, MAX_CONTEXT)?,
            head_dim,
            rules: self.rope_rules,
        })?;
        Ok(DecoderFields {
            family: "",
            n_layers,
            d_model,
            n_heads,
            n_kv_heads,
            head_dim,
            d_ff: size("intermediate_size", self.intermediate_size, 1 << 22)?,
            d_vocab: size("vocab_size", self.vocab_size, 1 << 26)?,
            norm_eps: norm_eps(self.rms_norm_eps)?,
            norm_kind: NormKind::RmsNorm,
            norm_offset: false,
            norm_bias: false,
            norms: BlockNorms::BEFORE,
            is_parallel: false,
            is_gated: false,
            delta: None,
            conv: None,
            mamba: None,
            multipliers: Multipliers::ONE,
            halves: None,
            attention: AttentionNames::LLAMA,
            layers: "model.layers",
            embedding: EMBEDDING,
            positions: None,
            last_norm: "model.norm.weight",
            qk_norm: QkNorm::None,
            norms_values: false,
            otherwise: BTreeMap::new(),
            block_scalar: false,
            token_inputs: None,
            activation: activation_named("hidden_act", &self.hidden_act)?,
            qkv_bias: false,
            o_bias: false,
            sinks: false,
            mlp_bias: false,
            qkv: Qkv::LLAMA,
            is_transposed: false,
            mlp: MlpNames::APART,
            sparse: None,
            windows: vec![None; n_layers],
            attention_scale: (head_dim as f64).sqrt().recip(),
            attention_soft_cap: None,
            clip_qkv: None,
            final_soft_cap: None,
            embedding_scale: None,
            residual_scale: None,
            logit_scale: None,
            tied: self.tie_word_embeddings,
            head_bias: false,
            ropes: vec![rope],
            rope_of: vec![Some(0); n_layers],
            max_len,
            eos: self.eos_token_id.unwrap_or_default().0,
        })
    }

    /// Fails for another function than SiLU, for families that have the same one behind a convolution, where engines
    /// have SiLU.
    ///
    /// # Errors
    /// [`ConfigProblem`] for any other name.
    pub(super) fn must_be_silu(&self, expected: &'static str) -> Result<(), ConfigProblem> {
        match activation_named("hidden_act", &self.hidden_act)? {
            Activation::Silu => Ok(()),
            _ => Err(ConfigProblem::value("hidden_act", &self.hidden_act, expected)),
        }
    }
}

/// All names that [`activation_named`] accepts.
const ACTIVATIONS: &[&str] =
    &["silu", "swish", "gelu", "gelu_python", "gelu_pytorch_tanh", "gelu_new", "gelu_fast", "relu", "relu2"];

/// The function that transformers has by this name (`ACT2FN`); `field` is where the file states
/// it.
///
/// `gelu_new` and `gelu_fast` are the tanh approximation written in other ways.
///
/// # Errors
/// [`ConfigProblem::Unknown`] for a name that is not in [`ACTIVATIONS`].
pub(super) fn activation_named(field: &'static str, name: &str) -> Result<Activation, ConfigProblem> {
    match name {
        "silu" | "swish" => Ok(Activation::Silu),
        "gelu" | "gelu_python" => Ok(Activation::Gelu),
        "gelu_pytorch_tanh" | "gelu_new" | "gelu_fast" => Ok(Activation::GeluTanh),
        "relu" => Ok(Activation::Relu),
        "relu2" => Ok(Activation::ReluSquared),
        _ => Err(ConfigProblem::Unknown { field, found: name.to_owned(), known: ACTIVATIONS }),
    }
}
