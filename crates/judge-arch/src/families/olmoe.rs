//! `olmoe`: OLMoE 1B-7B.
//!
//! - RMS norms before both halves of a block, as in Llama (OLMo 2 has them after).
//! - One norm over all query heads and one over all key heads, `self_attn.{q,k}_norm` `[d_query]`
//!   and `[d_key]`, before the rotation, as in OLMo 2.
//! - `clip_qkv` clamps queries, keys and values after those norms.
//! - Experts in all blocks, 64 with 8 per row, each as wide as `intermediate_size`; weights are a
//!   softmax over all of them unless `norm_topk_prob`. No shared expert.
//!
//! Experts are named as in Qwen: `mlp.gate`, `mlp.experts.{e}.{gate,up,down}_proj`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::checks::positive;
use crate::decoder_fields::{DecoderFields, QkNorm};
use crate::experts::{Counts, ExpertNames, Sparse};
use crate::shape::Shape;
use crate::{ConfigProblem, Routing, Scores};

/// Fields of the family.
#[derive(Deserialize)]
struct Olmoe {
    #[serde(flatten)]
    shape: Shape,
    /// Numbers of experts.
    #[serde(flatten)]
    counts: Counts,
    /// Biases of all four projections of attention.
    attention_bias: bool,
    /// Limit of queries, keys and values; null for none.
    clip_qkv: Option<f64>,
    /// Whether weights are a softmax over the chosen experts alone.
    norm_topk_prob: bool,
}

/// Defaults where they differ from those of all families; the number of experts is in [`fields`].
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16,
        "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "eos_token_id": 50279, "attention_bias": false,
        "num_experts_per_tok": 8, "norm_topk_prob": false
    })
}

/// Describes an OLMoE.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let Olmoe { shape, counts, attention_bias: bias, clip_qkv, norm_topk_prob } = serde_json::from_value(fields)?;
    let fields = shape.lower()?;
    let clip_qkv = clip_qkv.map(|limit| positive("clip_qkv", limit)).transpose()?;
    let (n_experts, top_k) = counts.lower(64, fields.n_layers)?;
    let routing = Routing { top_k, scores: Scores::Softmax, among_chosen: norm_topk_prob };
    let sparse = Sparse::everywhere(fields.n_layers, n_experts, fields.d_ff, routing, ExpertNames::QWEN);
    Ok(DecoderFields { qk_norm: QkNorm::Whole, qkv_bias: bias, o_bias: bias, clip_qkv, sparse: Some(sparse), ..fields })
}
