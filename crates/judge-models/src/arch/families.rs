//! The families of decoders, one file each: finds the family, fills in defaults and lowers the
//! file.
//!
//! A family's file has two functions. `defaults` gives the values that transformers 5.23 takes for
//! its own fields where `config.json` is silent. `fields` reads the merged fields, lowers the shared
//! ones with `Shape::lower` to a plain Llama, and replaces what is different.
//!
//! ```text
//! defaults() of this file  ◄ overlaid by ◄  the family's defaults  ◄ overlaid by ◄  config.json
//!                                                      └─► (family.fields)(merged) ─► DecoderFields
//! ```
//!
//! To add a family: write its file, add an entry to [`FAMILIES`], list the fields that only files
//! carry in `unread.rs`, and make fixtures with `scripts/parity/make_family_fixtures.py`. Where
//! transformers does something the family cannot express, refuse it by its field. If the family
//! needs a new operation, add data to `spec.rs` and the operation to `engine/block.rs`.

mod cohere2;
mod ernie4_5;
mod exaone4;
mod falcon_h1;
mod gemma;
mod gemma4;
mod glm;
mod gpt2;
mod gpt_neox;
mod gpt_oss;
mod granite;
mod internlm3;
mod lfm2;
mod lfm2_moe;
mod llama;
mod ministral3;
mod mistral;
mod mixtral;
mod nemotron_h;
mod olmo;
mod olmoe;
mod phi;
mod phi3;
mod qwen;
mod qwen3_5;
mod qwen_moe;
mod smollm3;

use serde_json::{Map, Value, json};

use super::checks::overlay;
use super::decoder_fields::DecoderFields;
use super::{ConfigProblem, blame, tower};

/// A family, as one entry of [`FAMILIES`].
struct Family {
    /// `model_type` in files.
    model_type: &'static str,
    /// The class of transformers that has no head: states are all that a folder of it gives.
    base_class: &'static str,
    /// Values of fields where the file is silent, on top of those of all families.
    defaults: fn() -> Value,
    /// Describes the decoder of a file whose defaults are filled in.
    fields: fn(Value) -> Result<DecoderFields, ConfigProblem>,
}

/// All families, in alphabetical order.
const FAMILIES: &[Family] = &[
    Family { model_type: "cohere2", base_class: "Cohere2Model", defaults: cohere2::defaults, fields: cohere2::fields },
    Family {
        model_type: "ernie4_5",
        base_class: "Ernie4_5Model",
        defaults: ernie4_5::defaults,
        fields: ernie4_5::fields,
    },
    Family { model_type: "exaone4", base_class: "Exaone4Model", defaults: exaone4::defaults, fields: exaone4::fields },
    Family {
        model_type: "falcon_h1",
        base_class: "FalconH1Model",
        defaults: falcon_h1::defaults,
        fields: falcon_h1::fields,
    },
    Family { model_type: "gemma", base_class: "GemmaModel", defaults: gemma::defaults_of_1, fields: gemma::gemma1 },
    Family { model_type: "gemma2", base_class: "Gemma2Model", defaults: gemma::defaults_of_2, fields: gemma::gemma2 },
    Family {
        model_type: "gemma3_text",
        base_class: "Gemma3TextModel",
        defaults: gemma::defaults_of_3,
        fields: gemma::gemma3,
    },
    Family {
        model_type: "gemma4_text",
        base_class: "Gemma4TextModel",
        defaults: gemma4::defaults,
        fields: gemma4::fields,
    },
    Family { model_type: "glm", base_class: "GlmModel", defaults: glm::defaults, fields: glm::glm },
    Family { model_type: "glm4", base_class: "Glm4Model", defaults: glm::defaults, fields: glm::glm4 },
    Family { model_type: "gpt2", base_class: "GPT2Model", defaults: gpt2::defaults, fields: gpt2::fields },
    Family {
        model_type: "gpt_neox",
        base_class: "GPTNeoXModel",
        defaults: gpt_neox::defaults,
        fields: gpt_neox::fields,
    },
    Family { model_type: "gpt_oss", base_class: "GptOssModel", defaults: gpt_oss::defaults, fields: gpt_oss::fields },
    Family { model_type: "granite", base_class: "GraniteModel", defaults: granite::defaults, fields: granite::fields },
    Family {
        model_type: "granitemoehybrid",
        base_class: "GraniteMoeHybridModel",
        defaults: granite::defaults_of_hybrid,
        fields: granite::hybrid,
    },
    Family {
        model_type: "internlm3",
        base_class: "InternLM3Model",
        defaults: internlm3::defaults,
        fields: internlm3::fields,
    },
    Family { model_type: "lfm2", base_class: "Lfm2Model", defaults: lfm2::defaults, fields: lfm2::fields },
    Family {
        model_type: "lfm2_moe",
        base_class: "Lfm2MoeModel",
        defaults: lfm2_moe::defaults,
        fields: lfm2_moe::fields,
    },
    Family { model_type: "llama", base_class: "LlamaModel", defaults: llama::defaults, fields: llama::fields },
    Family {
        model_type: "ministral3",
        base_class: "Ministral3Model",
        defaults: ministral3::defaults,
        fields: ministral3::fields,
    },
    Family { model_type: "mistral", base_class: "MistralModel", defaults: mistral::defaults, fields: mistral::fields },
    Family { model_type: "mixtral", base_class: "MixtralModel", defaults: mixtral::defaults, fields: mixtral::fields },
    Family {
        model_type: "nemotron_h",
        base_class: "NemotronHModel",
        defaults: nemotron_h::defaults,
        fields: nemotron_h::fields,
    },
    Family { model_type: "olmo2", base_class: "Olmo2Model", defaults: olmo::defaults_of_2, fields: olmo::olmo2 },
    Family { model_type: "olmo3", base_class: "Olmo3Model", defaults: olmo::defaults_of_3, fields: olmo::olmo3 },
    Family { model_type: "olmoe", base_class: "OlmoeModel", defaults: olmoe::defaults, fields: olmoe::fields },
    Family { model_type: "phi", base_class: "PhiModel", defaults: phi::defaults, fields: phi::fields },
    Family { model_type: "phi3", base_class: "Phi3Model", defaults: phi3::defaults, fields: phi3::fields },
    Family { model_type: "qwen2", base_class: "Qwen2Model", defaults: qwen::defaults_of_2, fields: qwen::qwen2 },
    Family {
        model_type: "qwen2_moe",
        base_class: "Qwen2MoeModel",
        defaults: qwen_moe::defaults_of_2,
        fields: qwen_moe::qwen2_moe,
    },
    Family { model_type: "qwen3", base_class: "Qwen3Model", defaults: qwen::defaults_of_3, fields: qwen::qwen3 },
    Family {
        model_type: "qwen3_5_moe_text",
        base_class: "Qwen3_5MoeTextModel",
        defaults: qwen3_5::defaults_of_moe,
        fields: qwen3_5::moe,
    },
    Family {
        model_type: "qwen3_5_text",
        base_class: "Qwen3_5TextModel",
        defaults: qwen3_5::defaults,
        fields: qwen3_5::fields,
    },
    Family {
        model_type: "qwen3_moe",
        base_class: "Qwen3MoeModel",
        defaults: qwen_moe::defaults_of_3,
        fields: qwen_moe::qwen3_moe,
    },
    Family { model_type: "smollm3", base_class: "SmolLM3Model", defaults: smollm3::defaults, fields: smollm3::fields },
];

