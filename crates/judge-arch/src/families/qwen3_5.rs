//! `qwen3_5_text`: Qwen3.5 and 3.6, dense (0.8B to 27B). `qwen3_5_moe_text`: the same with experts
//! (such as 35B-A3B). Published alone or inside `qwen3_5` and `qwen3_5_moe` folders.
//!
//! - Three blocks of four have a gated delta rule in the place of attention (`DeltaSpec` in
//!   `spec.rs`); by `layer_types`, or full attention in block `i` if
//!   `(i + 1) % full_attention_interval == 0`.
//! - Full blocks have one gate per query coordinate, interleaved in `q_proj` as `[query, gate]` per
//!   head; norms of query and key heads; and rotate a quarter of a head.
//! - Norm weights `w` stand for `1 + w`, also those of heads, but not the norm inside the delta
//!   rule.
//! - Multi-axis rotation (`mrope_section`) is that of a plain one for text, where all axes have one
//!   position.
//! - With experts: 256 in every block, 8 per row, weights a softmax over the chosen ones, and a
//!   shared expert with a gate, as in Qwen2-MoE.
//!
//! Tensors besides Llama's: `linear_attn.{in_proj_qkv, in_proj_z, in_proj_b, in_proj_a, conv1d,
//! dt_bias, A_log, norm, out_proj}`. A head that predicts further tokens (`mtp.*`) is passed over.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::checks::{check_granted, kernel, overlay, second_kind, size};
use crate::decoder_fields::{DecoderFields, QkNorm};
use crate::experts::{Counts, ExpertNames, Sparse};
use crate::rope::RopeRules;
use crate::shape::Shape;
use crate::{ConfigProblem, DeltaShape, Routing, Scores};

/// Fields of both families.
#[derive(Deserialize)]
struct Qwen35 {
    #[serde(flatten)]
    shape: Shape,
    /// Biases of all four projections of full attention.
    attention_bias: bool,
    /// Kinds of the blocks: `full_attention` or `linear_attention`.
    layer_types: Option<Vec<String>>,
    /// Distance of full blocks, used without `layer_types`.
    full_attention_interval: usize,
    /// Positions that the convolution sees.
    linear_conv_kernel_dim: usize,
    /// Coordinates of a query or key head of the delta rule.
    linear_key_head_dim: usize,
    /// Coordinates of a value head.
    linear_value_head_dim: usize,
    /// Query and key heads of the delta rule.
    linear_num_key_heads: usize,
    /// Value heads, a multiple of the key heads.
    linear_num_value_heads: usize,
}

/// Further fields of models with experts.
#[derive(Deserialize)]
struct Experts {
    /// Numbers of experts.
    #[serde(flatten)]
    counts: Counts,
    /// Width inside an expert.
    moe_intermediate_size: usize,
    /// Width inside the shared expert.
    shared_expert_intermediate_size: usize,
}

/// Defaults of dense models where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 248_320, "intermediate_size": 12288, "num_attention_heads": 16, "num_key_value_heads": 4,
        "head_dim": 256, "eos_token_id": null, "attention_bias": false, "partial_rotary_factor": 0.25,
        "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32
    })
}

/// Defaults of models with experts: those of dense ones with other sizes.
pub(super) fn defaults_of_moe() -> Value {
    let mut fields = defaults();
    overlay(
        &mut fields,
        json!({
            "hidden_size": 2048, "num_hidden_layers": 40, "num_key_value_heads": 2, "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 512, "num_experts_per_tok": 8
        }),
    );
    fields
}

/// Describes a dense Qwen3.5, and everything but experts of one with them.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let mut found = Qwen35::deserialize(&fields)?;
    // Published files state these; transformers takes them for granted.
    check_granted(&fields, &[("attn_output_gate", json!(true)), ("mlp_only_layers", json!([]))])?;
    let shape = found.delta_shape()?;
    found.shape.rope_rules = RopeRules { is_partial: true, ..RopeRules::default() };
    found.shape.must_be_silu("silu")?;
    let fields = found.shape.lower()?;
    let interval = size("full_attention_interval", found.full_attention_interval, usize::MAX)?;
    let has_delta = match found.layer_types {
        Some(types) => second_kind(&types, &["full_attention", "linear_attention"], fields.n_layers)?,
        None => (0..fields.n_layers).map(|layer| !(layer + 1).is_multiple_of(interval)).collect(),
    };
    Ok(DecoderFields {
        norm_offset: true,
        qk_norm: QkNorm::PerHead,
        qkv_bias: found.attention_bias,
        o_bias: found.attention_bias,
        is_gated: true,
        delta: Some((has_delta, shape)),
        ..fields
    })
}

/// Describes a Qwen3.5 with experts in all blocks, and a shared one.
pub(super) fn moe(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    check_granted(&fields, &[("norm_topk_prob", json!(true)), ("decoder_sparse_step", json!(1))])?;
    let experts = Experts::deserialize(&fields)?;
    let fields = self::fields(fields)?;
    let (n_experts, top_k) = experts.counts.lower(256, fields.n_layers)?;
    let d_expert = size("moe_intermediate_size", experts.moe_intermediate_size, 1 << 22)?;
    let d_shared = size("shared_expert_intermediate_size", experts.shared_expert_intermediate_size, 1 << 22)?;
    let routing = Routing { top_k, scores: Scores::Softmax, among_chosen: true };
    let sparse = Sparse::everywhere(fields.n_layers, n_experts, d_expert, routing, ExpertNames::QWEN);
    Ok(DecoderFields { sparse: Some(Sparse { d_shared: Some(d_shared), ..sparse }), ..fields })
}

impl Qwen35 {
    /// The sizes of the delta rule.
    fn delta_shape(&self) -> Result<DeltaShape, ConfigProblem> {
        let n_key_heads = size("linear_num_key_heads", self.linear_num_key_heads, 1 << 16)?;
        let n_value_heads = size("linear_num_value_heads", self.linear_num_value_heads, 1 << 16)?;
        if !n_value_heads.is_multiple_of(n_key_heads) {
            let expected = format!("a multiple of linear_num_key_heads {n_key_heads}");
            return Err(ConfigProblem::value("linear_num_value_heads", n_value_heads, expected));
        }
        let kernel = kernel("linear_conv_kernel_dim", self.linear_conv_kernel_dim)?;
        Ok(DeltaShape {
            n_key_heads,
            n_value_heads,
            key_dim: size("linear_key_head_dim", self.linear_key_head_dim, 1 << 12)?,
            value_dim: size("linear_value_head_dim", self.linear_value_head_dim, 1 << 12)?,
            kernel,
        })
    }
}
