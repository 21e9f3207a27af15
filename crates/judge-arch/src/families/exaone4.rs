//! `exaone4`: EXAONE 4.0 (1.2B, 32B).
//!
//! - Norms after both halves of a block and none before: `x + norm(f(x))`, under OLMo 2's names
//!   `post_attention_layernorm` and `post_feedforward_layernorm`.
//! - Norms per query and key head before the rotation, plain weights. No biases.
//! - In models with windows (32B) every fourth block is full, and full blocks do not rotate (NoPE).
//!   Without a window (1.2B) all blocks are full and all rotate.
//!
//! Kinds of the blocks are in `layer_types`, or follow from `sliding_window_pattern`.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::checks::{size, window, windows};
use crate::decoder_fields::{BlockNorms, DecoderFields, QkNorm};
use crate::shape::Shape;

/// Fields of the family.
#[derive(Deserialize)]
struct Exaone4 {
    #[serde(flatten)]
    shape: Shape,
    /// Width of windows; null for none, which also makes all blocks rotate.
    sliding_window: Option<usize>,
    /// Distance of full blocks, used without `layer_types`. A number; or letters such as `LLLG`,
    /// beside which `layer_types` must be there.
    sliding_window_pattern: Value,
    /// Kinds of the blocks.
    layer_types: Option<Vec<String>>,
}

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 102_400, "intermediate_size": 16384, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
        "sliding_window": 4096, "sliding_window_pattern": 4
    })
}

/// Describes an EXAONE 4.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let found: Exaone4 = serde_json::from_value(fields)?;
    let sliding = window(found.sliding_window)?;
    let fields = found.shape.lower()?;
    let pattern = match (&found.layer_types, sliding) {
        (None, Some(_)) => {
            let pattern = found.sliding_window_pattern.as_u64().and_then(|pattern| usize::try_from(pattern).ok());
            size("sliding_window_pattern", pattern.unwrap_or(0), usize::MAX)?
        }
        _ => 1,
    };
    let windows = windows(found.layer_types, sliding, fields.n_layers, |layer| !(layer + 1).is_multiple_of(pattern))?;
    let rope_of = windows.iter().map(|window| (sliding.is_none() || window.is_some()).then_some(0)).collect();
    Ok(DecoderFields { norms: BlockNorms::AFTER, qk_norm: QkNorm::PerHead, windows, rope_of, ..fields })
}
