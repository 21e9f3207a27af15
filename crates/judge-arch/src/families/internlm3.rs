//! `internlm3`: InternLM3 8B.
//!
//! A Llama with heads of 128 coordinates and 2 key heads. `qkv_bias` gives queries, keys and values
//! biases; a second switch gives them to the projection after attention and to the MLP.
//! transformers 5 has no code of its own for the family: its configuration selects Llama's. Tensors
//! are named as in Llama.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::decoder_fields::DecoderFields;
use crate::shape::Shape;

/// Fields of the family. Published folders say `qkv_bias` and `bias`; transformers 5 writes
/// `attention_bias` and `mlp_bias`. The published names win.
#[derive(Deserialize)]
struct InternLm3 {
    #[serde(flatten)]
    shape: Shape,
    /// Biases of queries, keys and values.
    qkv_bias: Option<bool>,
    /// The same switch as transformers 5 writes it.
    attention_bias: Option<bool>,
    /// Biases of the projection after attention and of the MLP.
    bias: Option<bool>,
    /// The same switch as transformers 5 writes it.
    mlp_bias: Option<bool>,
}

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 128_512, "intermediate_size": 10240, "num_hidden_layers": 48, "num_key_value_heads": 2,
        "rms_norm_eps": 1e-5, "head_dim": 128
    })
}

/// Describes an InternLM3.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let InternLm3 { shape, qkv_bias, attention_bias, bias, mlp_bias } = serde_json::from_value(fields)?;
    let fields = shape.lower()?;
    let bias = bias.or(mlp_bias).unwrap_or(false);
    Ok(DecoderFields { qkv_bias: qkv_bias.or(attention_bias).unwrap_or(false), o_bias: bias, mlp_bias: bias, ..fields })
}
