//! `mistral`: Mistral 7B, Nemo and Small, Ministral 8B (2410), and the text model inside `mistral3`
//! folders (Small 3.1 and 3.2).
//!
//! A Llama without biases whose blocks all have one window, or none. An absent `sliding_window`
//! means 4096; published files of later models say `null`. `layer_types` is not read, as in
//! transformers. Tensors are named as in Llama.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::ConfigProblem;
use crate::checks::window;
use crate::decoder_fields::DecoderFields;
use crate::shape::Shape;

/// Fields of the family.
#[derive(Deserialize)]
struct Mistral {
    /// Fields of all families.
    #[serde(flatten)]
    shape: Shape,
    /// The function inside the MLP.
    hidden_act: String,
    /// Window of every block; null for none.
    sliding_window: Option<usize>,
}

/// Defaults where they differ from those of all families.
pub(super) fn defaults() -> Value {
    json!({
        "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 131_072,
        "sliding_window": 4096
    })
}

/// Describes a Mistral.
///
/// # Errors
/// [`ConfigProblem`] as of [`Shape::lower`], and for a window of 0.
pub(super) fn fields(fields: Value) -> Result<DecoderFields, ConfigProblem> {
    let Mistral { shape, hidden_act, sliding_window } = serde_json::from_value(fields)?;
    let fields = shape.lower("mistral", "hidden_act", &hidden_act)?;
    Ok(DecoderFields { windows: vec![window(sliding_window)?; fields.n_layers], ..fields })
}
