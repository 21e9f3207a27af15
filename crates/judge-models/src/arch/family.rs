use judge_core::TokenId;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::rope::{RopeContext, RopeFields};
use super::{Activation, ConfigProblem, DecoderConfig, MAX_CONTEXT};

/// Values of `model_type` that this crate knows.
const FAMILIES: &[&str] = &["gemma2", "internlm3", "llama", "mistral", "phi3", "qwen2", "qwen3"];

/// The families, with the names of `config.json`; what a family does not read is not listed and is ignored.
#[derive(Deserialize)]
#[serde(tag = "model_type", rename_all = "lowercase")]
enum HfConfig {
    Llama(Llama),
    Mistral(Mistral),
    Qwen2(Qwen),
    Qwen3(Qwen),
    InternLm3(InternLm3),
    Gemma2(Gemma2),
    Phi3(Phi3),
}

/// What all families have.
#[derive(Deserialize)]
struct Shape {
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    max_position_embeddings: usize,
    rms_norm_eps: f64,
    tie_word_embeddings: bool,
    rope_parameters: Option<RopeFields>,
    rope_scaling: Option<RopeFields>,
    rope_theta: Option<f64>,
    partial_rotary_factor: Option<f64>,
    original_max_position_embeddings: Option<usize>,
    eos_token_id: Option<OneOrMany>,
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

#[derive(Deserialize)]
struct Llama {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    attention_bias: bool,
    mlp_bias: bool,
}

#[derive(Deserialize)]
struct Mistral {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    sliding_window: Option<usize>,
}

#[derive(Deserialize)]
struct Qwen {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    // Qwen2 has a fixed answer and no such field.
    attention_bias: Option<bool>,
    use_sliding_window: bool,
    sliding_window: Option<usize>,
    max_window_layers: usize,
    layer_types: Option<Vec<String>>,
}

/// Published folders say `qkv_bias` and `bias`, transformers 5 writes `attention_bias` and `mlp_bias`.
#[derive(Deserialize)]
struct InternLm3 {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    qkv_bias: Option<bool>,
    attention_bias: Option<bool>,
    bias: Option<bool>,
    mlp_bias: Option<bool>,
}

#[derive(Deserialize)]
struct Gemma2 {
    #[serde(flatten)]
    shape: Shape,
    hidden_activation: String,
    attention_bias: bool,
    query_pre_attn_scalar: f64,
    sliding_window: Option<usize>,
    layer_types: Option<Vec<String>>,
    attn_logit_softcapping: Option<f64>,
    final_logit_softcapping: Option<f64>,
    use_bidirectional_attention: Option<bool>,
}

#[derive(Deserialize)]
struct Phi3 {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    sliding_window: Option<usize>,
}

/// What transformers 5.23 takes where `config.json` is silent.
fn defaults(model_type: &str) -> Value {
    let mut all = json!({
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "hidden_act": "silu", "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
        "tie_word_embeddings": false, "eos_token_id": 2
    });
    let own = match model_type {
        "llama" => json!({ "max_position_embeddings": 2048, "attention_bias": false, "mlp_bias": false }),
        "mistral" => json!({
            "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131_072,
            "sliding_window": 4096
        }),
        "qwen2" | "qwen3" => json!({
            "vocab_size": 151_936, "intermediate_size": 22016, "num_key_value_heads": 32, "eos_token_id": null,
            "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28,
            "head_dim": if model_type == "qwen3" { json!(128) } else { Value::Null }
        }),
        "internlm3" => json!({
            "vocab_size": 128_512, "intermediate_size": 10240, "num_hidden_layers": 48, "num_key_value_heads": 2,
            "rms_norm_eps": 1e-5, "head_dim": 128
        }),
        "gemma2" => json!({
            "vocab_size": 256_000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
            "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 8192,
            "tie_word_embeddings": true, "eos_token_id": 1, "hidden_activation": "gelu_pytorch_tanh",
            "attention_bias": false, "query_pre_attn_scalar": 256, "sliding_window": 4096,
            "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0
        }),
        "phi3" => json!({
            "vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "max_position_embeddings": 4096,
            "original_max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "eos_token_id": 32000
        }),
        _ => json!({}),
    };
    overlay(&mut all, own);
    all
}

fn overlay(base: &mut Value, over: Value) {
    if let (Value::Object(base), Value::Object(over)) = (base, over) {
        base.extend(over);
    }
}

pub(super) fn lower(file: &Map<String, Value>) -> Result<DecoderConfig, ConfigProblem> {
    let model_type = match file.get("model_type") {
        None => return Err(ConfigProblem::Missing { field: "model_type", needed_by: "every config.json" }),
        Some(Value::String(name)) => name.clone(),
        Some(other) => other.to_string(),
    };
    if !FAMILIES.contains(&model_type.as_str()) {
        return Err(ConfigProblem::Unknown { field: "model_type", found: model_type, known: FAMILIES });
    }
    let mut fields = defaults(&model_type);
    overlay(&mut fields, Value::Object(file.clone()));
    match serde_json::from_value(fields)? {
        HfConfig::Llama(c) => {
            let mut config = c.shape.lower("llama", "hidden_act", &c.hidden_act)?;
            config.qkv_bias = c.attention_bias;
            config.o_bias = c.attention_bias;
            config.mlp_bias = c.mlp_bias;
            Ok(config)
        }
        HfConfig::Mistral(c) => {
            let mut config = c.shape.lower("mistral", "hidden_act", &c.hidden_act)?;
            config.windows = vec![window(c.sliding_window)?; config.n_layers];
            Ok(config)
        }
        HfConfig::Qwen2(c) => {
            let mut config = c.lower("qwen2")?;
            config.qkv_bias = true;
            Ok(config)
        }
        HfConfig::Qwen3(c) => {
            let bias = c.attention_bias.unwrap_or(false);
            let mut config = c.lower("qwen3")?;
            config.qkv_bias = bias;
            config.o_bias = bias;
            config.qk_norm = true;
            Ok(config)
        }
        HfConfig::InternLm3(c) => {
            let mut config = c.shape.lower("internlm3", "hidden_act", &c.hidden_act)?;
            let bias = c.bias.or(c.mlp_bias).unwrap_or(false);
            config.qkv_bias = c.qkv_bias.or(c.attention_bias).unwrap_or(false);
            config.o_bias = bias;
            config.mlp_bias = bias;
            Ok(config)
        }
        HfConfig::Gemma2(c) => c.lower(),
        HfConfig::Phi3(c) => {
            let mut config = c.shape.lower("phi3", "hidden_act", &c.hidden_act)?;
            config.windows = vec![window(c.sliding_window)?; config.n_layers];
            config.fused_projections = true;
            Ok(config)
        }
    }
}

impl Shape {
    /// The description of a plain Llama of this shape, which families then change.
    fn lower(
        self,
        family: &'static str,
        activation_field: &'static str,
        activation: &str,
    ) -> Result<DecoderConfig, ConfigProblem> {
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
        if !(self.rms_norm_eps.is_finite() && self.rms_norm_eps >= 0.0) {
            return Err(ConfigProblem::Value {
                field: "rms_norm_eps",
                found: self.rms_norm_eps.to_string(),
                expected: "a finite number, at least 0".to_owned(),
            });
        }
        let n_layers = size("num_hidden_layers", self.num_hidden_layers, 1 << 12)?;
        let (rope, max_len) = self.rope_scaling.or(self.rope_parameters).unwrap_or_default().lower(&RopeContext {
            rope_theta: self.rope_theta,
            partial_rotary_factor: self.partial_rotary_factor,
            original_max_position_embeddings: self.original_max_position_embeddings,
            max_position_embeddings: size("max_position_embeddings", self.max_position_embeddings, MAX_CONTEXT)?,
            head_dim,
            phi3: family == "phi3",
        })?;
        Ok(DecoderConfig {
            family,
            n_layers,
            d_model,
            n_heads,
            n_kv_heads,
            head_dim,
            d_ff: size("intermediate_size", self.intermediate_size, 1 << 22)?,
            d_vocab: size("vocab_size", self.vocab_size, 1 << 26)?,
            norm_eps: self.rms_norm_eps,
            norm_offset: false,
            post_norms: false,
            qk_norm: false,
            activation: Activation::from_name(activation_field, activation)?,
            qkv_bias: false,
            o_bias: false,
            mlp_bias: false,
            fused_projections: false,
            windows: vec![None; n_layers],
            attention_scale: (head_dim as f64).sqrt().recip(),
            attention_soft_cap: None,
            final_soft_cap: None,
            embedding_scale: None,
            tied: self.tie_word_embeddings,
            rope,
            max_len,
            eos: self.eos_token_id.map(OneOrMany::into_vec).unwrap_or_default(),
        })
    }
}

impl Qwen {
    fn lower(self, family: &'static str) -> Result<DecoderConfig, ConfigProblem> {
        let mut config = self.shape.lower(family, "hidden_act", &self.hidden_act)?;
        let sliding = if self.use_sliding_window { window(self.sliding_window)? } else { None };
        config.windows = match &self.layer_types {
            Some(types) => by_layer_type(types, sliding, config.n_layers)?,
            None => (0..config.n_layers).map(|i| sliding.filter(|_| i >= self.max_window_layers)).collect(),
        };
        Ok(config)
    }
}

/// Whether a factor is a finite number above 0, also where it is used: in f32.
fn is_positive(factor: f64) -> bool {
    let factor = factor as f32;
    factor.is_finite() && factor > 0.0
}

impl Gemma2 {
    fn lower(self) -> Result<DecoderConfig, ConfigProblem> {
        if self.use_bidirectional_attention == Some(true) {
            return Err(ConfigProblem::Unsupported { field: "use_bidirectional_attention", found: "true".to_owned() });
        }
        let cap = |field, cap: Option<f64>| match cap {
            Some(cap) if !is_positive(cap) => Err(ConfigProblem::Value {
                field,
                found: cap.to_string(),
                expected: "a finite number above 0 in f32, or null".to_owned(),
            }),
            cap => Ok(cap),
        };
        let attention_scale = self.query_pre_attn_scalar.sqrt().recip();
        if !is_positive(attention_scale) {
            return Err(ConfigProblem::Value {
                field: "query_pre_attn_scalar",
                found: self.query_pre_attn_scalar.to_string(),
                expected: "a finite number above 0".to_owned(),
            });
        }
        let mut config = self.shape.lower("gemma2", "hidden_activation", &self.hidden_activation)?;
        let sliding = window(self.sliding_window)?;
        config.windows = match &self.layer_types {
            Some(types) => by_layer_type(types, sliding, config.n_layers)?,
            None => (0..config.n_layers).map(|i| sliding.filter(|_| i % 2 == 0)).collect(),
        };
        config.attention_scale = attention_scale;
        config.attention_soft_cap = cap("attn_logit_softcapping", self.attn_logit_softcapping)?;
        config.final_soft_cap = cap("final_logit_softcapping", self.final_logit_softcapping)?;
        config.embedding_scale = Some((config.d_model as f64).sqrt());
        config.norm_offset = true;
        config.post_norms = true;
        config.qkv_bias = self.attention_bias;
        config.o_bias = self.attention_bias;
        Ok(config)
    }
}

fn size(field: &'static str, found: usize, most: usize) -> Result<usize, ConfigProblem> {
    if (1..=most).contains(&found) {
        return Ok(found);
    }
    Err(ConfigProblem::Value { field, found: found.to_string(), expected: format!("1 to {most}") })
}

fn window(found: Option<usize>) -> Result<Option<usize>, ConfigProblem> {
    found.map(|found| size("sliding_window", found, usize::MAX)).transpose()
}

fn by_layer_type(
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
