//! `lfm2_moe`: LFM2 with experts (8B-A1B and larger).
//!
//! An LFM2 (see `lfm2.rs` for norms, convolutions and names) whose blocks from `num_dense_layers` on
//! have experts in the place of the MLP. The router's scores are sigmoids. With `use_expert_bias` a
//! stored number per expert is added to them for the choice alone. Weights are the chosen sigmoids,
//! divided by their sum with `norm_topk_prob`, times `routed_scaling_factor`. Widths are as stated,
//! `intermediate_size` in dense blocks and `moe_intermediate_size` in an expert; nothing is adjusted.
//!
//! Tensors besides LFM2's: `feed_forward.gate` (the router), `feed_forward.experts.{e}.{w1,w3,w2}`,
//! `feed_forward.expert_bias`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::lfm2::Common;
use crate::checks::{positive, size};
use crate::decoder_fields::DecoderFields;
use crate::experts::{Counts, ExpertNames, Sparse};
use crate::{ConfigProblem, Routing, Scores};

/// Fields of the family.
#[derive(Deserialize)]
struct Lfm2Moe {
    /// Fields of LFM2; `layer_types` is needed.
    #[serde(flatten)]
    common: Common,
    /// Numbers of experts.
    #[serde(flatten)]
    counts: Counts,
    /// Blocks before the first with experts.
    num_dense_layers: usize,
    /// Width inside an expert.
    moe_intermediate_size: usize,
    /// Whether scores get a stored bias for the choice.
    use_expert_bias: bool,
    /// Whether weights are shares of the chosen scores.
    norm_topk_prob: bool,
    /// Factor on weights.
    routed_scaling_factor: f64,
}

/// Defaults of transformers 5.23; the number of experts is in [`fields`].
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 65536, "hidden_size": 2048, "intermediate_size": 7168, "num_key_value_heads": 8,
        "max_position_embeddings": 128_000, "norm_eps": 1e-5, "tie_word_embeddings": true, "rope_theta": 1e6,
        "conv_bias": false, "conv_L_cache": 3, "num_dense_layers": 2, "moe_intermediate_size": 1792,
        "num_experts_per_tok": 4, "use_expert_bias": true, "norm_topk_prob": true, "routed_scaling_factor": 1.0
    })
}

/// Describes an LFM2 with experts.
pub(super) fn fields(mut fields: Value) -> Result<DecoderFields, ConfigProblem> {
    fields["hidden_act"] = "silu".into(); // whatever the file says, as in transformers
    let found: Lfm2Moe = serde_json::from_value(fields)?;
    let factor = positive("routed_scaling_factor", found.routed_scaling_factor)? as f32;
    let missing = ConfigProblem::Missing { field: "layer_types", needed_by: "lfm2_moe" };
    let fields = found.common.lower(|_| Err(missing))?;
    let (n_experts, top_k) = found.counts.lower(32, fields.n_layers)?;
    let sparse = Sparse {
        has_experts: (0..fields.n_layers).map(|layer| layer >= found.num_dense_layers).collect(),
        n_experts,
        routing: Routing { top_k, scores: Scores::Sigmoid { factor, least: 1e-6 }, among_chosen: found.norm_topk_prob },
        d_expert: size("moe_intermediate_size", found.moe_intermediate_size, 1 << 22)?,
        d_shared: None,
        bias: false,
        names: ExpertNames::lfm2(found.use_expert_bias),
    };
    Ok(DecoderFields { sparse: Some(sparse), ..fields })
}