/// Values of `model_type` that are decoders: those of [`FAMILIES`], then those of vision-language
/// folders with a decoder inside.
pub(super) const NAMES: [&str; FAMILIES.len() + tower::NAMES.len()] = {
    let mut names = [""; FAMILIES.len() + tower::NAMES.len()];
    let mut index = 0;
    while index < FAMILIES.len() {
        names[index] = FAMILIES[index].model_type;
        index += 1;
    }
    while index < names.len() {
        names[index] = tower::NAMES[index - FAMILIES.len()];
        index += 1;
    }
    names
};

/// `model_type` of each family, without vision-language folders.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|family| family.model_type)
}

/// Whether a class of transformers is a decoder without a head, or a vision-language model without
/// one. Classes of other programs often have such names too (`LlamaBiModel`), with an attention of
/// their own; so the name must be one of a family here.
pub(super) fn is_base_class(class: &str) -> bool {
    FAMILIES.iter().any(|family| family.base_class == class) || tower::is_base_class(class)
}

/// The class of a family's sequence classifiers.
pub(crate) fn classifier_class(family: &str) -> Option<String> {
    let family = FAMILIES.iter().find(|known| known.model_type == family)?;
    Some(format!("{}ForSequenceClassification", family.base_class.trim_end_matches("Model")))
}

/// What transformers 5.23 takes in most families where `config.json` is silent; families overwrite
/// what differs.
fn defaults() -> Value {
    json!({
        "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
        "num_attention_heads": 32, "hidden_act": "silu", "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
        "tie_word_embeddings": false, "eos_token_id": 2
    })
}

/// The decoder that a `config.json` describes. Vision-language folders are not known here:
/// `ModelSpec::from_json` takes their text fields out first.
///
/// Called once for the description, and once for each field by the search for unread ones, so it
/// warns of nothing and has no side effects.
///
/// # Errors
/// [`ConfigProblem`] for a missing or unknown `model_type`, and what the family's file refuses.
pub(super) fn fields(file: &Map<String, Value>) -> Result<DecoderFields, ConfigProblem> {
    let model_type = match file.get("model_type") {
        None => return Err(ConfigProblem::Missing { field: "model_type", needed_by: "every config.json" }),
        Some(Value::String(name)) => name.clone(),
        Some(other) => other.to_string(),
    };
    let Some(family) = FAMILIES.iter().find(|family| family.model_type == model_type) else {
        return Err(ConfigProblem::Unknown { field: "model_type", found: model_type, known: &NAMES });
    };
    // transformers' masks read it in every family: with `false` all positions see one another.
    if let Some(found) = file.get("is_causal").filter(|found| !matches!(found, Value::Null | Value::Bool(true))) {
        return Err(ConfigProblem::Unsupported { field: "is_causal", found: found.to_string() });
    }
    (family.fields)(merged(family, file))
}

/// The fields of a file over the defaults of its family.
fn merged(family: &Family, file: &Map<String, Value>) -> Value {
    let mut fields = defaults();
    overlay(&mut fields, (family.defaults)());
    overlay(&mut fields, Value::Object(file.clone()));
    fields
}

/// The problem of a file with the field that it is about, where serde does not name it.
pub(super) fn name_field(problem: ConfigProblem, file: &Map<String, Value>) -> ConfigProblem {
    let model_type = file.get("model_type").and_then(Value::as_str);
    let family = FAMILIES.iter().find(|family| Some(family.model_type) == model_type);
    blame::field(problem, file, &|file| family.map_or(Ok(()), |family| (family.fields)(merged(family, file)).map(drop)))
}
