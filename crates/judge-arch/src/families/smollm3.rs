//! `smollm3`: SmolLM3 3B. (SmolLM2 is a `llama`.)
//!
//! A Llama with a tied head of which every fourth block does not rotate (NoPE): `no_rope_layers`
//! has 1 where a block rotates and 0 where it does not; without it, block `i` does not rotate if
//! `(i + 1) % no_rope_layer_interval == 0`. The base is 2e6 where none is stated. Windows
//! exist only with `use_sliding_window`, and without `layer_types` only blocks that do not rotate
//! have one. Tensors are named as in Llama; there are no norms of heads.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::checks::{size, window, windows};
use crate::decoder_fields::DecoderFields;
use crate::shape::Shape;

/// Fields of the family.
#[derive(Deserialize)]
struct SmolLm3 {
    #[serde(flatten)]
    shape: Shape,
    /// Biases of all four projections of attention.
    attention_bias: bool,
    /// Biases of the MLP's projections.
    mlp_bias: bool,
    /// Whether `sliding_window` counts.
    use_sliding_window: bool,
    /// Width of windows.
    sliding_window: Option<usize>,
    /// Kinds of the blocks.
    layer_types: Option<Vec<String>>,
    /// One number per block: 0 where it does not rotate, anything else (files have 1) where it
    /// does.
    no_rope_layers: Option<Vec<u8>>,
    /// Distance of blocks that do not rotate, used without `no_rope_layers`.
    no_rope_layer_interval: usize,
}

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "vocab_size": 128_256, "hidden_size": 2048, "num_hidden_layers": 36, "num_attention_heads": 16,
        "num_key_value_heads": 4, "eos_token_id": 128_001, "tie_word_embeddings": true, "attention_bias": false,
        "mlp_bias": false, "use_sliding_window": false, "no_rope_layer_interval": 4, "rope_theta": 2e6
    })
}

/// Describes a SmolLM3.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let found: SmolLm3 = serde_json::from_value(fields)?;
    let interval = size("no_rope_layer_interval", found.no_rope_layer_interval, usize::MAX)?;
    let fields = found.shape.lower()?;
    let n_layers = fields.n_layers;
    let rotates: Vec<bool> = match found.no_rope_layers {
        None => (0..n_layers).map(|layer| !(layer + 1).is_multiple_of(interval)).collect(),
        Some(layers) if layers.len() == n_layers => layers.into_iter().map(|rotates| rotates != 0).collect(),
        Some(layers) => {
            let (found, expected) = (format!("{} numbers", layers.len()), format!("one for each of {n_layers} layers"));
            return Err(ConfigProblem::value("no_rope_layers", found, expected));
        }
    };
    let sliding = if found.use_sliding_window { window(found.sliding_window)? } else { None };
    let windows = windows(found.layer_types, sliding, n_layers, |layer| !rotates[layer])?;
    let rope_of = rotates.into_iter().map(|rotates| rotates.then_some(0)).collect();
    let bias = found.attention_bias;
    Ok(DecoderFields { windows, rope_of, qkv_bias: bias, o_bias: bias, mlp_bias: found.mlp_bias, ..fields })
}
