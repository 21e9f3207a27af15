//! Ministral 3: a Mistral whose queries grow with their position.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::ConfigProblem;
use crate::arch::dense::Dense;
use crate::arch::rope::RopeRules;
use crate::arch::shape::{Shape, window};

#[derive(Deserialize)]
struct Ministral3 {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    sliding_window: Option<usize>,
}

pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 131_072, "intermediate_size": 14336, "num_hidden_layers": 34, "num_key_value_heads": 8,
        "head_dim": 128, "max_position_embeddings": 262_144, "rms_norm_eps": 1e-5
    })
}

pub(super) fn dense(fields: Value) -> Result<Dense, ConfigProblem> {
    let Ministral3 { mut shape, hidden_act, sliding_window } = serde_json::from_value(fields)?;
    if shape.rope_parameters.is_none() && shape.rope_scaling.is_none() {
        shape.rope_parameters = serde_json::from_value(json!({
            "rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 16384,
            "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1
        }))?;
    }
    shape.rope_rules = RopeRules { grows_queries: true, ..RopeRules::default() };
    let dense = shape.lower("ministral3", "hidden_act", &hidden_act)?;
    Ok(Dense { windows: vec![window(sliding_window)?; dense.n_layers], ..dense })
}
