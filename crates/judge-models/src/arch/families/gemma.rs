//! Gemma 2: norms around both halves of a block, soft-caps, and every other block with a window. Gemma 3: norms of query and key heads in the place of
//! soft-caps, five blocks of six with a window, and these with a rotation of their own.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::ConfigProblem;
use crate::arch::dense::{BlockNorms, Dense, QkNorm};
use crate::arch::rope::RopesByKind;
use crate::arch::shape::{Shape, is_positive, size, window, windows};
use crate::arch::spec::EmbeddingScale;

#[derive(Deserialize)]
struct Gemma {
    #[serde(flatten)]
    shape: Shape,
    hidden_activation: String,
    attention_bias: bool,
    query_pre_attn_scalar: f64,
    sliding_window: Option<usize>,
    layer_types: Option<Vec<String>>,
    attn_logit_softcapping: Option<f64>,
    final_logit_softcapping: Option<f64>,
    use_bidirectional_attention: Option<bool>,
    // Gemma 3 alone.
    sliding_window_pattern: Option<usize>,
    rope_local_base_freq: Option<f64>,
}

pub(super) fn defaults_of_2() -> Value {
    json!({
        "vocab_size": 256_000, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 8192,
        "tie_word_embeddings": true, "eos_token_id": 1, "hidden_activation": "gelu_pytorch_tanh",
        "attention_bias": false, "query_pre_attn_scalar": 256, "sliding_window": 4096,
        "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0
    })
}

pub(super) fn gemma2(fields: Value) -> Result<Dense, ConfigProblem> {
    // The first block has a window, the second has none, and so on.
    serde_json::from_value::<Gemma>(fields)?.lower("gemma2", 2)
}

pub(super) fn defaults_of_3() -> Value {
    json!({
        "vocab_size": 262_208, "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "max_position_embeddings": 131_072,
        "tie_word_embeddings": true, "eos_token_id": 1, "hidden_activation": "gelu_pytorch_tanh",
        "attention_bias": false, "query_pre_attn_scalar": 256, "sliding_window": 4096, "sliding_window_pattern": 6
    })
}

pub(super) fn gemma3(fields: Value) -> Result<Dense, ConfigProblem> {
    let mut gemma: Gemma = serde_json::from_value(fields)?;
    let shape = &mut gemma.shape;
    let theta = [shape.rope_theta.unwrap_or(1e6), gemma.rope_local_base_freq.unwrap_or(1e4)];
    let ropes = RopesByKind::new(shape.rope_parameters.take(), shape.rope_scaling.take(), theta)?;
    shape.rope_theta = None;
    let pattern = size("sliding_window_pattern", gemma.sliding_window_pattern.unwrap_or(6), usize::MAX)?;
    let dense = gemma.lower("gemma3_text", pattern)?;
    // Scaled rotations are what `max_position_embeddings` is made for.
    Dense { qk_norm: QkNorm::PerHead, ..dense }.with_ropes(ropes, true)
}

impl Gemma {
    /// Of blocks that the file does not list, all but each `pattern`th have a window.
    fn lower(self, family: &'static str, pattern: usize) -> Result<Dense, ConfigProblem> {
        if self.use_bidirectional_attention == Some(true) {
            return Err(ConfigProblem::Unsupported { field: "use_bidirectional_attention", found: "true".to_owned() });
        }
        let cap = |field, cap: Option<f64>| match cap {
            Some(cap) if !is_positive(cap) => Err(ConfigProblem::Value {
                field,
                found: cap.to_string(),
                expected: "a finite number above 0 in f32, or null".to_owned(),
            }),
            cap => Ok(cap),
        };
        let attention_scale = self.query_pre_attn_scalar.sqrt().recip();
        if !is_positive(attention_scale) {
            return Err(ConfigProblem::Value {
                field: "query_pre_attn_scalar",
                found: self.query_pre_attn_scalar.to_string(),
                expected: "a finite number above 0".to_owned(),
            });
        }
        let mut config = self.shape.lower(family, "hidden_activation", &self.hidden_activation)?;
        let sliding = window(self.sliding_window)?;
        config.windows = windows(self.layer_types, sliding, pattern, config.n_layers)?;
        config.attention_scale = attention_scale;
        config.attention_soft_cap = cap("attn_logit_softcapping", self.attn_logit_softcapping)?;
        config.final_soft_cap = cap("final_logit_softcapping", self.final_logit_softcapping)?;
        config.embedding_scale = Some(EmbeddingScale::Rounded((config.d_model as f64).sqrt()));
        config.norm_offset = true;
        config.norms = BlockNorms::AROUND;
        config.qkv_bias = self.attention_bias;
        config.o_bias = self.attention_bias;
        Ok(config)
    }
}
