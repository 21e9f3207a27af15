//! The fields of `config.json` that all families have, and how they are checked.

use std::collections::BTreeMap;

use judge_core::TokenId;
use serde::Deserialize;
use serde_json::Value;

use super::dense::{AttentionNames, BlockNorms, Dense, MlpNames, QkNorm};
use super::rope::{RopeContext, RopeFields, RopeRules};
use super::spec::{Activation, NormKind};
use super::{ConfigProblem, MAX_CONTEXT};

/// What all families have.
#[derive(Deserialize)]
pub(super) struct Shape {
    pub(super) vocab_size: usize,
    pub(super) hidden_size: usize,
    pub(super) intermediate_size: usize,
    pub(super) num_hidden_layers: usize,
    pub(super) num_attention_heads: usize,
    pub(super) num_key_value_heads: Option<usize>,
    pub(super) head_dim: Option<usize>,
    pub(super) max_position_embeddings: usize,
    pub(super) rms_norm_eps: f64,
    pub(super) tie_word_embeddings: bool,
    pub(super) rope_parameters: Option<RopeFields>,
    pub(super) rope_scaling: Option<RopeFields>,
    pub(super) rope_theta: Option<f64>,
    pub(super) partial_rotary_factor: Option<f64>,
    pub(super) original_max_position_embeddings: Option<usize>,
    pub(super) eos_token_id: Option<OneOrMany>,
    /// No field of the file: the family says it before it lowers the shape.
    #[serde(skip)]
    pub(super) rope_rules: RopeRules,
}

/// A token id or a list of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(TokenId),
    Many(Vec<TokenId>),
}

impl OneOrMany {
    pub(crate) fn into_vec(self) -> Vec<TokenId> {
        match self {
            Self::One(id) => vec![id],
            Self::Many(ids) => ids,
        }
    }
}

impl Shape {
    /// The description of a plain Llama of this shape, which families then change.
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
            eos: self.eos_token_id.map(OneOrMany::into_vec).unwrap_or_default(),
        })
    }
}

/// Puts the fields of one object in the place of those of another.
pub(super) fn overlay(base: &mut Value, over: Value) {
    if let (Value::Object(base), Value::Object(over)) = (base, over) {
        base.extend(over);
    }
}

/// The windows of the layers: those of `layer_types`, or where a file does not list them, of all but each `pattern`th if there is a window at all.
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

/// A factor of the family's own, 1 being none.
pub(super) fn factor(field: &'static str, found: f64) -> Result<Option<f64>, ConfigProblem> {
    positive(field, found).map(|found| Some(found).filter(|&found| found != 1.0))
}

/// The same of a number that is divided by.
pub(super) fn divisor(field: &'static str, found: f64) -> Result<Option<f64>, ConfigProblem> {
    if is_positive(found) && !is_positive(found.recip()) {
        let expected = "a number whose reciprocal is finite and above 0 in f32".to_owned();
        return Err(ConfigProblem::Value { field, found: found.to_string(), expected });
    }
    factor(field, found)
}

/// A number that [`is_positive`].
pub(super) fn positive(field: &'static str, found: f64) -> Result<f64, ConfigProblem> {
    if is_positive(found) {
        return Ok(found);
    }
    let expected = "a finite number above 0".to_owned();
    Err(ConfigProblem::Value { field, found: found.to_string(), expected })
}

/// Whether a factor is a finite number above 0, also where it is used: in f32.
pub(super) fn is_positive(factor: f64) -> bool {
    let factor = factor as f32;
    factor.is_finite() && factor > 0.0
}

/// What is added to a mean square before its root is taken; finite also where it is used: in f32.
pub(super) fn norm_eps(field: &'static str, found: f64) -> Result<f64, ConfigProblem> {
    if (found as f32).is_finite() && found >= 0.0 {
        return Ok(found);
    }
    let expected = "a finite number, at least 0".to_owned();
    Err(ConfigProblem::Value { field, found: found.to_string(), expected })
}

pub(super) fn size(field: &'static str, found: usize, most: usize) -> Result<usize, ConfigProblem> {
    if (1..=most).contains(&found) {
        return Ok(found);
    }
    Err(ConfigProblem::Value { field, found: found.to_string(), expected: format!("1 to {most}") })
}

pub(super) fn window(found: Option<usize>) -> Result<Option<usize>, ConfigProblem> {
    found.map(|found| size("sliding_window", found, usize::MAX)).transpose()
}

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

/// Which layers are of the second of two kinds, by their names in `layer_types`.
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

/// Fails if the file says something else of a field than transformers takes for granted without reading it.
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
    const KNOWN: &'static [&'static str] =
        &["silu", "swish", "gelu", "gelu_python", "gelu_pytorch_tanh", "gelu_new", "gelu_fast", "relu"];

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
