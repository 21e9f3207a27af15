//! `gpt_oss`: gpt-oss 20B and 120B, as published (experts in MXFP4) or in bf16.
//!
//! - RMS norms before both halves of a block, plain weights; biases of all projections, router and
//!   experts included. Heads of 64 coordinates.
//! - Windows of 128 in even blocks, by default.
//! - Sinks: one learned score per query head takes part in the softmax and its weight goes to no
//!   value.
//! - Yarn with factor 32 over 4096 positions, base 150,000, with a ramp that is not rounded to
//!   pairs.
//! - 128 experts (32 in 20B), 4 per row: the highest logits, then a softmax over the chosen ones.
//! - A gate of its own inside experts: `g * sigmoid(1.702 * g) * (u + 1)`, with `g` at most 7 and
//!   `u` within ±7 (`Activation::ClampedSwish`).
//!
//! Tensors: `self_attn.sinks`, `mlp.router.{weight, bias}`, and experts as stacks of columns,
//! `mlp.experts.{gate_up_proj, down_proj}` with `_bias`, gate and up in alternate columns.

use judge_kernels::functions::Activation;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::checks::{positive, window, windows};
use crate::decoder_fields::DecoderFields;
use crate::experts::{Counts, ExpertNames, Sparse};
use crate::shape::Shape;
use crate::{ConfigProblem, Routing, Scores};

/// Fields of the family.
#[derive(Deserialize)]
struct GptOss {
    /// Fields of all families; `intermediate_size` is that of an expert.
    #[serde(flatten)]
    shape: Shape,
    /// Numbers of experts.
    #[serde(flatten)]
    counts: Counts,
    /// Biases of all four projections of attention; on by default.
    attention_bias: bool,
    /// Width of windows; needed where a block slides.
    sliding_window: Option<usize>,
    /// Kinds of the blocks; by default even ones slide and odd ones are full.
    layer_types: Option<Vec<String>>,
    /// `alpha` of the gate.
    swiglu_alpha: f64,
    /// `limit` of the gate.
    swiglu_limit: f64,
}

/// Defaults of transformers 5.23, but for the rope fields and the number of experts, which are in
/// [`fields`].
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 201_088, "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 36, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131_072, "rms_norm_eps": 1e-5, "rope_theta": 150_000.0,
        "eos_token_id": null, "attention_bias": true, "sliding_window": 128, "num_experts_per_tok": 4, "swiglu_alpha": 1.702,
        "swiglu_limit": 7.0
    })
}

/// Describes a gpt-oss.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
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
    // `hidden_act` names a function that is not used: `activation` below takes its place.
    let fields = found.shape.lower()?;
    let kinds = ["sliding_attention", "full_attention"];
    // A list in either case, so that a file without a window is refused.
    let types =
        found.layer_types.unwrap_or_else(|| (0..fields.n_layers).map(|layer| kinds[layer % 2].to_owned()).collect());
    let (n_experts, top_k) = found.counts.lower(128, fields.n_layers)?;
    let routing = Routing { top_k, scores: Scores::Softmax, among_chosen: true };
    let sparse = Sparse::everywhere(fields.n_layers, n_experts, fields.d_ff, routing, ExpertNames::GPT_OSS);
    let sparse = Sparse { bias: true, ..sparse };
    let windows = windows(Some(types), window(found.sliding_window)?, fields.n_layers, |_| false)?;
    let sparse = Some(sparse);
    Ok(DecoderFields { windows, qkv_bias: bias, o_bias: bias, sinks: true, activation, sparse, ..fields })
}
