//! InternLM 3: a Llama whose biases have names of their own.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::ConfigProblem;
use crate::arch::dense::Dense;
use crate::arch::shape::Shape;

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

pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 128_512, "intermediate_size": 10240, "num_hidden_layers": 48, "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5, "head_dim": 128
    })
}

pub(super) fn dense(fields: Value) -> Result<Dense, ConfigProblem> {
    let InternLm3 { shape, hidden_act, qkv_bias, attention_bias, bias, mlp_bias } = serde_json::from_value(fields)?;
    let dense = shape.lower("internlm3", "hidden_act", &hidden_act)?;
    let bias = bias.or(mlp_bias).unwrap_or(false);
    Ok(Dense { qkv_bias: qkv_bias.or(attention_bias).unwrap_or(false), o_bias: bias, mlp_bias: bias, ..dense })
}
