//! Vision-language folders: finds the text model inside and gives its fields as a folder of its
//! own.
//!
//! The result goes through `families.rs` like any other file. Tensor names need no table here:
//! `weights` strips what such folders put before the names of the text model
//! (`weights/own_names.rs`). Pictures and sound are never read.

use serde_json::{Map, Value, json};

use super::ConfigProblem;
use super::checks::overlay;

/// A kind of folder with a text model inside.
struct Outer {
    /// `model_type` of the folder.
    model_type: &'static str,
    /// What people call its models.
    models: &'static str,
    /// The class of transformers that has no head over the vocabulary.
    base_class: &'static str,
    /// Names that `text_config.model_type` may have, each with the family that it is here. Without
    /// a name the text model is the first of them.
    text: &'static [(&'static str, &'static str)],
    /// Whether the head is the embedding if the outer file does not say and no head is stored.
    tied: bool,
    /// Whether a `tie_word_embeddings` of `text_config` that is true counts as one of the outer
    /// file. Elsewhere it does not count, as in transformers.
    ties_inside: bool,
    /// Whether published files have the fields of the text model beside those of the folder, without
    /// `text_config`.
    is_flat: bool,
    /// Whether stacks of experts may be stored transposed.
    is_transposed: bool,
    /// Values where `text_config` is silent, if they differ from the family's.
    defaults: fn() -> Value,
    /// Values that the text model always has, whatever `text_config` says.
    fixed: fn() -> Value,
}

impl Outer {
    /// What most kinds have in common.
    const PLAIN: Self = Self {
        model_type: "",
        models: "",
        base_class: "",
        text: &[],
        tied: false,
        ties_inside: false,
        is_flat: false,
        is_transposed: false,
        defaults: || json!({}),
        fixed: || json!({}),
    };

    /// Qwen2-VL and Qwen2.5-VL: a Qwen2 with other defaults, whose attention does not read `head_dim`.
    const QWEN2_VL: Self = Self {
        ties_inside: true,
        is_flat: true,
        defaults: || {
            json!({
                "vocab_size": 152_064, "hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80,
                "num_attention_heads": 64, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "max_window_layers": 80,
                "eos_token_id": 151_645, "rope_theta": 1e6
            })
        },
        fixed: || json!({ "head_dim": null }),
        ..Self::PLAIN
    };
}

/// All kinds of such folders, in alphabetical order.
const OUTER: &[Outer] = &[
    Outer {
        model_type: "gemma3",
        models: "Gemma 3 from 4B up",
        base_class: "Gemma3Model",
        text: &[("gemma3_text", "gemma3_text")],
        tied: true,
        ..Outer::PLAIN
    },
    Outer {
        model_type: "gemma4",
        models: "Gemma 4",
        base_class: "Gemma4Model",
        text: &[("gemma4_text", "gemma4_text")],
        tied: true,
        ..Outer::PLAIN
    },
    Outer {
        model_type: "gemma4_unified",
        models: "Gemma 4 12B, without inputs by token and experts",
        base_class: "Gemma4UnifiedModel",
        text: &[("gemma4_unified_text", "gemma4_text")],
        tied: true,
        defaults: || json!({ "max_position_embeddings": 262_144, "sliding_window": 1024 }),
        fixed: || json!({ "hidden_size_per_layer_input": 0, "enable_moe_block": false }),
        ..Outer::PLAIN
    },
    Outer {
        model_type: "glm4v",
        models: "GLM-4.1V 9B",
        base_class: "Glm4vModel",
        text: &[("glm4v_text", "glm4")],
        ties_inside: true,
        defaults: || {
            json!({
                "rms_norm_eps": 1e-5, "max_position_embeddings": 32768, "partial_rotary_factor": 1.0, "eos_token_id": null
            })
        },
        // Biases of queries, keys and values, and no `head_dim`.
        fixed: || json!({ "attention_bias": true, "head_dim": null }),
        ..Outer::PLAIN
    },
    Outer {
        model_type: "idefics3",
        models: "Idefics 3, SmolVLM",
        base_class: "Idefics3Model",
        text: &[("llama", "llama")],
        ..Outer::PLAIN
    },
    Outer {
        model_type: "internvl",
        models: "InternVL3 and 3.5, as converted for transformers (`-hf`)",
        base_class: "InternVLModel",
        text: &[
            ("qwen2", "qwen2"),
            ("qwen3", "qwen3"),
            ("qwen3_moe", "qwen3_moe"),
            ("llama", "llama"),
            ("gpt_oss", "gpt_oss"),
        ],
        tied: true,
        ..Outer::PLAIN
    },
    Outer {
        model_type: "mistral3",
        models: "Mistral Small 3.x, Ministral 3",
        base_class: "Mistral3Model",
        text: &[("mistral", "mistral"), ("ministral3", "ministral3")],
        tied: true,
        // One window for all blocks: that `layer_types` counts is a rule for folders of their own.
        fixed: || json!({ "layer_types": null }),
        ..Outer::PLAIN
    },
    Outer {
        model_type: "qwen2_5_vl",
        models: "Qwen2.5-VL",
        base_class: "Qwen2_5_VLModel",
        text: &[("qwen2_5_vl_text", "qwen2")],
        ..Outer::QWEN2_VL
    },
    Outer {
        model_type: "qwen2_vl",
        models: "Qwen2-VL",
        base_class: "Qwen2VLModel",
        text: &[("qwen2_vl_text", "qwen2")],
        ..Outer::QWEN2_VL
    },
    Outer {
        model_type: "qwen3_5",
        models: "Qwen3.5 and 3.6",
        base_class: "Qwen3_5Model",
        text: &[("qwen3_5_text", "qwen3_5_text")],
        ..Outer::PLAIN
    },
    Outer {
        model_type: "qwen3_5_moe",
        models: "Qwen3.5 and 3.6 with experts",
        base_class: "Qwen3_5MoeModel",
        text: &[("qwen3_5_moe_text", "qwen3_5_moe_text")],
        ..Outer::PLAIN
    },
    Outer {
        model_type: "qwen3_vl",
        models: "Qwen3-VL",
        base_class: "Qwen3VLModel",
        text: &[("qwen3_vl_text", "qwen3")],
        defaults: || json!({ "rope_theta": 5e5 }),
        ..Outer::PLAIN
    },
    Outer {
        model_type: "qwen3_vl_moe",
        models: "Qwen3-VL with experts",
        base_class: "Qwen3VLMoeModel",
        text: &[("qwen3_vl_moe_text", "qwen3_moe")],
        is_transposed: true,
        defaults: || {
            json!({
                "intermediate_size": 5632, "num_attention_heads": 16, "num_key_value_heads": 16, "max_position_embeddings": 128_000,
                "moe_intermediate_size": 1408, "num_experts": 60, "num_experts_per_tok": 4, "rope_theta": 5e5
            })
        },
        // The weights of a row's experts add up to 1, and nothing has a window.
        fixed: || json!({ "norm_topk_prob": true, "use_sliding_window": false }),
        ..Outer::PLAIN
    },
    Outer {
        model_type: "smolvlm",
        models: "SmolVLM, SmolVLM2",
        base_class: "SmolVLMModel",
        text: &[("llama", "llama")],
        ..Outer::PLAIN
    },
];

