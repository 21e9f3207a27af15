//! `ernie4_5`: ERNIE 4.5 0.3B, the dense one.
//!
//! A Llama with heads of 128 coordinates and a tied head, in which neighbouring coordinates `2i`
//! and `2i + 1` rotate together (base 5e5). One switch, `use_bias`, gives all projections of
//! attention and of the MLP a bias. Tensors are named as in Llama. Models with experts have another
//! `model_type` and are not read.

use judge_kernels::functions::Pairs;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::decoder_fields::DecoderFields;
use crate::rope::RopeRules;
use crate::shape::Shape;

/// Fields of the family.
#[derive(Deserialize)]
struct Ernie45 {
    #[serde(flatten)]
    shape: Shape,
    /// Biases of all projections.
    use_bias: bool,
}

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 103_424, "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 18,
        "num_attention_heads": 16, "num_key_value_heads": 2, "head_dim": 128, "max_position_embeddings": 131_072,
        "rms_norm_eps": 1e-5, "tie_word_embeddings": true, "rope_theta": 5e5, "use_bias": false
    })
}

/// Describes an ERNIE 4.5.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let Ernie45 { mut shape, use_bias } = serde_json::from_value(fields)?;
    shape.rope_rules = RopeRules { pairs: Pairs::Neighbours, ..RopeRules::default() };
    let fields = shape.lower()?;
    Ok(DecoderFields { qkv_bias: use_bias, o_bias: use_bias, mlp_bias: use_bias, ..fields })
}
