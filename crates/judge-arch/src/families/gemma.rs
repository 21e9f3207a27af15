//! `gemma`: Gemma 1 (2B, 7B), CodeGemma. `gemma2`: Gemma 2 (2B, 9B, 27B), ShieldGemma. `gemma3_text`: Gemma 3 (270M, 1B), and the text
//! model inside `gemma3` folders (4B, 12B, 27B).
//!
//! Common to all: weights `1 + w` of RMS norms; embeddings times `sqrt(d_model)`, rounded to the
//! dtype of the weights; tanh-GELU; heads of 256 coordinates; a tied head. Gemma 1 is otherwise a
//! Llama, whose old files say `gelu` and mean tanh-GELU. Gemma 2 and 3 norm before and after both
//! halves of a block, multiply scores by `query_pre_attn_scalar^-0.5`, and have windows in some
//! blocks:
//!
//! | | `gemma2` | `gemma3_text` |
//! |---|---|---|
//! | full blocks without `layer_types` | every 2nd | every 6th (`sliding_window_pattern`) |
//! | soft caps | scores 50, logits 30 | logits alone, none by default |
//! | norms of query and key heads | none | per head, `1 + w`, before the rotation |
//! | base of the rotation | 1e4 | full blocks 1e6, the others 1e4 |
//! | scaling of the rotation | of all blocks | of full blocks alone (linear by 8 in 4B and up) |
//!
//! Tensors: `post_attention_layernorm` is the norm after attention, not before the MLP;
//! `pre_feedforward_layernorm` and `post_feedforward_layernorm` are around the MLP;
//! `self_attn.{q,k}_norm` in Gemma 3. Published 4B files leave out heads, their width and the
//! vocabulary, so the defaults decide what is loaded. Attention to both sides (EmbeddingGemma) is
//! refused.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::checks::{is_positive, must_be_off, size, window, windows};
use crate::decoder_fields::{BlockNorms, DecoderFields, QkNorm};
use crate::rope::RopesByKind;
use crate::shape::Shape;
use crate::spec::EmbeddingScale;

/// Fields of Gemma 1.
#[derive(Deserialize)]
struct First {
    #[serde(flatten)]
    shape: Shape,
    /// Biases of all four projections of attention.
    attention_bias: bool,
    /// Attention to both sides, which is refused.
    use_bidirectional_attention: Option<bool>,
}

/// Defaults of transformers 5.23 for Gemma 1.
pub(super) fn defaults_of_1() -> Value {
    json!({
        "vocab_size": 256_000, "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
        "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 256, "max_position_embeddings": 8192,
        "tie_word_embeddings": true, "eos_token_id": 1, "hidden_act": "gelu_pytorch_tanh", "attention_bias": false
    })
}

/// Describes a Gemma 1.
pub(super) fn gemma1(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let First { mut shape, attention_bias, use_bidirectional_attention } = serde_json::from_value(fields)?;
    must_be_off("use_bidirectional_attention", use_bidirectional_attention == Some(true))?;
    if shape.hidden_act == "gelu" {
        shape.hidden_act = "gelu_pytorch_tanh".to_owned();
    }
    let fields = shape.lower()?;
    Ok(DecoderFields {
        embedding_scale: Some(embedding_scale(fields.d_model)),
        norm_offset: true,
        qkv_bias: attention_bias,
        o_bias: attention_bias,
        ..fields
    })
}

/// The factor on embeddings.
fn embedding_scale(d_model: usize) -> EmbeddingScale {
    EmbeddingScale::Rounded((d_model as f64).sqrt())
}

/// Fields of Gemma 2 and 3.
#[derive(Deserialize)]
struct Gemma {
    #[serde(flatten)]
    shape: Shape,
    /// Biases of all four projections of attention.
    attention_bias: bool,
    /// Scores are divided by its root.
    query_pre_attn_scalar: f64,
    /// Width of windows; null for none.
    sliding_window: Option<usize>,
    /// Kinds of the blocks.
    layer_types: Option<Vec<String>>,
    /// Gemma 2: soft cap of scores; null for none.
    attn_logit_softcapping: Option<f64>,
    /// Soft cap of logits; null for none.
    final_logit_softcapping: Option<f64>,
    /// Attention to both sides, which is refused.
    use_bidirectional_attention: Option<bool>,
    /// Gemma 3: distance of full blocks, used without `layer_types`.
    sliding_window_pattern: Option<usize>,
    /// Gemma 3: base of blocks with a window, used where `rope_parameters` states none; 1e4 by
    /// default.
    rope_local_base_freq: Option<f64>,
}

