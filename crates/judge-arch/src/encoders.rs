//! The families of encoders: chooses one by `model_type`, merges defaults and lowers the file.
//!
//! Works as `families.rs` does for decoders, with its own files under `encoders/`. Classes are
//! checked more strictly: encoders are often published with code of their own under the
//! `model_type` of a known family, so the class must be one of that family's.

mod bert;
mod deberta;
mod heads;
mod modernbert;
mod sizes;

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::checks::overlay;
use super::encoder::{EncoderHeadSpec, EncoderSpec, HeadDraws};
use super::{ConfigProblem, angles, blame, head, unread};

/// A family, as one entry of [`FAMILIES`].
struct Family {
    /// `model_type` in files.
    model_type: &'static str,
    /// What people call its models.
    models: &'static str,
    /// What it has that BERT has not, for people.
    special: &'static str,
    /// What the names of its classes in transformers begin with.
    class: &'static str,
    /// Values that transformers 5.23 has where the file is silent.
    defaults: fn() -> Value,
    /// Describes the encoder of a file whose defaults are filled in.
    spec: fn(Value) -> Result<EncoderSpec, ConfigProblem>,
    /// The head of its sequence classifiers with these labels.
    head: fn(&Value, Vec<String>) -> Result<EncoderHeadSpec, ConfigProblem>,
    /// How transformers draws a new one.
    draws: fn(&Value) -> Result<HeadDraws, ConfigProblem>,
}

/// All families, in the order of [`NAMES`].
const FAMILIES: [Family; 5] = [
    Family {
        model_type: "bert",
        models: "BERT, and most of the small embedding models",
        special: "norms after each half of a block, learned positions",
        class: "Bert",
        defaults: || bert::defaults(30522, 0),
        spec: |fields| bert::spec(fields, "bert", "bert.", false),
        head: |fields, labels| heads::bert(fields, "pooler.dense", "classifier", labels),
        draws: heads::draws,
    },
    Family {
        model_type: "deberta-v2",
        models: "DeBERTa v2 and v3",
        special: "BERT whose scores depend on relative positions too",
        class: "DebertaV2",
        defaults: deberta::defaults,
        spec: deberta::spec,
        head: heads::deberta,
        draws: heads::draws,
    },
    Family {
        model_type: "modernbert",
        models: "ModernBERT",
        special: "norms before each half, a gated MLP, RoPE, windows in two blocks of three",
        class: "ModernBert",
        defaults: modernbert::defaults,
        spec: modernbert::spec,
        head: heads::modernbert,
        draws: heads::draws_of_modernbert,
    },
    Family {
        model_type: "roberta",
        models: "RoBERTa",
        special: "BERT whose positions start after the padding token's id",
        class: "Roberta",
        defaults: || bert::defaults(50265, 1),
        spec: |fields| bert::spec(fields, "roberta", "roberta.", true),
        head: |fields, labels| heads::bert(fields, "classifier.dense", "classifier.out_proj", labels),
        draws: heads::draws,
    },
    Family {
        model_type: "xlm-roberta",
        models: "XLM-RoBERTa, multilingual E5",
        special: "the same",
        class: "XLMRoberta",
        defaults: || bert::defaults(50265, 1),
        spec: |fields| bert::spec(fields, "xlm-roberta", "roberta.", true),
        head: |fields, labels| heads::bert(fields, "classifier.dense", "classifier.out_proj", labels),
        draws: heads::draws,
    },
];

/// What people are told of each family: its `model_type`, its models, and what is special.
pub fn described() -> impl Iterator<Item = [&'static str; 3]> {
    FAMILIES.iter().map(|family| [family.model_type, family.models, family.special])
}

/// Values of `model_type` that are encoders.
pub(super) static NAMES: LazyLock<Vec<&str>> =
    LazyLock::new(|| FAMILIES.iter().map(|family| family.model_type).collect());

/// Prefixes of class names, in the order of [`NAMES`], for the error.
static CLASSES: LazyLock<Vec<&str>> = LazyLock::new(|| FAMILIES.iter().map(|family| family.class).collect());

/// Fields that change no state of an encoder, besides those that are harmless in any family
/// (`unread.rs`): of heads, of training, and of BERT's first releases.
#[rustfmt::skip]
const HARMLESS: [&str; 30] = [
    "attention_probs_dropout_prob", "classifier_activation", "classifier_bias", "classifier_pooling", "cls_dropout",
    "decoder_bias", "deterministic_flash_attn", "directionality", "embedding_dropout", "eos_token_id",
    "finetuning_task", "gradient_checkpointing", "hidden_dropout_prob", "initializer_cutoff_factor",
    // ModernBERT's files have it beside `norm_eps`. BERT reads it, so it is never unread there.
    "layer_norm_eps", "legacy", "output_past", "pooler_dropout", "pooler_fc_size", "pooler_hidden_act",
    "pooler_hidden_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type",
    "reference_compile", "repad_logits_with_grad", "sparse_pred_ignore_index", "sparse_prediction",
    "tie_word_embeddings",
];

