//! OLMoE: a Llama whose blocks all have experts, with norms over all query heads and all key heads together.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::dense::{Dense, QkNorm};
use crate::arch::experts::{Counts, ExpertNames, Sparse};
use crate::arch::shape::{Shape, positive};
use crate::arch::{ConfigProblem, Routing};

#[derive(Deserialize)]
struct Olmoe {
    #[serde(flatten)]
    shape: Shape,
    #[serde(flatten)]
    counts: Counts,
    hidden_act: String,
    attention_bias: bool,
    clip_qkv: Option<f64>,
    norm_topk_prob: bool,
}

pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16,
        "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "eos_token_id": 50279, "attention_bias": false,
        "num_experts_per_tok": 8, "norm_topk_prob": false
    })
}

pub(super) fn dense(fields: Value) -> Result<Dense, ConfigProblem> {
    let Olmoe { shape, counts, hidden_act, attention_bias: bias, clip_qkv, norm_topk_prob } =
        serde_json::from_value(fields)?;
    let dense = shape.lower("olmoe", "hidden_act", &hidden_act)?;
    let clip_qkv = clip_qkv.map(|limit| positive("clip_qkv", limit)).transpose()?;
    let (n_experts, top_k) = counts.lower(64, dense.n_layers)?;
    let routing = Routing { top_k, among_chosen: norm_topk_prob };
    let sparse = Sparse::everywhere(dense.n_layers, n_experts, dense.d_ff, routing, ExpertNames::QWEN);
    Ok(Dense { qk_norm: QkNorm::Whole, qkv_bias: bias, o_bias: bias, clip_qkv, sparse: Some(sparse), ..dense })
}
