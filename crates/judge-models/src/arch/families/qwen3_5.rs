//! Qwen3.5 and 3.6, dense or with experts: three blocks of four have a gated delta rule in the place of attention; the others gate what attention gives and rotate part of a head.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::dense::{Dense, QkNorm};
use crate::arch::experts::{Counts, ExpertNames, Sparse};
use crate::arch::rope::RopeRules;
use crate::arch::shape::{Shape, check_granted, overlay, second_kind, size};
use crate::arch::{Activation, ConfigProblem, DeltaShape, Routing};

#[derive(Deserialize)]
struct Qwen35 {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    attention_bias: bool,
    layer_types: Option<Vec<String>>,
    full_attention_interval: usize,
    linear_conv_kernel_dim: usize,
    linear_key_head_dim: usize,
    linear_value_head_dim: usize,
    linear_num_key_heads: usize,
    linear_num_value_heads: usize,
}

#[derive(Deserialize)]
struct Experts {
    #[serde(flatten)]
    counts: Counts,
    moe_intermediate_size: usize,
    shared_expert_intermediate_size: usize,
}

pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 248_320, "intermediate_size": 12288, "num_attention_heads": 16, "num_key_value_heads": 4,
        "head_dim": 256, "eos_token_id": null, "attention_bias": false, "partial_rotary_factor": 0.25,
        "full_attention_interval": 4, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
        "linear_value_head_dim": 128, "linear_num_key_heads": 16, "linear_num_value_heads": 32
    })
}

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

pub(super) fn dense(fields: Value) -> Result<Dense, ConfigProblem> {
    lower("qwen3_5_text", &fields)
}

/// Experts in all blocks, and one more that every row goes through.
pub(super) fn moe(fields: Value) -> Result<Dense, ConfigProblem> {
    check_granted(&fields, &[("norm_topk_prob", json!(true)), ("decoder_sparse_step", json!(1))])?;
    let experts = Experts::deserialize(&fields)?;
    let dense = lower("qwen3_5_moe_text", &fields)?;
    let (n_experts, top_k) = experts.counts.lower(256, dense.n_layers)?;
    let d_expert = size("moe_intermediate_size", experts.moe_intermediate_size, 1 << 22)?;
    let d_shared = size("shared_expert_intermediate_size", experts.shared_expert_intermediate_size, 1 << 22)?;
    let routing = Routing { top_k, among_chosen: true };
    let sparse = Sparse::everywhere(dense.n_layers, n_experts, d_expert, routing, ExpertNames::QWEN);
    Ok(Dense { sparse: Some(Sparse { d_shared: Some(d_shared), ..sparse }), ..dense })
}

fn lower(family: &'static str, fields: &Value) -> Result<Dense, ConfigProblem> {
    let mut found = Qwen35::deserialize(fields)?;
    // What published files say of their blocks and transformers takes for granted.
    check_granted(fields, &[("attn_output_gate", json!(true)), ("mlp_only_layers", json!([]))])?;
    let shape = found.delta_shape()?;
    found.shape.rope_rules = RopeRules { is_partial: true, ..RopeRules::default() };
    let dense = found.shape.lower(family, "hidden_act", &found.hidden_act)?;
    if dense.activation != Activation::Silu {
        // It is that of the convolution too.
        let expected = "silu".to_owned();
        return Err(ConfigProblem::Value { field: "hidden_act", found: found.hidden_act, expected });
    }
    let interval = size("full_attention_interval", found.full_attention_interval, usize::MAX)?;
    let has_delta = match found.layer_types {
        Some(types) => second_kind(&types, &["full_attention", "linear_attention"], dense.n_layers)?,
        None => (0..dense.n_layers).map(|layer| !(layer + 1).is_multiple_of(interval)).collect(),
    };
    Ok(Dense {
        norm_offset: true,
        qk_norm: QkNorm::PerHead,
        qkv_bias: found.attention_bias,
        o_bias: found.attention_bias,
        is_gated: true,
        delta: Some((has_delta, shape)),
        ..dense
    })
}

impl Qwen35 {
    fn delta_shape(&self) -> Result<DeltaShape, ConfigProblem> {
        let n_key_heads = size("linear_num_key_heads", self.linear_num_key_heads, 1 << 16)?;
        let n_value_heads = size("linear_num_value_heads", self.linear_num_value_heads, 1 << 16)?;
        if !n_value_heads.is_multiple_of(n_key_heads) {
            return Err(ConfigProblem::Value {
                field: "linear_num_value_heads",
                found: n_value_heads.to_string(),
                expected: format!("a multiple of linear_num_key_heads {n_key_heads}"),
            });
        }
        let kernel = size("linear_conv_kernel_dim", self.linear_conv_kernel_dim, 1 << 8)?;
        if kernel < 2 {
            let (found, expected) = (kernel.to_string(), "at least 2".to_owned());
            return Err(ConfigProblem::Value { field: "linear_conv_kernel_dim", found, expected });
        }
        Ok(DeltaShape {
            n_key_heads,
            n_value_heads,
            key_dim: size("linear_key_head_dim", self.linear_key_head_dim, 1 << 12)?,
            value_dim: size("linear_value_head_dim", self.linear_value_head_dim, 1 << 12)?,
            kernel,
        })
    }
}
