//! `llama`: Llama 2, 3, 3.1 to 3.3, and what was published in their form (SmolLM2, DeepSeek-R1
//! distilled into Llama, Llama Guard 3, many judges and reward models).
//!
//! The family that all others are described against:
//!
//! - RMS norms before attention and before the MLP, plain weights.
//! - Full causal attention, fewer key heads than query heads where the file says so, no norms of
//!   heads.
//! - Rotation of whole heads in halves; Llama 3.1 and later scale it (`llama3`).
//! - A gated MLP with SiLU; biases of attention and of the MLP are switches, off by default.
//!
//! Tensors: `model.embed_tokens`, `model.layers.N.{input_layernorm, self_attn.{q,k,v,o}_proj,
//! post_attention_layernorm, mlp.{gate,up,down}_proj}`, `model.norm`, `lm_head`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::decoder_fields::DecoderFields;
use crate::shape::Shape;

/// Fields of the family.
#[derive(Deserialize)]
struct Llama {
    #[serde(flatten)]
    shape: Shape,
    /// Biases of all four projections of attention.
    attention_bias: bool,
    /// Biases of the MLP's projections.
    mlp_bias: bool,
}

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({ "max_position_embeddings": 2048, "attention_bias": false, "mlp_bias": false })
}

/// Describes a Llama.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let Llama { shape, attention_bias, mlp_bias } = serde_json::from_value(fields)?;
    let fields = shape.lower()?;
    Ok(DecoderFields { qkv_bias: attention_bias, o_bias: attention_bias, mlp_bias, ..fields })
}
