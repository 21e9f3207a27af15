//! `glm`: GLM-4 9B (`glm-4-9b-chat-hf`). `glm4`: GLM-4-0414 (9B, 32B).
//!
//! Both have heads of 128 coordinates with 2 key heads, of which the first half rotates, neighbours
//! `2i` and `2i + 1` together; biases of queries, keys and values but not after attention; gate and
//! up as one tensor, `mlp.gate_up_proj`, gate first; plain RMS norms with epsilon 1.5625e-7; and
//! three end tokens. Queries, keys and values are separate tensors, and there are no norms of
//! heads.
//!
//! They differ in norms: `glm` has Llama's two, `glm4` four, under names that mislead (see
//! `NORMS`).

use judge_kernels::functions::Pairs;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::decoder_fields::{BlockNorms, DecoderFields, MlpNames};
use crate::rope::RopeRules;
use crate::shape::Shape;

/// Fields of both families.
#[derive(Deserialize)]
struct Glm {
    #[serde(flatten)]
    shape: Shape,
    /// Biases of queries, keys and values; on by default.
    attention_bias: bool,
}

/// Norms of `glm4`. `post_attention_layernorm` is before the MLP, as in Llama; the norm of what
/// attention gave is `post_self_attn_layernorm`.
const NORMS: BlockNorms = BlockNorms {
    before_attention: Some("input_layernorm"),
    after_attention: Some("post_self_attn_layernorm"),
    before_mlp: Some("post_attention_layernorm"),
    after_mlp: Some("post_mlp_layernorm"),
};

/// Defaults of both families, where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 151_552, "intermediate_size": 13696, "num_hidden_layers": 40, "num_key_value_heads": 2,
        "head_dim": 128, "max_position_embeddings": 131_072, "rms_norm_eps": 1.5625e-7, "attention_bias": true,
        "partial_rotary_factor": 0.5, "eos_token_id": [151_329, 151_336, 151_338]
    })
}

/// Describes a `glm`, with Llama's norms.
pub(super) fn glm(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let Glm { mut shape, attention_bias } = serde_json::from_value(fields)?;
    shape.rope_rules = RopeRules { pairs: Pairs::Neighbours, is_partial: true, ..RopeRules::default() };
    Ok(DecoderFields { qkv_bias: attention_bias, mlp: MlpNames::FUSED, ..shape.lower()? })
}

/// Describes a `glm4`.
pub(super) fn glm4(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    Ok(DecoderFields { norms: NORMS, ..glm(fields)? })
}
