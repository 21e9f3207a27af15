//! The families of decoders, one file each: finds the family, fills in defaults and lowers the
//! file.
//!
//! A family's file has two functions. `defaults` gives the values that transformers 5.23 takes for
//! its own fields where `config.json` is silent. `fields` reads the merged fields, lowers the shared
//! ones with `Shape::lower` to a plain Llama, and replaces what is different. It fails as `Shape::lower` does, for numbers out
//! of range, for settings that contradict one another, and for what its file says is refused.
//!
//! ```text
//! defaults() of this file  ◄ overlaid by ◄  the family's defaults  ◄ overlaid by ◄  config.json
//!                                                      └─► (family.fields)(merged) ─► DecoderFields
//! ```
//!
//! To add a family: write its file, add an entry to [`FAMILIES`], and to [`own_names`] if it calls a shared field
//! otherwise, list the fields that only files carry in `unread.rs`, and make fixtures with
//! `scripts/parity/make_family_fixtures.py`. Where transformers does something the family cannot express, refuse it
//! by its field. If the family needs a new operation, add data to `spec.rs` and the operation to `engine/block.rs`.

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
mod minicpm;
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

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::checks::overlay;
use super::decoder_fields::DecoderFields;
use super::{ConfigProblem, blame, tower};

/// A family, as one entry of [`FAMILIES`].
struct Family {
    /// `model_type` in files.
    model_type: &'static str,
    /// What people call its models.
    models: &'static str,
    /// What it has that Llama has not, for people.
    special: &'static str,
    /// The class of transformers that has no head: states are all that a folder of it gives.
    base_class: &'static str,
    /// Values of fields where the file is silent, on top of those of all families.
    defaults: fn() -> Value,
    /// Describes the decoder of a file whose defaults are filled in.
    fields: fn(Value) -> Result<DecoderFields, ConfigProblem>,
}

