//! GLM-4 9B (`glm`) and GLM-4-0414 (`glm4`): part of a head rotates, neighbours together; gate and up are one tensor. GLM-4-0414 norms around both halves
//! of a block, with names of its own.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::ConfigProblem;
use crate::arch::dense::{BlockNorms, Dense, MlpNames};
use crate::arch::rope::{Pairs, RopeRules};
use crate::arch::shape::Shape;

#[derive(Deserialize)]
struct Glm {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    attention_bias: bool,
}

/// `post_attention_layernorm` is before the MLP, as in Llama, and what norms what attention gave has another name.
const NORMS: BlockNorms = BlockNorms {
    before_attention: Some("input_layernorm"),
    after_attention: Some("post_self_attn_layernorm"),
    before_mlp: Some("post_attention_layernorm"),
    after_mlp: Some("post_mlp_layernorm"),
};

pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 151_552, "intermediate_size": 13696, "num_hidden_layers": 40, "num_key_value_heads": 2,
        "head_dim": 128, "max_position_embeddings": 131_072, "rms_norm_eps": 1.5625e-7, "attention_bias": true,
        "partial_rotary_factor": 0.5, "eos_token_id": [151_329, 151_336, 151_338]
    })
}

pub(super) fn glm(fields: Value) -> Result<Dense, ConfigProblem> {
    serde_json::from_value::<Glm>(fields)?.lower("glm")
}

pub(super) fn glm4(fields: Value) -> Result<Dense, ConfigProblem> {
    Ok(Dense { norms: NORMS, ..serde_json::from_value::<Glm>(fields)?.lower("glm4")? })
}

impl Glm {
    fn lower(mut self, family: &'static str) -> Result<Dense, ConfigProblem> {
        self.shape.rope_rules = RopeRules { pairs: Pairs::Neighbours, is_partial: true, ..RopeRules::default() };
        let dense = self.shape.lower(family, "hidden_act", &self.hidden_act)?;
        Ok(Dense { qkv_bias: self.attention_bias, mlp: MlpNames::FUSED, ..dense })
    }
}
