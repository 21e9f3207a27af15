//! `ministral3`: Ministral 3 (3B, 8B, 14B), published inside `mistral3` folders.
//!
//! A Mistral whose queries grow with their position: after the rotation they are multiplied by
//! `1 + beta * ln(1 + floor(p / original_len))`, which is 1 within the original context
//! (`QueryGrowth` in `rope.rs`). A file without rope fields has yarn with factor 16 over 16,384
//! positions, base 1e6, beta 0.1, and equal mscales, so that its attention factor is 1. A stated
//! rope without a beta leaves queries as they are.
//!
//! Tensors are named as in Llama. Published instruct folders are FP8, which `weights` dequantises.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::checks::window;
use crate::decoder_fields::DecoderFields;
use crate::rope::RopeRules;
use crate::shape::Shape;

/// Fields of the family.
#[derive(Deserialize)]
struct Ministral3 {
    #[serde(flatten)]
    shape: Shape,
    /// Window of every block; absent or null for none.
    sliding_window: Option<usize>,
}

/// Defaults where they differ from those of all families, but for the rope fields, which [`fields`]
/// fills in: they are an object, and hold only where the file has no rope fields at all.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 131_072, "intermediate_size": 14336, "num_hidden_layers": 34, "num_key_value_heads": 8,
        "head_dim": 128, "max_position_embeddings": 262_144, "rms_norm_eps": 1e-5
    })
}

/// Describes a Ministral 3.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let Ministral3 { mut shape, sliding_window } = serde_json::from_value(fields)?;
    if shape.rope_parameters.is_none() && shape.rope_scaling.is_none() {
        shape.rope_parameters = serde_json::from_value(json!({
            "rope_type": "yarn", "rope_theta": 1e6, "factor": 16.0, "original_max_position_embeddings": 16384,
            "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1
        }))?;
    }
    shape.rope_rules = RopeRules { grows_queries: true, ..RopeRules::default() };
    let fields = shape.lower()?;
    Ok(DecoderFields { windows: vec![window(sliding_window)?; fields.n_layers], ..fields })
}
