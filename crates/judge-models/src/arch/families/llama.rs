//! Llama 2 and 3, and what was published under its name.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::ConfigProblem;
use crate::arch::dense::Dense;
use crate::arch::shape::Shape;

#[derive(Deserialize)]
struct Llama {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    attention_bias: bool,
    mlp_bias: bool,
}

pub(super) fn defaults() -> Value {
    json!({ "max_position_embeddings": 2048, "attention_bias": false, "mlp_bias": false })
}

pub(super) fn dense(fields: Value) -> Result<Dense, ConfigProblem> {
    let Llama { shape, hidden_act, attention_bias, mlp_bias } = serde_json::from_value(fields)?;
    let dense = shape.lower("llama", "hidden_act", &hidden_act)?;
    Ok(Dense { qkv_bias: attention_bias, o_bias: attention_bias, mlp_bias, ..dense })
}
