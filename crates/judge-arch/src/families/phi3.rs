//! `phi3`: Phi-3, Phi-3.5 and their minis, Phi-4 and Phi-4-mini.
//!
//! A Llama with fused tensors: `self_attn.qkv_proj` (queries, keys, values) and `mlp.gate_up_proj`
//! (gate first). Some rotate part of a head (`partial_rotary_factor`, 0.75 in Phi-4-mini), and
//! those with a long context have longrope, which old files call `yarn`. The original context is
//! beside the rope fields. One window for all blocks, or none. No biases and no norms of heads.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::checks::window;
use crate::decoder_fields::{DecoderFields, MlpNames, Qkv};
use crate::rope::RopeRules;
use crate::shape::Shape;

/// Fields of the family.
#[derive(Deserialize)]
struct Phi3 {
    #[serde(flatten)]
    shape: Shape,
    /// Window of every block; absent or null for none.
    sliding_window: Option<usize>,
}

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192, "max_position_embeddings": 4096,
        "original_max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "eos_token_id": 32000
    })
}

/// Describes a Phi-3.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let Phi3 { mut shape, sliding_window } = serde_json::from_value(fields)?;
    shape.rope_rules = RopeRules { is_partial: true, yarn_is_longrope: true, ..RopeRules::default() };
    let fields = shape.lower()?;
    let windows = vec![window(sliding_window)?; fields.n_layers];
    Ok(DecoderFields { windows, qkv: Qkv::Fused("self_attn.qkv_proj"), mlp: MlpNames::FUSED, ..fields })
}
