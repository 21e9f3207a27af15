//! Qwen2 and Qwen2.5, with biases of queries, keys and values; Qwen3, with norms of query and key heads.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::ConfigProblem;
use crate::arch::dense::{Dense, QkNorm};
use crate::arch::shape::{Shape, by_layer_type, window};

#[derive(Deserialize)]
struct Qwen {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    // Qwen2 has a fixed answer and no such field.
    attention_bias: Option<bool>,
    use_sliding_window: bool,
    sliding_window: Option<usize>,
    max_window_layers: usize,
    layer_types: Option<Vec<String>>,
}

pub(super) fn defaults_of_2() -> Value {
    json!({
        "vocab_size": 151_936, "intermediate_size": 22016, "num_key_value_heads": 32, "eos_token_id": null,
        "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28, "head_dim": null
    })
}

pub(super) fn defaults_of_3() -> Value {
    json!({
        "vocab_size": 151_936, "intermediate_size": 22016, "num_key_value_heads": 32, "eos_token_id": null,
        "use_sliding_window": false, "sliding_window": 4096, "max_window_layers": 28, "head_dim": 128
    })
}

pub(super) fn qwen2(fields: Value) -> Result<Dense, ConfigProblem> {
    let dense = serde_json::from_value::<Qwen>(fields)?.lower("qwen2")?;
    Ok(Dense { qkv_bias: true, ..dense })
}

pub(super) fn qwen3(fields: Value) -> Result<Dense, ConfigProblem> {
    let qwen: Qwen = serde_json::from_value(fields)?;
    let bias = qwen.attention_bias.unwrap_or(false);
    Ok(Dense { qkv_bias: bias, o_bias: bias, qk_norm: QkNorm::PerHead, ..qwen.lower("qwen3")? })
}

impl Qwen {
    fn lower(self, family: &'static str) -> Result<Dense, ConfigProblem> {
        let mut config = self.shape.lower(family, "hidden_act", &self.hidden_act)?;
        let sliding = if self.use_sliding_window { window(self.sliding_window)? } else { None };
        config.windows = match &self.layer_types {
            Some(types) => by_layer_type(types, sliding, config.n_layers)?,
            None => (0..config.n_layers).map(|i| sliding.filter(|_| i >= self.max_window_layers)).collect(),
        };
        Ok(config)
    }
}
