//! gpt-oss: experts with biases and a gate of their own in all blocks, attention with sinks, and windows in every second block.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::dense::Dense;
use crate::arch::experts::{Counts, ExpertNames, Sparse};
use crate::arch::shape::{Shape, by_layer_type, positive, window};
use crate::arch::{Activation, ConfigProblem, Routing};

#[derive(Deserialize)]
struct GptOss {
    #[serde(flatten)]
    shape: Shape,
    #[serde(flatten)]
    counts: Counts,
    hidden_act: String,
    attention_bias: bool,
    sliding_window: Option<usize>,
    layer_types: Option<Vec<String>>,
    swiglu_alpha: f64,
    swiglu_limit: f64,
}

pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 201_088, "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131_072, "rms_norm_eps": 1e-5, "rope_theta": 150_000.0,
        "eos_token_id": null, "attention_bias": true, "sliding_window": 128, "num_experts_per_tok": 4, "swiglu_alpha": 1.702,
        "swiglu_limit": 7.0
    })
}

pub(super) fn dense(fields: Value) -> Result<Dense, ConfigProblem> {
    let mut found: GptOss = serde_json::from_value(fields)?;
    if found.shape.rope_parameters.is_none() && found.shape.rope_scaling.is_none() {
        found.shape.rope_scaling = serde_json::from_value(json!({
            "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false,
            "original_max_position_embeddings": 4096
        }))?;
    }
    let bias = found.attention_bias;
    let activation = Activation::ClampedSwish {
        alpha: positive("swiglu_alpha", found.swiglu_alpha)? as f32,
        limit: positive("swiglu_limit", found.swiglu_limit)? as f32,
    };
    // It names a function, but there is only this one.
    let dense = found.shape.lower("gpt_oss", "hidden_act", &found.hidden_act)?;
    let kinds = ["sliding_attention", "full_attention"];
    let types =
        found.layer_types.unwrap_or_else(|| (0..dense.n_layers).map(|layer| kinds[layer % 2].to_owned()).collect());
    let (n_experts, top_k) = found.counts.lower(128, dense.n_layers)?;
    let routing = Routing { top_k, among_chosen: true };
    let sparse = Sparse::everywhere(dense.n_layers, n_experts, dense.d_ff, routing, ExpertNames::GPT_OSS);
    let sparse = Sparse { bias: true, ..sparse };
    let windows = by_layer_type(&types, window(found.sliding_window)?, dense.n_layers)?;
    let sparse = Some(sparse);
    Ok(Dense { windows, qkv_bias: bias, o_bias: bias, sinks: true, activation, sparse, ..dense })
}