/// All families, in alphabetical order.
const FAMILIES: &[Family] = &[
    Family {
        model_type: "cohere2",
        models: "Command R7B, Command A",
        special: "LayerNorm, attention and MLP in parallel; interleaved RoPE only in blocks with a window; readings include the multiplier of the logits",
        base_class: "Cohere2Model",
        defaults: cohere2::defaults,
        fields: cohere2::fields,
    },
    Family {
        model_type: "ernie4_5",
        models: "ERNIE 4.5, dense",
        special: "interleaved RoPE, optional biases",
        base_class: "Ernie4_5Model",
        defaults: ernie4_5::defaults,
        fields: ernie4_5::fields,
    },
    Family {
        model_type: "exaone4",
        models: "EXAONE 4",
        special: "norms only after each half of a block; with windows, global blocks have no RoPE",
        base_class: "Exaone4Model",
        defaults: exaone4::defaults,
        fields: exaone4::fields,
    },
    Family {
        model_type: "falcon_h1",
        models: "Falcon-H1 0.5B to 34B",
        special: "attention and Mamba-2 beside one another in every block; multipliers of embeddings, keys, what parts read and add, and logits, readings included",
        base_class: "FalconH1Model",
        defaults: falcon_h1::defaults,
        fields: falcon_h1::fields,
    },
    Family {
        model_type: "gemma",
        models: "Gemma 1, CodeGemma",
        special: "norm weights `1 + w`, embeddings times the root of their width",
        base_class: "GemmaModel",
        defaults: gemma::defaults_of_1,
        fields: gemma::gemma1,
    },
    Family {
        model_type: "gemma2",
        models: "Gemma 2",
        special: "soft-caps, four norms; readings exclude the final soft-cap",
        base_class: "Gemma2Model",
        defaults: gemma::defaults_of_2,
        fields: gemma::gemma2,
    },
    Family {
        model_type: "gemma3_text",
        models: "Gemma 3",
        special: "four norms, norms of queries and keys, windows in five blocks of six with their own RoPE",
        base_class: "Gemma3TextModel",
        defaults: gemma::defaults_of_3,
        fields: gemma::gemma3,
    },
    Family {
        model_type: "gemma4_text",
        models: "Gemma 4",
        special: "global blocks have wider heads and may use keys as values; the last blocks may reuse keys of earlier ones; embeddings per layer (E models); experts beside the MLP (26B-A4B)",
        base_class: "Gemma4TextModel",
        defaults: gemma4::defaults,
        fields: gemma4::fields,
    },
    Family {
        model_type: "glm",
        models: "GLM-4 9B",
        special: "interleaved RoPE on half of a head",
        base_class: "GlmModel",
        defaults: glm::defaults,
        fields: glm::glm,
    },
    Family {
        model_type: "glm4",
        models: "GLM-4-0414 9B and 32B",
        special: "the same; four norms",
        base_class: "Glm4Model",
        defaults: glm::defaults,
        fields: glm::glm4,
    },
    Family {
        model_type: "gpt2",
        models: "GPT-2, DistilGPT-2",
        special: "LayerNorm with biases, an MLP without a gate; learned positions; transposed matrices",
        base_class: "GPT2Model",
        defaults: gpt2::defaults,
        fields: gpt2::fields,
    },
    Family {
        model_type: "gpt_neox",
        models: "GPT-NeoX 20B, Pythia",
        special: "LayerNorm with biases, an MLP without a gate, beside attention or after it; partial RoPE; queries, keys and values fused head by head",
        base_class: "GPTNeoXModel",
        defaults: gpt_neox::defaults,
        fields: gpt_neox::fields,
    },
    Family {
        model_type: "gpt_oss",
        models: "gpt-oss, as published (MXFP4) or in bf16",
        special: "experts with biases, a clamped gate, attention sinks, windows in every second block",
        base_class: "GptOssModel",
        defaults: gpt_oss::defaults,
        fields: gpt_oss::fields,
    },
    Family {
        model_type: "granite",
        models: "Granite 3",
        special: "multipliers of embeddings, scores, residual stream and logits; readings include that of the logits",
        base_class: "GraniteModel",
        defaults: granite::defaults,
        fields: granite::fields,
    },
    Family {
        model_type: "granitemoehybrid",
        models: "Granite 4, the H models included",
        special: "Granite 3 with other names; with or without RoPE; experts beside a shared MLP; Mamba-2 instead of attention in most blocks of the H models",
        base_class: "GraniteMoeHybridModel",
        defaults: granite::defaults_of_hybrid,
        fields: granite::hybrid,
    },
    Family {
        model_type: "internlm3",
        models: "InternLM3",
        special: "optional biases",
        base_class: "InternLM3Model",
        defaults: internlm3::defaults,
        fields: internlm3::fields,
    },
    Family {
        model_type: "lfm2",
        models: "LFM2 350M to 2.6B",
        special: "a gated short convolution instead of attention in most blocks",
        base_class: "Lfm2Model",
        defaults: lfm2::defaults,
        fields: lfm2::fields,
    },
    Family {
        model_type: "lfm2_moe",
        models: "LFM2 8B-A1B and larger",
        special: "LFM2 with experts in all blocks but the first; sigmoid routing, with a bias for the choice",
        base_class: "Lfm2MoeModel",
        defaults: lfm2_moe::defaults,
        fields: lfm2_moe::fields,
    },
    Family {
        model_type: "llama",
        models: "Llama 2, 3.x",
        special: "",
        base_class: "LlamaModel",
        defaults: llama::defaults,
        fields: llama::fields,
    },
    Family {
        model_type: "minicpm",
        models: "MiniCPM 1B and 2B, bge-reranker-v2-minicpm-layerwise",
        special: "multipliers of embeddings, residual stream and logits; readings include that of the logits; rerankers have a head at every layer from some on",
        base_class: "MiniCPMModel",
        defaults: minicpm::defaults,
        fields: minicpm::fields,
    },
    Family {
        model_type: "ministral3",
        models: "Ministral 3",
        special: "queries are scaled by position beyond the original context",
        base_class: "Ministral3Model",
        defaults: ministral3::defaults,
        fields: ministral3::fields,
    },
    Family {
        model_type: "mistral",
        models: "Mistral",
        special: "sliding window in all blocks, or in those that `layer_types` names",
        base_class: "MistralModel",
        defaults: mistral::defaults,
        fields: mistral::fields,
    },
    Family {
        model_type: "mixtral",
        models: "Mixtral",
        special: "experts in all blocks",
        base_class: "MixtralModel",
        defaults: mixtral::defaults,
        fields: mixtral::fields,
    },
    Family {
        model_type: "nemotron_h",
        models: "Nemotron-H, Nemotron 3 Nano",
        special: "a block is Mamba-2, attention without RoPE, an MLP (squared ReLU, no gate) or experts alone; sigmoid routing in one group, a shared expert",
        base_class: "NemotronHModel",
        defaults: nemotron_h::defaults,
        fields: nemotron_h::fields,
    },
    Family {
        model_type: "olmo2",
        models: "OLMo 2",
        special: "norms only after each half of a block, one norm over all query heads",
        base_class: "Olmo2Model",
        defaults: olmo::defaults,
        fields: olmo::olmo2,
    },
    Family {
        model_type: "olmo3",
        models: "OLMo 3",
        special: "the same; windows, two RoPEs",
        base_class: "Olmo3Model",
        defaults: olmo::defaults,
        fields: olmo::olmo3,
    },
    Family {
        model_type: "olmoe",
        models: "OLMoE",
        special: "experts in all blocks, norms over all query heads and all key heads, queries, keys and values may be clamped",
        base_class: "OlmoeModel",
        defaults: olmoe::defaults,
        fields: olmoe::fields,
    },
    Family {
        model_type: "phi",
        models: "Phi-1, 1.5 and 2",
        special: "attention and an MLP without a gate beside one another after one LayerNorm; biases everywhere, that of the head in label logits too; partial RoPE",
        base_class: "PhiModel",
        defaults: phi::defaults,
        fields: phi::fields,
    },
    Family {
        model_type: "phi3",
        models: "Phi-3, Phi-4 and their minis",
        special: "fused projections, partial RoPE",
        base_class: "Phi3Model",
        defaults: phi3::defaults,
        fields: phi3::fields,
    },
    Family {
        model_type: "qwen2",
        models: "Qwen2, Qwen2.5",
        special: "biases of queries, keys and values",
        base_class: "Qwen2Model",
        defaults: qwen::defaults_of_2,
        fields: qwen::qwen2,
    },
    Family {
        model_type: "qwen2_moe",
        models: "Qwen1.5-MoE, Qwen2-MoE",
        special: "Qwen2 with experts in all blocks or some, and a shared expert",
        base_class: "Qwen2MoeModel",
        defaults: qwen_moe::defaults_of_2,
        fields: qwen_moe::qwen2_moe,
    },
    Family {
        model_type: "qwen3",
        models: "Qwen3",
        special: "norms of queries and keys, explicit head width",
        base_class: "Qwen3Model",
        defaults: qwen::defaults_of_3,
        fields: qwen::qwen3,
    },
    Family {
        model_type: "qwen3_5_moe_text",
        models: "Qwen3.5 and 3.6 with experts",
        special: "the same with experts in all blocks, and a shared expert",
        base_class: "Qwen3_5MoeTextModel",
        defaults: qwen3_5::defaults_of_moe,
        fields: qwen3_5::moe,
    },
    Family {
        model_type: "qwen3_5_text",
        models: "Qwen3.5 and 3.6, dense",
        special: "three blocks of four have a gated delta rule instead of attention; gates after attention",
        base_class: "Qwen3_5TextModel",
        defaults: qwen3_5::defaults,
        fields: qwen3_5::fields,
    },
    Family {
        model_type: "qwen3_moe",
        models: "Qwen3-MoE",
        special: "Qwen3 with experts in all blocks or some",
        base_class: "Qwen3MoeModel",
        defaults: qwen_moe::defaults_of_3,
        fields: qwen_moe::qwen3_moe,
    },
    Family {
        model_type: "smollm3",
        models: "SmolLM3",
        special: "no RoPE in every fourth block",
        base_class: "SmolLM3Model",
        defaults: smollm3::defaults,
        fields: smollm3::fields,
    },
];

