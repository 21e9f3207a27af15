//! The families of encoders: their fields in `config.json`, and what transformers 5.23 takes where it is silent.

mod bert;
mod modernbert;
mod sizes;

use serde_json::{Map, Value};

use super::encoder::EncoderSpec;
use super::shape::overlay;
use super::{ConfigProblem, angles, unread};

/// A family: the defaults of its fields, and what it is by all of them.
struct Family {
    model_type: &'static str,
    /// What the names of its classes begin with.
    class: &'static str,
    defaults: fn() -> Value,
    spec: fn(Value) -> Result<EncoderSpec, ConfigProblem>,
}

const FAMILIES: [Family; 4] = [
    Family { model_type: "bert", class: "Bert", defaults: bert::defaults_of_bert, spec: bert::bert },
    Family { model_type: "modernbert", class: "ModernBert", defaults: modernbert::defaults, spec: modernbert::spec },
    Family { model_type: "roberta", class: "Roberta", defaults: bert::defaults_of_roberta, spec: bert::roberta },
    Family {
        model_type: "xlm-roberta",
        class: "XLMRoberta",
        defaults: bert::defaults_of_roberta,
        spec: bert::xlm_roberta,
    },
];

/// Values of `model_type` that are encoders.
pub(super) const NAMES: [&str; FAMILIES.len()] =
    [FAMILIES[0].model_type, FAMILIES[1].model_type, FAMILIES[2].model_type, FAMILIES[3].model_type];

/// What classes begin with, in the order of [`NAMES`].
const CLASSES: [&str; FAMILIES.len()] = [FAMILIES[0].class, FAMILIES[1].class, FAMILIES[2].class, FAMILIES[3].class];

/// Fields that change no state of an encoder, besides those that change nothing in any family: of heads, of training, and of BERT's first releases.
const HARMLESS: [&str; 25] = [
    "attention_probs_dropout_prob",
    "classifier_activation",
    "classifier_bias",
    "classifier_pooling",
    "decoder_bias",
    "deterministic_flash_attn",
    "directionality",
    "embedding_dropout",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "hidden_dropout_prob",
    "initializer_cutoff_factor",
    "layer_norm_eps", // ModernBERT has it twice; BERT's is read
    "output_past",
    "pooler_fc_size",
    "pooler_num_attention_heads",
    "pooler_num_fc_layers",
    "pooler_size_per_head",
    "pooler_type",
    "reference_compile",
    "repad_logits_with_grad",
    "sparse_pred_ignore_index",
    "sparse_prediction",
    "tie_word_embeddings",
];

/// The encoder that the fields of a `config.json` describe; `None` if its `model_type` is none. Warns of fields that nothing reads.
pub(super) fn spec(file: &Map<String, Value>) -> Result<Option<EncoderSpec>, ConfigProblem> {
    let model_type = file.get("model_type").and_then(Value::as_str);
    let Some(family) = FAMILIES.iter().find(|family| Some(family.model_type) == model_type) else { return Ok(None) };
    unread::check_number(file)?;
    let spec = lower(family, file)?;
    angles::check(&spec.ropes, spec.max_len)?;
    unread::warn(spec.family, &unread_keys(family, file));
    Ok(Some(spec))
}

fn unread_keys(family: &Family, file: &Map<String, Value>) -> Vec<String> {
    let mut unread = unread::unread_keys(file, &|file| lower(family, file).is_ok());
    unread.retain(|name| !HARMLESS.contains(&name.as_str()));
    unread
}

fn lower(family: &Family, file: &Map<String, Value>) -> Result<EncoderSpec, ConfigProblem> {
    // Classes of others bring their own code, which a file may run under the name of a known family.
    let class = file.get("architectures").and_then(|classes| classes.get(0)).and_then(Value::as_str);
    if let Some(class) = class.filter(|class| !class.starts_with(family.class)) {
        return Err(ConfigProblem::Unknown { field: "architectures", found: class.to_owned(), known: &CLASSES });
    }
    let mut fields = (family.defaults)();
    overlay(&mut fields, Value::Object(file.clone()));
    (family.spec)(fields)
}

#[cfg(test)]
mod tests;
