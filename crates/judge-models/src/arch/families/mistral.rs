//! Mistral and Ministral: one window for all blocks, or none.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::ConfigProblem;
use crate::arch::dense::Dense;
use crate::arch::shape::{Shape, window};

#[derive(Deserialize)]
struct Mistral {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    sliding_window: Option<usize>,
}

pub(super) fn defaults() -> Value {
    json!({
        "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131_072,
        "sliding_window": 4096
    })
}

pub(super) fn dense(fields: Value) -> Result<Dense, ConfigProblem> {
    let Mistral { shape, hidden_act, sliding_window } = serde_json::from_value(fields)?;
    let dense = shape.lower("mistral", "hidden_act", &hidden_act)?;
    Ok(Dense { windows: vec![window(sliding_window)?; dense.n_layers], ..dense })
}
