//! Phi-3, Phi-3.5, Phi-4 and their minis: fused projections, and a rotation of part of a head in some.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::ConfigProblem;
use crate::arch::dense::{Dense, MlpNames};
use crate::arch::rope::RopeRules;
use crate::arch::shape::{Shape, window};

#[derive(Deserialize)]
struct Phi3 {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    sliding_window: Option<usize>,
}

pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "max_position_embeddings": 4096,
        "original_max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "eos_token_id": 32000
    })
}

pub(super) fn dense(fields: Value) -> Result<Dense, ConfigProblem> {
    let Phi3 { mut shape, hidden_act, sliding_window } = serde_json::from_value(fields)?;
    shape.rope_rules = RopeRules { is_partial: true, yarn_is_longrope: true, ..RopeRules::default() };
    let dense = shape.lower("phi3", "hidden_act", &hidden_act)?;
    let windows = vec![window(sliding_window)?; dense.n_layers];
    Ok(Dense { windows, fused_qkv: true, mlp: MlpNames::FUSED, ..dense })
}
