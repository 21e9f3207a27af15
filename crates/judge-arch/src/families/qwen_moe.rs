//! `qwen2_moe`: Qwen1.5-MoE and Qwen2-57B-A14B. `qwen3_moe`: Qwen3-30B-A3B and Qwen3-235B-A22B.
//!
//! Qwen2 and Qwen3 with experts in the place of the MLP. Block `i` has experts if it is not in
//! `mlp_only_layers` and `(i + 1) % decoder_sparse_step == 0`; the others have a dense MLP of
//! `intermediate_size`.
//!
//! | | `qwen2_moe` | `qwen3_moe` |
//! |---|---|---|
//! | biases | q, k, v by `qkv_bias`, on by default | all four by `attention_bias`, off by default |
//! | norms of query and key heads | none | per head |
//! | experts, and of a row | 60, 4 | 128, 8 |
//! | shared expert | yes, times `sigmoid` of a gate | no |
//! | windows (`use_sliding_window`) | `layer_types`, or even blocks below `max_window_layers` | all blocks |
//!
//! Weights are a softmax over all experts' logits; with `norm_topk_prob`, over those of the chosen
//! ones. transformers' default for it is false; published files of Qwen3 say true.
//!
//! Tensors: `mlp.gate` (the router), `mlp.experts.{e}.{gate,up,down}_proj`,
//! `mlp.shared_expert.{gate,up,down}_proj` and `mlp.shared_expert_gate`.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::checks::{size, window, windows};
use crate::decoder_fields::{DecoderFields, QkNorm};
use crate::experts::{Counts, ExpertNames, Sparse};
use crate::shape::Shape;
use crate::{ConfigProblem, Routing, Scores};

/// Fields of both families.
#[derive(Deserialize)]
struct QwenMoe {
    /// Fields of all families; `intermediate_size` is that of dense blocks.
    #[serde(flatten)]
    shape: Shape,
    /// Numbers of experts.
    #[serde(flatten)]
    counts: Counts,
    /// Width inside an expert.
    moe_intermediate_size: usize,
    /// Whether weights are a softmax over the chosen experts alone.
    norm_topk_prob: bool,
    /// Distance of blocks with experts.
    decoder_sparse_step: usize,
    /// Blocks that are dense in any case. Indices of absent blocks are ignored.
    mlp_only_layers: Option<BTreeSet<usize>>,
    /// Whether `sliding_window` counts.
    use_sliding_window: bool,
    /// Width of windows.
    sliding_window: Option<usize>,
    /// Qwen2-MoE: biases of queries, keys and values. Files of Qwen3-MoE may have this field and
    /// the next, without meaning.
    qkv_bias: Option<bool>,
    /// Qwen2-MoE: width inside the shared expert.
    shared_expert_intermediate_size: Option<usize>,
    /// Qwen2-MoE: kinds of the blocks.
    layer_types: Option<Vec<String>>,
    /// Qwen2-MoE: only blocks below this index slide, where `layer_types` is absent.
    max_window_layers: Option<usize>,
    /// Qwen3-MoE: biases of attention.
    attention_bias: Option<bool>,
    /// Qwen3-MoE: some files say that heads are normed; saying that they are not is refused.
    use_qk_norm: Option<bool>,
}

/// Defaults of Qwen2-MoE; the number of experts is in [`qwen2_moe`], since it has two names.
pub(super) fn defaults_of_2() -> Value {
    json!({
        "vocab_size": 151_936, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24, "num_attention_heads": 16,
        "num_key_value_heads": 16, "eos_token_id": null, "use_sliding_window": false, "sliding_window": 4096,
        "max_window_layers": 28, "decoder_sparse_step": 1, "moe_intermediate_size": 1408, "num_experts_per_tok": 4,
        "norm_topk_prob": false, "shared_expert_intermediate_size": 5632, "qkv_bias": true
    })
}

/// Defaults of Qwen3-MoE; the number of experts is in [`qwen3_moe`].
pub(super) fn defaults_of_3() -> Value {
    json!({
        "vocab_size": 151_936, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24, "num_attention_heads": 32,
        "num_key_value_heads": 4, "eos_token_id": null, "use_sliding_window": false, "sliding_window": 4096,
        "decoder_sparse_step": 1, "moe_intermediate_size": 768, "num_experts_per_tok": 8, "norm_topk_prob": false
    })
}

/// Describes a Qwen2-MoE.
pub(super) fn qwen2_moe(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let mut qwen: QwenMoe = serde_json::from_value(fields)?;
    let width = qwen
        .shared_expert_intermediate_size
        .ok_or(ConfigProblem::Missing { field: "shared_expert_intermediate_size", needed_by: "qwen2_moe" })?;
    let width = size("shared_expert_intermediate_size", width, 1 << 22)?;
    let (bias, upper) = (qwen.qkv_bias.unwrap_or(true), qwen.max_window_layers.unwrap_or(usize::MAX));
    let (layer_types, sliding) = (qwen.layer_types.take(), qwen.sliding()?);
    let fields = qwen.lower(60, Some(width))?;
    // As transformers 5.23 fills in `layer_types`: every second block below the limit.
    let windows = windows(layer_types, sliding, fields.n_layers, |layer| layer % 2 == 0 && layer < upper)?;
    Ok(DecoderFields { windows, qkv_bias: bias, ..fields })
}

/// Describes a Qwen3-MoE.
pub(super) fn qwen3_moe(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let qwen: QwenMoe = serde_json::from_value(fields)?;
    if qwen.use_qk_norm == Some(false) {
        return Err(ConfigProblem::Unsupported { field: "use_qk_norm", found: "false".to_owned() });
    }
    let (bias, sliding) = (qwen.attention_bias.unwrap_or(false), qwen.sliding()?);
    let fields = qwen.lower(128, None)?;
    let windows = vec![sliding; fields.n_layers];
    Ok(DecoderFields { windows, qkv_bias: bias, o_bias: bias, qk_norm: QkNorm::PerHead, ..fields })
}

impl QwenMoe {
    /// The window of sliding blocks; `None` if it is switched off.
    fn sliding(&self) -> Result<Option<usize>, ConfigProblem> {
        if self.use_sliding_window { window(self.sliding_window) } else { Ok(None) }
    }

    /// What both families share: a Llama with experts in some blocks, `n_experts` where the file is
    /// silent, and a shared one of width `d_shared`.
    fn lower(self, n_experts: usize, d_shared: Option<usize>) -> Result<DecoderFields, ConfigProblem> {
        let fields = self.shape.lower()?;
        let (n_experts, top_k) = self.counts.lower(n_experts, fields.n_layers)?;
        let step = size("decoder_sparse_step", self.decoder_sparse_step, usize::MAX)?;
        let plain = self.mlp_only_layers.unwrap_or_default();
        let sparse = Sparse {
            has_experts: (0..fields.n_layers).map(|i| !plain.contains(&i) && (i + 1).is_multiple_of(step)).collect(),
            n_experts,
            routing: Routing { top_k, scores: Scores::Softmax, among_chosen: self.norm_topk_prob },
            d_expert: size("moe_intermediate_size", self.moe_intermediate_size, 1 << 22)?,
            d_shared,
            bias: false,
            names: ExpertNames::QWEN,
        };
        Ok(DecoderFields { sparse: Some(sparse), ..fields })
    }
}
