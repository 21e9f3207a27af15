//! OLMo 2 and 3: norms behind both halves of a block and none before them, and norms over all query heads and all key heads together. OLMo 3 has windows in
//! three blocks of four, which keep the plain rotation where the others are scaled.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::ConfigProblem;
use crate::arch::dense::{BlockNorms, Dense, QkNorm};
use crate::arch::rope::RopesByKind;
use crate::arch::shape::{Shape, window, windows};

#[derive(Deserialize)]
struct Olmo {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    attention_bias: bool,
    // OLMo 3 alone.
    sliding_window: Option<usize>,
    layer_types: Option<Vec<String>>,
}

pub(super) fn defaults_of_2() -> Value {
    json!({
        "vocab_size": 50304, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "eos_token_id": 50279,
        "attention_bias": false
    })
}

pub(super) fn defaults_of_3() -> Value {
    json!({
        "vocab_size": 50304, "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "eos_token_id": 50279,
        "attention_bias": false, "sliding_window": 4096
    })
}

pub(super) fn olmo2(fields: Value) -> Result<Dense, ConfigProblem> {
    serde_json::from_value::<Olmo>(fields)?.lower("olmo2")
}

pub(super) fn olmo3(fields: Value) -> Result<Dense, ConfigProblem> {
    let mut olmo: Olmo = serde_json::from_value(fields)?;
    let shape = &mut olmo.shape;
    // A base at the top is that of full layers alone.
    let theta = [shape.rope_theta.take().unwrap_or(5e5), 5e5];
    let ropes = RopesByKind::new(shape.rope_parameters.take(), shape.rope_scaling.take(), theta)?;
    let (sliding, layer_types) = (window(olmo.sliding_window)?, olmo.layer_types.take());
    let dense = olmo.lower("olmo3")?;
    let windows = windows(layer_types, sliding, 4, dense.n_layers)?;
    Dense { windows, ..dense }.with_ropes(ropes, false)
}

impl Olmo {
    fn lower(self, family: &'static str) -> Result<Dense, ConfigProblem> {
        let dense = self.shape.lower(family, "hidden_act", &self.hidden_act)?;
        let bias = self.attention_bias;
        Ok(Dense { norms: BlockNorms::AFTER, qk_norm: QkNorm::Whole, qkv_bias: bias, o_bias: bias, ..dense })
    }
}
