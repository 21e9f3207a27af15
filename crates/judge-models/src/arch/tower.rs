//! Vision-language folders: finds the text model inside and gives its fields as a folder of its
//! own.
//!
//! The result goes through `families.rs` like any other file. Tensor names need no table here:
//! `weights` strips what such folders put before the names of the text model
//! (`weights/own_names.rs`). Pictures and sound are never read.

use serde_json::{Map, Value};

use super::ConfigProblem;

/// A kind of folder with a text model inside.
struct Outer {
    /// `model_type` of the folder.
    model_type: &'static str,
    /// The class of transformers that has no head over the vocabulary.
    base_class: &'static str,
    /// Names that `text_config.model_type` may have, each with the family that it is here. Without
    /// a name the text model is the first of them.
    text: &'static [(&'static str, &'static str)],
    /// Whether the head is the embedding if the outer file does not say and no head is stored. What
    /// `text_config` says does not count, as in transformers.
    tied: bool,
    /// Base of the rotation where `text_config` states none, if it differs from the family's.
    rope_theta: Option<f64>,
}

/// All kinds of such folders. `qwen3_vl`'s text model is a Qwen3 whose default base is 5e5.
const OUTER: &[Outer] = &[
    Outer {
        model_type: "gemma3",
        base_class: "Gemma3Model",
        text: &[("gemma3_text", "gemma3_text")],
        tied: true,
        rope_theta: None,
    },
    Outer {
        model_type: "gemma4",
        base_class: "Gemma4Model",
        text: &[("gemma4_text", "gemma4_text")],
        tied: true,
        rope_theta: None,
    },
    Outer {
        model_type: "mistral3",
        base_class: "Mistral3Model",
        text: &[("mistral", "mistral"), ("ministral3", "ministral3")],
        tied: true,
        rope_theta: None,
    },
    Outer {
        model_type: "qwen3_5",
        base_class: "Qwen3_5Model",
        text: &[("qwen3_5_text", "qwen3_5_text")],
        tied: false,
        rope_theta: None,
    },
    Outer {
        model_type: "qwen3_5_moe",
        base_class: "Qwen3_5MoeModel",
        text: &[("qwen3_5_moe_text", "qwen3_5_moe_text")],
        tied: false,
        rope_theta: None,
    },
    Outer {
        model_type: "qwen3_vl",
        base_class: "Qwen3VLModel",
        text: &[("qwen3_vl_text", "qwen3")],
        tied: false,
        rope_theta: Some(5e5),
    },
];

/// The `model_type`s of [`OUTER`], for the list of known names.
pub(super) const NAMES: [&str; OUTER.len()] = {
    let mut names = [""; OUTER.len()];
    let mut index = 0;
    while index < OUTER.len() {
        names[index] = OUTER[index].model_type;
        index += 1;
    }
    names
};

/// Whether a class of transformers is such a model without a head over the vocabulary.
pub(super) fn is_base_class(class: &str) -> bool {
    OUTER.iter().any(|outer| outer.base_class == class)
}

/// The fields of the text model of a vision-language folder, as its own folder would have them.
/// `None` for any other folder.
///
/// `tie_word_embeddings`, `eos_token_id` and `architectures` are those of the outer file, as in
/// transformers; without a value there, the last two are what `text_config` says.
///
/// # Errors
/// [`ConfigProblem::Missing`] without a `text_config`, and [`ConfigProblem::Unsupported`] for a
/// text model that this kind of folder does not have.
pub(super) fn text(file: &Map<String, Value>) -> Result<Option<Map<String, Value>>, ConfigProblem> {
    let model_type = file.get("model_type").and_then(Value::as_str);
    let Some(outer) = OUTER.iter().find(|outer| Some(outer.model_type) == model_type) else { return Ok(None) };
    let Some(Value::Object(config)) = file.get("text_config") else {
        return Err(ConfigProblem::Missing { field: "text_config", needed_by: outer.model_type });
    };
    let mut text = config.clone();
    let family = match text.get("model_type").and_then(Value::as_str) {
        None => outer.text[0].1,
        Some(name) => match outer.text.iter().find(|(known, _)| *known == name) {
            Some((_, family)) => family,
            None => {
                let found = name.to_owned();
                return Err(ConfigProblem::Unsupported { field: "text_config.model_type", found });
            }
        },
    };
    text.insert("model_type".to_owned(), family.into());
    text.insert("tie_word_embeddings".to_owned(), outer.tied.into());
    for field in ["tie_word_embeddings", "eos_token_id", "architectures"] {
        if let Some(value) = file.get(field).filter(|value| !value.is_null()) {
            text.insert(field.to_owned(), value.clone());
        }
    }
    if let Some(theta) = outer.rope_theta.filter(|_| !text.contains_key("rope_parameters")) {
        text.entry("rope_theta").or_insert_with(|| theta.into());
    }
    Ok(Some(text))
}
