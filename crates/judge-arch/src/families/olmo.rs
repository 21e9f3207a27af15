//! `olmo2`: OLMo 2 (1B to 32B). `olmo3`: OLMo 3 (7B, 32B).
//!
//! - RMS norms after both halves of a block and none before: `x + norm(f(x))`, named
//!   `post_attention_layernorm` and `post_feedforward_layernorm`.
//! - One norm over all query heads and one over all key heads, `self_attn.q_norm` `[d_query]` and
//!   `self_attn.k_norm` `[d_key]`, before the rotation, with plain weights.
//! - OLMo 3 has windows (4096) in three blocks of four. Its full blocks follow `rope_scaling`
//!   (yarn), those with a window keep the plain rotation.
//!
//! The base is 1e4 in OLMo 2 and 5e5 in OLMo 3. A top-level `rope_theta` sets that of full blocks
//! alone, and flat `rope_parameters` that scale are refused: transformers 5.23 ignores them without
//! a word.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::checks::{window, windows};
use crate::decoder_fields::{BlockNorms, DecoderFields, QkNorm};
use crate::rope::RopesByKind;
use crate::shape::Shape;

/// Fields of both families.
#[derive(Deserialize)]
struct Olmo {
    #[serde(flatten)]
    shape: Shape,
    /// Biases of all four projections of attention.
    attention_bias: bool,
    /// OLMo 3: width of windows.
    sliding_window: Option<usize>,
    /// OLMo 3: kinds of the blocks; by default every fourth is full.
    layer_types: Option<Vec<String>>,
}

/// Defaults of both families, where they differ from those of all. OLMo 2 has no use for the window.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 50304, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "eos_token_id": 50279,
        "attention_bias": false, "sliding_window": 4096
    })
}

/// Describes an OLMo 2.
pub(super) fn olmo2(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    serde_json::from_value::<Olmo>(fields)?.lower()
}

/// Describes an OLMo 3. The rope fields are taken out of the shape and lowered per kind of block.
pub(super) fn olmo3(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let mut olmo: Olmo = serde_json::from_value(fields)?;
    let shape = &mut olmo.shape;
    // A base at the top level sets full blocks alone, as in transformers.
    let theta = [shape.rope_theta.take().unwrap_or(5e5), 5e5];
    let ropes = RopesByKind::new(shape.rope_parameters.take(), shape.rope_scaling.take(), theta)?;
    let (sliding, layer_types) = (window(olmo.sliding_window)?, olmo.layer_types.take());
    let fields = olmo.lower()?;
    let windows = windows(layer_types, sliding, fields.n_layers, |layer| !(layer + 1).is_multiple_of(4))?;
    DecoderFields { windows, ..fields }.with_ropes(ropes, false)
}

impl Olmo {
    /// What both families share, with one rotation and without windows.
    fn lower(self) -> Result<DecoderFields, ConfigProblem> {
        let fields = self.shape.lower()?;
        let bias = self.attention_bias;
        Ok(DecoderFields { norms: BlockNorms::AFTER, qk_norm: QkNorm::Whole, qkv_bias: bias, o_bias: bias, ..fields })
    }
}
