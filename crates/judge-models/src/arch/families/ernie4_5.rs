//! ERNIE 4.5, dense: a Llama whose neighbouring coordinates rotate together, with one switch for all biases.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arch::ConfigProblem;
use crate::arch::dense::Dense;
use crate::arch::rope::{Pairs, RopeRules};
use crate::arch::shape::Shape;

#[derive(Deserialize)]
struct Ernie45 {
    #[serde(flatten)]
    shape: Shape,
    hidden_act: String,
    use_bias: bool,
}

pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 103_424, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 18,
        "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "max_position_embeddings": 131_072,
        "rms_norm_eps": 1e-5, "tie_word_embeddings": true, "rope_theta": 5e5, "use_bias": false
    })
}

pub(super) fn dense(fields: Value) -> Result<Dense, ConfigProblem> {
    let Ernie45 { mut shape, hidden_act, use_bias } = serde_json::from_value(fields)?;
    shape.rope_rules = RopeRules { pairs: Pairs::Neighbours, ..RopeRules::default() };
    let dense = shape.lower("ernie4_5", "hidden_act", &hidden_act)?;
    Ok(Dense { qkv_bias: use_bias, o_bias: use_bias, mlp_bias: use_bias, ..dense })
}