/// What people are told of each kind: its `model_type`, its models, and the families of its text model.
pub fn described() -> impl Iterator<Item = (&'static str, &'static str, Vec<&'static str>)> {
    OUTER.iter().map(|outer| (outer.model_type, outer.models, outer.text.iter().map(|(_, family)| *family).collect()))
}

/// A decision model with a head over labels as transformers saves it: any model of text inside, whose states the head
/// reads (`decision.rs`).
const DECISION: &str = "jev";

/// Whether a folder is a decision model's as transformers saves it.
pub(super) fn is_decision_model(file: &Map<String, Value>) -> bool {
    file.get("model_type").and_then(Value::as_str) == Some(DECISION)
}

/// The `model_type`s of [`OUTER`] and that of decision models, for the list of known names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OUTER.iter().map(|outer| outer.model_type).chain([DECISION])
}

/// Whether a folder of this kind may store its stacks of experts transposed.
pub(super) fn has_transposed_experts(file: &Map<String, Value>) -> bool {
    let model_type = file.get("model_type").and_then(Value::as_str);
    OUTER.iter().any(|outer| outer.is_transposed && Some(outer.model_type) == model_type)
}

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
    if is_decision_model(file) {
        let Some(Value::Object(inner)) = file.get("text_config") else {
            return Err(ConfigProblem::Missing { field: "text_config", needed_by: DECISION });
        };
        return Ok(Some(text(inner)?.unwrap_or_else(|| inner.clone())));
    }
    let Some(outer) = OUTER.iter().find(|outer| Some(outer.model_type) == model_type) else { return Ok(None) };
    let stated = match file.get("text_config") {
        Some(Value::Object(config)) => config.clone(),
        None if outer.is_flat => flat(file),
        _ => return Err(ConfigProblem::Missing { field: "text_config", needed_by: outer.model_type }),
    };
    let family = match stated.get("model_type").and_then(Value::as_str) {
        None => outer.text[0].1,
        Some(name) => match outer.text.iter().find(|(known, _)| *known == name) {
            Some((_, family)) => family,
            None => {
                let found = name.to_owned();
                return Err(ConfigProblem::Unsupported { field: "text_config.model_type", found });
            }
        },
    };
    let tied = outer.tied || outer.ties_inside && stated.get("tie_word_embeddings") == Some(&Value::Bool(true));
    let counts_experts = stated.contains_key("num_experts") || !stated.contains_key("num_local_experts");
    let mut text = (outer.defaults)();
    overlay(&mut text, Value::Object(stated));
    overlay(&mut text, (outer.fixed)());
    overlay(&mut text, json!({ "model_type": family, "tie_word_embeddings": tied }));
    let Value::Object(mut text) = text else { return Ok(None) };
    if !counts_experts {
        // The file has the number by its other name.
        text.remove("num_experts");
    }
    for field in ["tie_word_embeddings", "eos_token_id", "architectures"] {
        let value = file.get(field).filter(|value| !value.is_null());
        if let Some(value) = value.filter(|value| !(tied && outer.ties_inside && **value == Value::Bool(false))) {
            text.insert(field.to_owned(), value.clone());
        }
    }
    for field in ["rope_scaling", "rope_parameters"] {
        if let Some(Value::Object(rope)) = text.get_mut(field) {
            plain_rotation(rope);
        }
    }
    Ok(Some(text))
}

/// The fields of the text model in a file that has them beside those of the folder.
fn flat(file: &Map<String, Value>) -> Map<String, Value> {
    let is_of_pictures = |name: &str| ["vision_", "image_", "video_"].iter().any(|start| name.starts_with(start));
    let fields = file.iter().filter(|(name, _)| !is_of_pictures(name) && *name != "model_type");
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Replaces the rotation over time, height and width (`mrope`) by the plain one: in a text all three
/// positions of a token are its place.
fn plain_rotation(rope: &mut Map<String, Value>) {
    let kind = rope.get("rope_type").or_else(|| rope.get("type"));
    if kind.and_then(Value::as_str) == Some("mrope") {
        rope.remove("type");
        rope.insert("rope_type".to_owned(), "default".into());
    }
}
