//! The fields of `config.json` that all decoder families have, and the checks that families share.
//!
//! A family's file flattens [`Shape`] into a struct with its own fields, reads both with serde, and
//! calls [`Shape::lower`] for a plain Llama of that size, which it then changes. Defaults are
//! merged into the JSON before (`families.rs`), so fields without `Option` are always present
//! there.
//!
//! Every check names the field as it is in the file. Limits are far above published models: they
//! keep damaged files from allocating memory or overflowing products of sizes. Factors are checked
//! in f32, where engines use them.
//!
//! An absent field takes the default, while a `null` overrides it: `"sliding_window": null` means
//! no window.

use std::collections::BTreeMap;

use judge_core::request::TokenId;
use serde::Deserialize;
use serde_json::Value;

use super::dense::{AttentionNames, BlockNorms, Dense, MlpNames, QkNorm};
use super::rope::{RopeContext, RopeFields, RopeRules};
use super::spec::{Activation, NormKind};
use super::{ConfigProblem, MAX_CONTEXT};

/// Fields of all families, by their names in the file.
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
    /// Epsilon of norms. Families with another name for it write that field's value here.
    pub(super) rms_norm_eps: f64,
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
pub(crate) struct TokenIds(pub(crate) Vec<TokenId>);

impl TokenIds {
    /// What a value says; `None` if it is neither an id nor a list of ids.
    pub(crate) fn of(value: &Value) -> Option<Self> {
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
pub(crate) const TOKEN_IDS: &str = "a token id, a list of token ids, or null";

impl Shape {
    /// Checks the fields and describes a plain Llama of this shape, which families then change:
    /// norms before both halves, one rotation for all blocks, no windows, biases, experts or
    /// factors.
    ///
    /// `activation` is the name of the function inside the MLP and `activation_field` the field
    /// that it is from.
    ///
    /// # Errors
    /// [`ConfigProblem`] for a size out of its range, heads that do not divide, unknown
    /// activations, and rope fields that are not read.
    pub(super) fn lower(
        self,
        family: &'static str,
        activation_field: &'static str,
        activation: &str,
    ) -> Result<Dense, ConfigProblem> {
        let n_heads = size("num_attention_heads", self.num_attention_heads, 1 << 16)?;
        let d_model = size("hidden_size", self.hidden_size, 1 << 20)?;
        let n_kv_heads = size("num_key_value_heads", self.num_key_value_heads.unwrap_or(n_heads), n_heads)?;
        if n_heads % n_kv_heads != 0 {
            return Err(ConfigProblem::Value {
                field: "num_key_value_heads",
                found: n_kv_heads.to_string(),
                expected: format!("a divisor of num_attention_heads {n_heads}"),
            });
        }
        let head_dim = match self.head_dim {
            Some(head_dim) => size("head_dim", head_dim, 1 << 16)?,
            None if d_model % n_heads == 0 => d_model / n_heads,
            None => {
                return Err(ConfigProblem::Value {
                    field: "hidden_size",
                    found: d_model.to_string(),
                    expected: format!("a multiple of num_attention_heads {n_heads}"),
                });
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
        Ok(Dense {
            family,
            n_layers,
            d_model,
            n_heads,
            n_kv_heads,
            head_dim,
            d_ff: size("intermediate_size", self.intermediate_size, 1 << 22)?,
            d_vocab: size("vocab_size", self.vocab_size, 1 << 26)?,
            norm_eps: norm_eps("rms_norm_eps", self.rms_norm_eps)?,
            norm_kind: NormKind::RootMeanSquare,
            norm_offset: false,
            norms: BlockNorms::BEFORE,
            is_parallel: false,
            is_gated: false,
            delta: None,
            conv: None,
            attention: AttentionNames::LLAMA,
            last_norm: "model.norm.weight",
            qk_norm: QkNorm::None,
            norms_values: false,
            otherwise: BTreeMap::new(),
            block_scalar: false,
            token_inputs: None,
            activation: Activation::from_name(activation_field, activation)?,
            qkv_bias: false,
            o_bias: false,
            sinks: false,
            mlp_bias: false,
            fused_qkv: false,
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
            ropes: vec![rope],
            rope_of: vec![Some(0); n_layers],
            max_len,
            eos: self.eos_token_id.unwrap_or_default().0,
        })
    }
}

/// Overwrites top-level fields of one object with those of another; nested objects are replaced
/// whole. Anything but two objects leaves `base` as it is.
pub(super) fn overlay(base: &mut Value, over: Value) {
    if let (Value::Object(base), Value::Object(over)) = (base, over) {
        base.extend(over);
    }
}

/// The window of each layer, `[n_layers]`: by `layer_types`, or where a file does not list them,
/// `sliding` for all layers but each `pattern`th. Layer `i`, counted from 0, is full if
/// `(i + 1) % pattern == 0`.
///
/// # Errors
/// Those of [`by_layer_type`].
pub(super) fn windows(
    layer_types: Option<Vec<String>>,
    sliding: Option<usize>,
    pattern: usize,
    n_layers: usize,
) -> Result<Vec<Option<usize>>, ConfigProblem> {
    match layer_types {
        Some(types) => by_layer_type(&types, sliding, n_layers),
        None => Ok((0..n_layers).map(|layer| sliding.filter(|_| !(layer + 1).is_multiple_of(pattern))).collect()),
    }
}

/// A factor of the family's own; `None` where it is 1 and changes nothing.
///
/// # Errors
/// As [`positive`].
pub(super) fn factor(field: &'static str, found: f64) -> Result<Option<f64>, ConfigProblem> {
    positive(field, found).map(|found| Some(found).filter(|&found| found != 1.0))
}

/// A number that is divided by; `None` where it is 1. Its reciprocal must be finite and positive in
/// f32 as well, since engines multiply.
///
/// # Errors
/// [`ConfigProblem::Value`] for any other number.
pub(super) fn divisor(field: &'static str, found: f64) -> Result<Option<f64>, ConfigProblem> {
    if is_positive(found) && !is_positive(found.recip()) {
        let expected = "a number whose reciprocal is finite and above 0 in f32".to_owned();
        return Err(ConfigProblem::Value { field, found: found.to_string(), expected });
    }
    factor(field, found)
}

/// Checks a number with [`is_positive`].
///
/// # Errors
/// [`ConfigProblem::Value`] for any other number.
pub(super) fn positive(field: &'static str, found: f64) -> Result<f64, ConfigProblem> {
    if is_positive(found) {
        return Ok(found);
    }
    let expected = "a finite number above 0".to_owned();
    Err(ConfigProblem::Value { field, found: found.to_string(), expected })
}

/// Whether a number is finite and above 0 after rounding to f32, in which engines use it. False for
/// NaN.
pub(super) fn is_positive(factor: f64) -> bool {
    let factor = factor as f32;
    factor.is_finite() && factor > 0.0
}

/// Checks the epsilon of a norm: finite in f32 and at least 0.
///
/// # Errors
/// [`ConfigProblem::Value`] for any other number.
pub(super) fn norm_eps(field: &'static str, found: f64) -> Result<f64, ConfigProblem> {
    if (found as f32).is_finite() && found >= 0.0 {
        return Ok(found);
    }
    let expected = "a finite number, at least 0".to_owned();
    Err(ConfigProblem::Value { field, found: found.to_string(), expected })
}

/// Checks a size: 1 to `most`.
///
/// # Errors
/// [`ConfigProblem::Value`] for any other number.
pub(super) fn size(field: &'static str, found: usize, most: usize) -> Result<usize, ConfigProblem> {
    if (1..=most).contains(&found) {
        return Ok(found);
    }
    Err(ConfigProblem::Value { field, found: found.to_string(), expected: format!("1 to {most}") })
}

/// Checks `sliding_window`: at least 1, or `None` for no window.
///
/// # Errors
/// [`ConfigProblem::Value`] for 0.
pub(super) fn window(found: Option<usize>) -> Result<Option<usize>, ConfigProblem> {
    found.map(|found| size("sliding_window", found, usize::MAX)).transpose()
}

/// The window of each layer by its name in `layer_types`: `full_attention` or `sliding_attention`.
///
/// # Errors
/// [`ConfigProblem`] for a list of another length, for other names, and for a sliding layer where
/// `sliding` is `None`.
pub(super) fn by_layer_type(
    types: &[String],
    sliding: Option<usize>,
    n_layers: usize,
) -> Result<Vec<Option<usize>>, ConfigProblem> {
    if types.len() != n_layers {
        return Err(ConfigProblem::Value {
            field: "layer_types",
            found: format!("{} names", types.len()),
            expected: format!("one for each of {n_layers} layers"),
        });
    }
    types
        .iter()
        .map(|name| match (name.as_str(), sliding) {
            ("full_attention", _) => Ok(None),
            ("sliding_attention", Some(window)) => Ok(Some(window)),
            ("sliding_attention", None) => {
                Err(ConfigProblem::Missing { field: "sliding_window", needed_by: "sliding_attention in layer_types" })
            }
            _ => Err(ConfigProblem::Unknown {
                field: "layer_types",
                found: name.clone(),
                known: &["full_attention", "sliding_attention"],
            }),
        })
        .collect()
}

/// Which layers are of the second of two `known` kinds, by their names in `layer_types`.
///
/// # Errors
/// [`ConfigProblem`] for a list of another length and for other names.
pub(super) fn second_kind(
    types: &[String],
    known: &'static [&'static str; 2],
    n_layers: usize,
) -> Result<Vec<bool>, ConfigProblem> {
    if types.len() != n_layers {
        let (found, expected) = (format!("{} names", types.len()), format!("one for each of {n_layers} layers"));
        return Err(ConfigProblem::Value { field: "layer_types", found, expected });
    }
    let kind = |name: &String| match known.iter().position(|known| known == name) {
        Some(kind) => Ok(kind == 1),
        None => Err(ConfigProblem::Unknown { field: "layer_types", found: name.clone(), known }),
    };
    types.iter().map(kind).collect()
}

/// Fails if the file says something else of a field than what transformers takes for granted
/// without reading it. A silent file passes. Numbers compare as JSON, so that `1` and `1.0` differ.
///
/// # Errors
/// [`ConfigProblem::Value`] with the expected value.
pub(super) fn check_granted(fields: &Value, granted: &[(&'static str, Value)]) -> Result<(), ConfigProblem> {
    for (field, expected) in granted {
        if let Some(found) = fields.get(field).filter(|found| *found != expected) {
            let (found, expected) = (found.to_string(), expected.to_string());
            return Err(ConfigProblem::Value { field, found, expected });
        }
    }
    Ok(())
}

impl Activation {
    /// All names that [`Activation::from_name`] accepts.
    const KNOWN: &'static [&'static str] =
        &["silu", "swish", "gelu", "gelu_python", "gelu_pytorch_tanh", "gelu_new", "gelu_fast", "relu"];

    /// The function that transformers has by this name (`ACT2FN`); `field` is where the file states
    /// it.
    ///
    /// `gelu_new` and `gelu_fast` are the tanh approximation written in other ways.
    ///
    /// # Errors
    /// [`ConfigProblem::Unknown`] for a name that is not in [`Activation::KNOWN`].
    pub(super) fn from_name(field: &'static str, name: &str) -> Result<Self, ConfigProblem> {
        match name {
            "silu" | "swish" => Ok(Self::Silu),
            "gelu" | "gelu_python" => Ok(Self::Gelu),
            "gelu_pytorch_tanh" | "gelu_new" | "gelu_fast" => Ok(Self::GeluTanh),
            "relu" => Ok(Self::Relu),
            _ => Err(ConfigProblem::Unknown { field, found: name.to_owned(), known: Self::KNOWN }),
        }
    }
}