/// Defaults of transformers 5.23 for Gemma 2.
pub(super) fn defaults_of_2() -> Value {
    json!({
        "vocab_size": 256_000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 8192,
        "tie_word_embeddings": true, "eos_token_id": 1, "hidden_activation": "gelu_pytorch_tanh",
        "attention_bias": false, "query_pre_attn_scalar": 256, "sliding_window": 4096,
        "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0
    })
}

/// Describes a Gemma 2.
pub(super) fn gemma2(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    // Blocks 0, 2, 4 and so on have a window.
    serde_json::from_value::<Gemma>(fields)?.lower(2)
}

/// Defaults of transformers 5.23 for Gemma 3.
pub(super) fn defaults_of_3() -> Value {
    json!({
        "vocab_size": 262_208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131_072,
        "tie_word_embeddings": true, "eos_token_id": 1, "hidden_activation": "gelu_pytorch_tanh",
        "attention_bias": false, "query_pre_attn_scalar": 256, "sliding_window": 4096, "sliding_window_pattern": 6
    })
}

/// Describes a Gemma 3. The rope fields are taken out of the shape and lowered per kind of block.
///
/// A soft cap of scores is not read: transformers 5.23 keeps the field and does not hand it to attention
/// (`Gemma3Attention.forward`).
pub(super) fn gemma3(mut fields: Value) -> Result<DecoderFields, ConfigProblem> {
    fields["attn_logit_softcapping"] = Value::Null;
    let mut gemma: Gemma = serde_json::from_value(fields)?;
    let shape = &mut gemma.shape;
    let theta = [shape.rope_theta.unwrap_or(1e6), gemma.rope_local_base_freq.unwrap_or(1e4)];
    let ropes = RopesByKind::new(shape.rope_parameters.take(), shape.rope_scaling.take(), theta)?;
    shape.rope_theta = None;
    let pattern = size("sliding_window_pattern", gemma.sliding_window_pattern.unwrap_or(6), usize::MAX)?;
    let fields = gemma.lower(pattern)?;
    // The stated context already counts the scaling, so it is kept.
    DecoderFields { qk_norm: QkNorm::PerHead, ..fields }.with_ropes(ropes, true)
}

impl Gemma {
    /// What both families share. Without `layer_types` all blocks but each `pattern`th have a
    /// window.
    fn lower(self, pattern: usize) -> Result<DecoderFields, ConfigProblem> {
        must_be_off("use_bidirectional_attention", self.use_bidirectional_attention == Some(true))?;
        let cap = |field, cap: Option<f64>| match cap {
            Some(cap) if !is_positive(cap) => {
                Err(ConfigProblem::value(field, cap, "a finite number above 0 in f32, or null"))
            }
            cap => Ok(cap),
        };
        let attention_scale = self.query_pre_attn_scalar.sqrt().recip();
        if !is_positive(attention_scale) {
            let expected = "a finite number above 0";
            return Err(ConfigProblem::value("query_pre_attn_scalar", self.query_pre_attn_scalar, expected));
        }
        let mut config = self.shape.lower()?;
        let sliding = window(self.sliding_window)?;
        config.windows =
            windows(self.layer_types, sliding, config.n_layers, |layer| !(layer + 1).is_multiple_of(pattern))?;
        config.attention_scale = attention_scale;
        config.attention_soft_cap = cap("attn_logit_softcapping", self.attn_logit_softcapping)?;
        config.final_soft_cap = cap("final_logit_softcapping", self.final_logit_softcapping)?;
        config.embedding_scale = Some(embedding_scale(config.d_model));
        config.norm_offset = true;
        config.norms = BlockNorms::AROUND;
        config.qkv_bias = self.attention_bias;
        config.o_bias = self.attention_bias;
        Ok(config)
    }
}