/// Values of `model_type` that are decoders: those of [`FAMILIES`], then those of vision-language
/// folders with a decoder inside.
pub(super) static NAMES: LazyLock<Vec<&str>> =
    LazyLock::new(|| FAMILIES.iter().map(|family| family.model_type).chain(tower::names()).collect());

/// What people are told of each family: its `model_type`, its models, and what is special.
pub fn described() -> impl Iterator<Item = [&'static str; 3]> {
    FAMILIES.iter().map(|family| [family.model_type, family.models, family.special])
}

/// Whether a class of transformers is a decoder without a head, or a vision-language model without
/// one. Classes of other programs often have such names too (`LlamaBiModel`), with an attention of
/// their own; so the name must be one of a family here.
pub(super) fn is_base_class(class: &str) -> bool {
    FAMILIES.iter().any(|family| family.base_class == class) || tower::is_base_class(class)
}

/// What the names of a family's classes begin with.
fn class_name(family: &str) -> Option<&'static str> {
    let family = FAMILIES.iter().find(|known| known.model_type == family)?;
    Some(family.base_class.trim_end_matches("Model"))
}

/// The class of a family's sequence classifiers.
pub fn classifier_class(family: &str) -> Option<String> {
    Some(format!("{}ForSequenceClassification", class_name(family)?))
}

