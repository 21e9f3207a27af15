//! `mistral`: Mistral 7B, Nemo and Small, Ministral 8B (2410), and the text model inside `mistral3`
//! folders (Small 3.1 and 3.2).
//!
//! A Llama without biases whose blocks all have one window, or none. An absent `sliding_window`
//! means 4096; published files of later models say `null`. With `layer_types` blocks differ:
//! transformers' `AutoConfig` turns such a file into a `ministral`. Inside `mistral3` it does not,
//! so `tower.rs` takes the field away there. Tensors are named as in Llama.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::checks::{window, windows};
use crate::decoder_fields::DecoderFields;
use crate::shape::Shape;

/// Fields of the family.
#[derive(Deserialize)]
struct Mistral {
    #[serde(flatten)]
    shape: Shape,
    /// Width of windows; null for none.
    sliding_window: Option<usize>,
    /// Kinds of the blocks; without it all have the window.
    layer_types: Option<Vec<String>>,
}

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131_072,
        "sliding_window": 4096
    })
}

/// Describes a Mistral.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let Mistral { shape, sliding_window, layer_types } = serde_json::from_value(fields)?;
    let fields = shape.lower()?;
    let windows = windows(layer_types, window(sliding_window)?, fields.n_layers, |_| true)?;
    Ok(DecoderFields { windows, ..fields })
}
