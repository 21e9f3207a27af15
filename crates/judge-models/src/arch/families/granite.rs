//! Granite 3: a Llama with four factors of its own.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::ConfigProblem;
use crate::arch::dense::Dense;
use crate::arch::shape::{Shape, factor};
use crate::arch::spec::EmbeddingScale;

#[derive(Deserialize)]
struct Granite {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    attention_bias: bool,
    mlp_bias: bool,
    embedding_multiplier: f64,
    attention_multiplier: f64,
    residual_multiplier: f64,
    logits_scaling: f64,
}

pub(super) fn defaults() -> Value {
    json!({
        "max_position_embeddings": 2048, "attention_bias": false, "mlp_bias": false, "embedding_multiplier": 1.0,
        "attention_multiplier": 1.0, "residual_multiplier": 1.0, "logits_scaling": 1.0
    })
}

pub(super) fn dense(fields: Value) -> Result<Dense, ConfigProblem> {
    let found: Granite = serde_json::from_value(fields)?;
    let dense = found.shape.lower("granite", "hidden_act", &found.hidden_act)?;
    Ok(Dense {
        qkv_bias: found.attention_bias,
        o_bias: found.attention_bias,
        mlp_bias: found.mlp_bias,
        embedding_scale: factor("embedding_multiplier", found.embedding_multiplier)?.map(EmbeddingScale::Exact),
        attention_scale: factor("attention_multiplier", found.attention_multiplier)?.unwrap_or(1.0),
        residual_scale: factor("residual_multiplier", found.residual_multiplier)?,
        logit_scale: factor("logits_scaling", found.logits_scaling)?.map(f64::recip),
        ..dense
    })
}