/// The encoder that a `config.json` describes; `None` if its `model_type` is no encoder.
///
/// # Errors
/// [`ConfigProblem`] for another class, a value out of its range, or something unsupported.
pub(super) fn spec(file: &Map<String, Value>) -> Result<Option<EncoderSpec>, ConfigProblem> {
    let Some(family) = family(file) else { return Ok(None) };
    unread::check_number(file)?;
    let name_field = |problem| blame::field(problem, file, &|file| lower(family, file).map(drop));
    let spec = lower(family, file).map_err(name_field)?;
    angles::check(&spec.ropes, spec.max_len)?;
    Ok(Some(spec))
}

/// The family of a `config.json`; `None` if its `model_type` is no encoder.
fn family(file: &Map<String, Value>) -> Option<&'static Family> {
    let model_type = file.get("model_type").and_then(Value::as_str);
    FAMILIES.iter().find(|family| Some(family.model_type) == model_type)
}

/// The head of `count` labels that sequence classifiers of an encoder's family have, whatever the folder's own class
/// is. Labels have the folder's names if it has as many, else `LABEL_0` and so on.
///
/// # Errors
/// [`ConfigProblem`] for a `model_type` that is no encoder, a head that is not read, and too many labels.
pub fn head_of(file: &Map<String, Value>, count: usize) -> Result<EncoderHeadSpec, ConfigProblem> {
    let family = known(file)?;
    (family.head)(&filled(family, file), head::names_of(file, count)?)
}

/// How transformers draws a new head of an encoder's family.
///
/// # Errors
/// [`ConfigProblem`] for a `model_type` that is no encoder, and for numbers that nothing can be drawn by.
pub fn draws_of(file: &Map<String, Value>) -> Result<HeadDraws, ConfigProblem> {
    let family = known(file)?;
    (family.draws)(&filled(family, file))
}

/// The family of a `config.json`.
///
/// # Errors
/// [`ConfigProblem::Unknown`] for a `model_type` that is no encoder.
fn known(file: &Map<String, Value>) -> Result<&'static Family, ConfigProblem> {
    let found = || file.get("model_type").map_or_else(String::new, Value::to_string);
    family(file).ok_or_else(|| ConfigProblem::Unknown { field: "model_type", found: found(), known: &NAMES })
}

/// The class of a family's sequence classifiers; `None` for a `model_type` that is no encoder.
pub fn classifier_of(model_type: &str) -> Option<String> {
    let family = FAMILIES.iter().find(|family| family.model_type == model_type)?;
    Some(format!("{}ForSequenceClassification", family.class))
}

/// The fields of a file with the family's defaults where it is silent.
fn filled(family: &Family, file: &Map<String, Value>) -> Value {
    let mut fields = (family.defaults)();
    overlay(&mut fields, Value::Object(file.clone()));
    fields
}

/// Names of the fields of an encoder's file that nothing reads and that may change a state.
pub(super) fn unread_of(file: &Map<String, Value>) -> Vec<String> {
    let Some(family) = family(file) else { return Vec::new() };
    let mut unread = unread::unread_keys(file, &|file| lower(family, file).is_ok());
    unread.retain(|name| !HARMLESS.contains(&name.as_str()));
    unread
}

/// Checks the class, fills in defaults and describes the encoder. Does not warn, so that it can be
/// tried with changed files.
fn lower(family: &Family, file: &Map<String, Value>) -> Result<EncoderSpec, ConfigProblem> {
    // Folders may bring code of their own, with classes of another name, under a known
    // `model_type`.
    let class = file.get("architectures").and_then(|classes| classes.get(0)).and_then(Value::as_str);
    if let Some(class) = class.filter(|class| !class.starts_with(family.class)) {
        return Err(ConfigProblem::Unknown { field: "architectures", found: class.to_owned(), known: &CLASSES });
    }
    let fields = filled(family, file);
    let head = match class.filter(|class| class.ends_with("ForSequenceClassification")) {
        Some(_) => Some((family.head)(&fields, head::label_names(file)?)?),
        None => None,
    };
    Ok(EncoderSpec { head, ..(family.spec)(fields)? })
}

#[cfg(test)]
mod tests;
