//! Mixtral: a Mistral whose blocks all have experts.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::dense::Dense;
use crate::arch::experts::{Counts, ExpertNames, Sparse};
use crate::arch::shape::{Shape, window};
use crate::arch::{ConfigProblem, Routing};

#[derive(Deserialize)]
struct Mixtral {
    #[serde(flatten)]
    shape: Shape,
    #[serde(flatten)]
    counts: Counts,
    hidden_act: String,
    sliding_window: Option<usize>,
}

pub(super) fn defaults() -> Value {
    json!({
        "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131_072, "rms_norm_eps": 1e-5,
        "rope_theta": 1e6, "num_experts_per_tok": 2
    })
}

pub(super) fn dense(fields: Value) -> Result<Dense, ConfigProblem> {
    let Mixtral { shape, counts, hidden_act, sliding_window } = serde_json::from_value(fields)?;
    let dense = shape.lower("mixtral", "hidden_act", &hidden_act)?;
    let (n_experts, top_k) = counts.lower(8, dense.n_layers)?;
    let routing = Routing { top_k, among_chosen: true };
    let sparse = Sparse::everywhere(dense.n_layers, n_experts, dense.d_ff, routing, ExpertNames::MIXTRAL);
    Ok(Dense { windows: vec![window(sliding_window)?; dense.n_layers], sparse: Some(sparse), ..dense })
}
