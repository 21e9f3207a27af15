//! Qwen2-MoE and Qwen3-MoE: Qwen2 and Qwen3 with experts, in all blocks or in some, and in Qwen2-MoE with one that all rows share.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::dense::{Dense, QkNorm};
use crate::arch::experts::{Counts, ExpertNames, Sparse};
use crate::arch::shape::{Shape, by_layer_type, size, window};
use crate::arch::{ConfigProblem, Routing};

#[derive(Deserialize)]
struct QwenMoe {
    #[serde(flatten)]
    shape: Shape,
    #[serde(flatten)]
    counts: Counts,
    hidden_act: String,
    moe_intermediate_size: usize,
    norm_topk_prob: bool,
    decoder_sparse_step: usize,
    mlp_only_layers: Option<BTreeSet<usize>>,
    use_sliding_window: bool,
    sliding_window: Option<usize>,
    // Qwen2-MoE alone; files of Qwen3-MoE may have the first two, and they say nothing there.
    qkv_bias: Option<bool>,
    shared_expert_intermediate_size: Option<usize>,
    layer_types: Option<Vec<String>>,
    max_window_layers: Option<usize>,
    // Qwen3-MoE alone.
    attention_bias: Option<bool>,
    use_qk_norm: Option<bool>,
}

pub(super) fn defaults_of_2() -> Value {
    json!({
        "vocab_size": 151_936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16,
        "num_key_value_heads": 16, "eos_token_id": null, "use_sliding_window": false, "sliding_window": 4096,
        "max_window_layers": 28, "decoder_sparse_step": 1, "moe_intermediate_size": 1408, "num_experts_per_tok": 4,
        "norm_topk_prob": false, "shared_expert_intermediate_size": 5632, "qkv_bias": true
    })
}

pub(super) fn defaults_of_3() -> Value {
    json!({
        "vocab_size": 151_936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24, "num_attention_heads": 32,
        "num_key_value_heads": 4, "eos_token_id": null, "use_sliding_window": false, "sliding_window": 4096,
        "decoder_sparse_step": 1, "moe_intermediate_size": 768, "num_experts_per_tok": 8, "norm_topk_prob": false
    })
}

pub(super) fn qwen2_moe(fields: Value) -> Result<Dense, ConfigProblem> {
    let mut qwen: QwenMoe = serde_json::from_value(fields)?;
    let width = qwen
        .shared_expert_intermediate_size
        .ok_or(ConfigProblem::Missing { field: "shared_expert_intermediate_size", needed_by: "qwen2_moe" })?;
    let width = size("shared_expert_intermediate_size", width, 1 << 22)?;
    let (bias, upper) = (qwen.qkv_bias.unwrap_or(true), qwen.max_window_layers.unwrap_or(usize::MAX));
    let (layer_types, sliding) = (qwen.layer_types.take(), qwen.sliding()?);
    let dense = qwen.lower("qwen2_moe", 60, Some(width))?;
    let windows = match layer_types {
        Some(types) => by_layer_type(&types, sliding, dense.n_layers)?,
        // Every second block below a limit.
        None => (0..dense.n_layers).map(|i| sliding.filter(|_| i % 2 == 0 && i < upper)).collect(),
    };
    Ok(Dense { windows, qkv_bias: bias, ..dense })
}

pub(super) fn qwen3_moe(fields: Value) -> Result<Dense, ConfigProblem> {
    let qwen: QwenMoe = serde_json::from_value(fields)?;
    if qwen.use_qk_norm == Some(false) {
        return Err(ConfigProblem::Unsupported { field: "use_qk_norm", found: "false".to_owned() });
    }
    let (bias, sliding) = (qwen.attention_bias.unwrap_or(false), qwen.sliding()?);
    let dense = qwen.lower("qwen3_moe", 128, None)?;
    let windows = vec![sliding; dense.n_layers];
    Ok(Dense { windows, qkv_bias: bias, o_bias: bias, qk_norm: QkNorm::PerHead, ..dense })
}

impl QwenMoe {
    fn sliding(&self) -> Result<Option<usize>, ConfigProblem> {
        if self.use_sliding_window { window(self.sliding_window) } else { Ok(None) }
    }

    fn lower(self, family: &'static str, n_experts: usize, d_shared: Option<usize>) -> Result<Dense, ConfigProblem> {
        let dense = self.shape.lower(family, "hidden_act", &self.hidden_act)?;
        let (n_experts, top_k) = self.counts.lower(n_experts, dense.n_layers)?;
        let step = size("decoder_sparse_step", self.decoder_sparse_step, usize::MAX)?;
        let plain = self.mlp_only_layers.unwrap_or_default();
        let sparse = Sparse {
            has_experts: (0..dense.n_layers).map(|i| !plain.contains(&i) && (i + 1).is_multiple_of(step)).collect(),
            n_experts,
            routing: Routing { top_k, among_chosen: self.norm_topk_prob },
            d_expert: size("moe_intermediate_size", self.moe_intermediate_size, 1 << 22)?,
            d_shared,
            bias: false,
            names: ExpertNames::QWEN,
        };
        Ok(Dense { sparse: Some(sparse), ..dense })
    }
}
