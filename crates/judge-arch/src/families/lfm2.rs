//! `lfm2`: LFM2 (350M to 2.6B).
//!
//! Most blocks have a gated short convolution in the place of attention: `C * conv(B * x)` of the
//! rows `[B, C, x]` that `conv.in_proj` gives (`ConvSpec` in `spec.rs`). The others have full
//! attention with norms per query and key head before the rotation. Norms of states are before both
//! halves; the head is tied; there are no biases, and SiLU is the only activation. Which blocks
//! have attention is said by `layer_types`, else by `full_attn_idxs`; a file with neither has
//! attention in all.
//!
//! Names differ throughout:
//!
//! | here | in files |
//! |---|---|
//! | norm before attention or convolution | `operator_norm` |
//! | norm before the MLP | `ffn_norm` |
//! | gate, up, down | `feed_forward.w1`, `feed_forward.w3`, `feed_forward.w2` |
//! | norms of heads, projection after attention | `self_attn.{q,k}_layernorm`, `self_attn.out_proj` |
//! | convolution | `conv.{in_proj, conv, out_proj}` |
//! | norm after the last block | `model.embedding_norm` |

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::checks::{check_granted, kernel, must_be_off, positive, second_kind, size};
use crate::decoder_fields::{AttentionNames, BlockNorms, DecoderFields, GateUp, MlpNames, QkNorm};
use crate::shape::Shape;

/// Fields of LFM2 with experts and without.
#[derive(Deserialize)]
pub(super) struct Common {
    #[serde(flatten)]
    shape: Shape,
    /// Biases of the convolution, which are refused.
    conv_bias: bool,
    /// Positions that the convolution sees.
    #[serde(rename = "conv_L_cache")]
    conv_l_cache: usize,
    /// Older name of `tie_word_embeddings`; wins over it.
    tie_embedding: Option<bool>,
    /// Kinds of the blocks: `full_attention` or `conv`.
    layer_types: Option<Vec<String>>,
}

/// Fields of the family.
#[derive(Deserialize)]
struct Lfm2 {
    /// Fields that the family with experts has too.
    #[serde(flatten)]
    common: Common,
    /// The adjusted width of the MLP is rounded up to a multiple of this.
    block_multiple_of: usize,
    /// Factor on two thirds of the stated width; with null neither factor nor rounding applies.
    block_ffn_dim_multiplier: Option<f64>,
    /// Whether the width of the MLP is adjusted; see [`adjusted_width`].
    block_auto_adjust_ff_dim: bool,
    /// Older name of `intermediate_size`; wins over it.
    block_ff_dim: Option<usize>,
    /// Blocks with attention, used without `layer_types`.
    full_attn_idxs: Option<BTreeSet<usize>>,
}

/// Norms before both halves, under the family's names.
const NORMS: BlockNorms = BlockNorms {
    before_attention: Some("operator_norm"),
    after_attention: None,
    before_mlp: Some("ffn_norm"),
    after_mlp: None,
};

/// The family's names of gate, up and down.
const MLP: MlpNames =
    MlpNames { gate_up: GateUp::Apart { gate: "feed_forward.w1", up: "feed_forward.w3" }, down: "feed_forward.w2" };

/// The family's names in attention.
const ATTENTION: AttentionNames =
    AttentionNames { q_norm: "self_attn.q_layernorm", k_norm: "self_attn.k_layernorm", out: "self_attn.out_proj" };

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 65536, "hidden_size": 2560, "intermediate_size": 12288, "num_key_value_heads": 8,
        "max_position_embeddings": 128_000, "norm_eps": 1e-5, "tie_word_embeddings": true, "rope_theta": 1e6,
        "conv_bias": false, "conv_L_cache": 3, "block_multiple_of": 256, "block_ffn_dim_multiplier": 1.0,
        "block_auto_adjust_ff_dim": true
    })
}

/// Describes an LFM2.
pub(super) fn fields(mut fields: Value) -> Result<DecoderFields, ConfigProblem> {
    fields["hidden_act"] = "silu".into(); // whatever the file says, as in transformers
    let mut found = Lfm2::deserialize(&fields)?;
    let Shape { hidden_size, num_attention_heads, rms_norm_eps, .. } = found.common.shape;
    let granted = [
        ("block_dim", json!(hidden_size)),
        ("block_norm_eps", json!(rms_norm_eps)),
        ("block_use_swiglu", json!(true)),
        ("conv_dim", json!(hidden_size)),
        ("conv_dim_out", json!(hidden_size)),
        ("num_heads", json!(num_attention_heads)),
        ("use_pos_enc", json!(true)),
    ];
    check_granted(&fields, &granted)?;
    found.common.shape.intermediate_size = found.block_ff_dim.unwrap_or(found.common.shape.intermediate_size);
    let adjusted = (found.block_auto_adjust_ff_dim, found.block_ffn_dim_multiplier, found.block_multiple_of);
    let fields = found.common.lower(|n_layers| match found.full_attn_idxs {
        Some(full) => Ok((0..n_layers).map(|layer| !full.contains(&layer)).collect()),
        None => Ok(vec![false; n_layers]),
    })?;
    Ok(DecoderFields { d_ff: adjusted_width(fields.d_ff, adjusted)?, ..fields })
}

impl Common {
    /// Describes what both kinds have in common. Where `layer_types` is absent, `silent` says which blocks have convolutions, given the
    /// number of blocks.
    pub(super) fn lower(
        self,
        silent: impl FnOnce(usize) -> Result<Vec<bool>, ConfigProblem>,
    ) -> Result<DecoderFields, ConfigProblem> {
        let mut shape = self.shape;
        must_be_off("conv_bias", self.conv_bias)?;
        shape.tie_word_embeddings = self.tie_embedding.unwrap_or(shape.tie_word_embeddings);
        let kernel = kernel("conv_L_cache", self.conv_l_cache)?;
        let fields = shape.lower()?;
        let has_conv = match self.layer_types {
            Some(types) => second_kind(&types, &["full_attention", "conv"], fields.n_layers)?,
            None => silent(fields.n_layers)?,
        };
        Ok(DecoderFields {
            norms: NORMS,
            qk_norm: QkNorm::PerHead,
            mlp: MLP,
            attention: ATTENTION,
            last_norm: "model.embedding_norm.weight",
            conv: Some((has_conv, kernel)),
            ..fields
        })
    }
}

/// The width inside the MLP. If adjusted it is `ceil(factor * floor(2 * stated / 3) / multiple) *
/// multiple` with truncation where transformers truncates, else as stated.
fn adjusted_width(
    stated: usize,
    (is_adjusted, factor, multiple): (bool, Option<f64>, usize),
) -> Result<usize, ConfigProblem> {
    if !is_adjusted {
        return Ok(stated);
    }
    // Truncated to a whole number as in transformers.
    let width = (2 * stated) as f64 / 3.0;
    let Some(factor) = factor else { return size("intermediate_size", width as usize, 1 << 22) };
    let factor = positive("block_ffn_dim_multiplier", factor)?;
    let multiple = size("block_multiple_of", multiple, 1 << 22)?;
    let width = (factor * width.trunc()) as usize;
    size("block_ffn_dim_multiplier", width.div_ceil(multiple).saturating_mul(multiple), 1 << 22)
}