/// The class of a family's models with a head over the vocabulary.
pub fn causal_class(family: &str) -> Option<String> {
    Some(match class_name(family)? {
        "GPT2" => "GPT2LMHeadModel".to_owned(),
        name => format!("{}ForCausalLM", name.trim_end_matches("Text")),
    })
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
    let names = own_names(family.model_type);
    let own_name =
        |shared: &'static str| names.iter().find(|(_, name)| *name == shared).map_or(shared, |(own, _)| *own);
    let fields = (family.fields)(merged(family, file)).map_err(|problem| match problem {
        ConfigProblem::Unknown { field, found, known } => {
            ConfigProblem::Unknown { field: own_name(field), found, known }
        }
        ConfigProblem::Value { field, found, expected } => {
            let expected = names.iter().fold(expected, |text, (own, shared)| text.replace(shared, own));
            ConfigProblem::Value { field: own_name(field), found, expected }
        }
        other => other,
    })?;
    Ok(DecoderFields { family: family.model_type, ..fields })
}

/// What a family calls fields of [`Shape`](super::shape::Shape), each with its name there.
fn own_names(model_type: &str) -> &'static [(&'static str, &'static str)] {
    match model_type {
        "cohere2" | "gpt_neox" | "phi" => &[("layer_norm_eps", "rms_norm_eps")],
        "gemma2" | "gemma3_text" | "gemma4_text" => &[("hidden_activation", "hidden_act")],
        "gpt2" => &[
            ("activation_function", "hidden_act"),
            ("layer_norm_epsilon", "rms_norm_eps"),
            ("n_embd", "hidden_size"),
            ("n_head", "num_attention_heads"),
            ("n_layer", "num_hidden_layers"),
            ("n_positions", "max_position_embeddings"),
        ],
        "lfm2" | "lfm2_moe" => &[("norm_eps", "rms_norm_eps")],
        "nemotron_h" => &[("layer_norm_epsilon", "rms_norm_eps"), ("mlp_hidden_act", "hidden_act")],
        _ => &[],
    }
}

/// The fields of a file over the defaults of its family, its [`own_names`] replaced. A `rope_scaling` without fields says
/// nothing, as in transformers (`rope_scaling or rope_parameters`).
fn merged(family: &Family, file: &Map<String, Value>) -> Value {
    let mut fields = defaults();
    overlay(&mut fields, (family.defaults)());
    overlay(&mut fields, Value::Object(file.clone()));
    if fields["rope_scaling"].as_object().is_some_and(Map::is_empty) {
        fields["rope_scaling"] = Value::Null;
    }
    for (own, shared) in own_names(family.model_type) {
        fields[*shared] = fields[*own].take();
    }
    fields
}

/// The problem of a file with the field that it is about, where serde does not name it.
pub(super) fn name_field(problem: ConfigProblem, file: &Map<String, Value>) -> ConfigProblem {
    let model_type = file.get("model_type").and_then(Value::as_str);
    let family = FAMILIES.iter().find(|family| Some(family.model_type) == model_type);
    blame::field(problem, file, &|file| family.map_or(Ok(()), |family| (family.fields)(merged(family, file)).map(drop)))
}
