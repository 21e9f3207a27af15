//! Which head a folder has, by the class that `architectures` of its `config.json` names.
//!
//! The class decides alone, and fields that it does not need are not looked at: `id2label` and
//! `pad_token_id` mean something in the folder of a sequence classifier only.
//!
//! | class | head |
//! |---|---|
//! | none, `…ForCausalLM`, `…ForConditionalGeneration`, `…LMHeadModel` | what the family says: the embedding, or a matrix |
//! | `…ForSequenceClassification` | labels, such as those of a reward model |
//! | `LayerWiseMiniCPMForCausalLM` | one label at the last layer, and one at each from `start_layer` on |
//! | `…ForTokenClassification`, a base class such as `MistralModel` | none over the vocabulary |
//!
//! Whether a matrix is stored is not known here: `checked.rs` has the last word.
//!
//! What the head of labels does is transformers' `GenericForSequenceClassification`: one linear map
//! without bias on the state after the final norm. Reading it is up to `reading/` and
//! `judge_core::reward::RewardHead`.

use std::collections::BTreeMap;

use judge_core::request::TokenId;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::shape::TokenIds;
use super::spec::{HeadSpec, LabelsSpec, NoHead, SCORE};
use super::{ConfigProblem, families};

/// Suffixes of class names that are read; base classes are read too. The first three have logits over
/// the vocabulary.
const KNOWN: &[&str] = &[
    "ForCausalLM",
    "ForConditionalGeneration",
    "LMHeadModel",
    "ForSequenceClassification",
    "ForTokenClassification",
    "Model, after a family's name as in LlamaModel",
];

/// The class of FlagEmbedding whose layers have heads of their own.
const LAYER_WISE: &str = "LayerWiseMiniCPMForCausalLM";

/// Labels that are accepted; more is a damaged file.
const MOST: usize = 1 << 16;

/// The head of a folder whose class has no head over the vocabulary; `None` for all other folders.
///
/// # Errors
/// [`ConfigProblem`] for a class with another kind of head, and for labels that are none, too many
/// or not numbered from 0.
pub(super) fn of_class(file: &Map<String, Value>, n_layers: usize) -> Result<Option<HeadSpec>, ConfigProblem> {
    let wrong = |found: &Value| ConfigProblem::value("architectures", found, "a list of names of classes");
    let class = match file.get("architectures") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(classes)) => match classes.first() {
            None => return Ok(None),
            Some(class) => class.as_str().ok_or_else(|| wrong(class))?,
        },
        Some(other) => return Err(wrong(other)),
    };
    if class == LAYER_WISE {
        layer_wise(file, n_layers).map(|labels| Some(HeadSpec::Labels(labels)))
    } else if ["ForCausalLM", "ForConditionalGeneration", "LMHeadModel"].iter().any(|end| class.ends_with(end)) {
        Ok(None)
    } else if class.ends_with("ForSequenceClassification") {
        labels(file).map(|labels| Some(HeadSpec::Labels(labels)))
    } else if class.ends_with("ForTokenClassification") || families::is_base_class(class) {
        Ok(Some(HeadSpec::Absent(NoHead::Class)))
    } else {
        Err(ConfigProblem::Unknown { field: "architectures", found: class.to_owned(), known: KNOWN })
    }
}

/// The head of labels of a decoder that is a sequence classifier.
///
/// # Errors
/// Those of [`label_names`], and [`ConfigProblem`] for a `pad_token_id` that is none.
fn labels(file: &Map<String, Value>) -> Result<LabelsSpec, ConfigProblem> {
    Ok(LabelsSpec { name: SCORE.to_owned(), labels: label_names(file)?, padding: padding(file)?, inner: None })
}

/// The heads of a reranker of MiniCPM, one number at each layer from `start_layer` on: FlagEmbedding's `lm_head` of the type
/// `simple`. They read the last token, whatever it is, and have no part in the factor on logits.
///
/// # Errors
/// [`ConfigProblem`] for another type of head, one head for all layers, and a first layer that the model does not have.
fn layer_wise(file: &Map<String, Value>, last: usize) -> Result<LabelsSpec, ConfigProblem> {
    for (field, expected) in [("head_type", json!("simple")), ("head_multi", json!(true))] {
        if let Some(found) = file.get(field).filter(|&found| *found != expected) {
            return Err(ConfigProblem::value(field, found, format!("{expected}: other heads are not read")));
        }
    }
    let first = file.get("start_layer").cloned().unwrap_or(json!(8));
    let Some(first) = first.as_u64().and_then(|first| usize::try_from(first).ok()).filter(|first| *first <= last)
    else {
        return Err(ConfigProblem::value("start_layer", first, format!("a layer of 0 to {last}")));
    };
    let named = |layer: usize| format!("lm_head.{}.linear_head.weight", layer - first);
    let inner = Some((first..last).map(|layer| (layer, named(layer))).collect());
    Ok(LabelsSpec { name: named(last), labels: vec!["relevance".to_owned()], padding: None, inner })
}

/// The labels of a sequence classifier.
///
/// Without `id2label` the names are `LABEL_0`, `LABEL_1` and so on, as in transformers.
pub(super) fn label_names(file: &Map<String, Value>) -> Result<Vec<String>, ConfigProblem> {
    let id2label: Option<BTreeMap<usize, String>> = stated(file, "id2label", "names by number")?;
    let num_labels: Option<usize> = stated(file, "num_labels", "a number")?;
    // transformers counts `id2label`, and has two labels where a file says nothing.
    let count = id2label.as_ref().map(BTreeMap::len).or(num_labels).unwrap_or(2);
    let names =
        id2label.unwrap_or_else(|| (0..count.min(MOST)).map(|label| (label, format!("LABEL_{label}"))).collect());
    let are_numbered = names.keys().copied().eq(0..names.len());
    if !are_numbered || !(1..=MOST).contains(&count) {
        let found = format!("{count} labels{}", if are_numbered { "" } else { ", not numbered from 0" });
        return Err(ConfigProblem::value("id2label", found, format!("1 to {MOST}, numbered from 0")));
    }
    Ok(names.into_values().collect())
}

/// A field, if the file has it and it is not null.
fn stated<T: DeserializeOwned>(
    file: &Map<String, Value>,
    field: &'static str,
    expected: &str,
) -> Result<Option<T>, ConfigProblem> {
    let Some(found) = file.get(field).filter(|found| !found.is_null()) else { return Ok(None) };
    serde_json::from_value(found.clone()).map(Some).map_err(|_| ConfigProblem::value(field, found, expected))
}

/// The head of `count` labels that an adapter brings to the folder of another class. The names are those of the
/// folder if it has as many, else `LABEL_0` and so on, as transformers names them for `num_labels`.
///
/// # Errors
/// [`ConfigProblem`] for too many labels, and a `pad_token_id` that is none.
pub fn of_adapter(file: &Map<String, Value>, count: usize) -> Result<LabelsSpec, ConfigProblem> {
    Ok(LabelsSpec { name: SCORE.to_owned(), labels: names_of(file, count)?, padding: padding(file)?, inner: None })
}

/// The names of `count` labels of a head that the folder's class does not have, as of [`of_adapter`].
///
/// # Errors
/// [`ConfigProblem`] for too many labels.
pub(super) fn names_of(file: &Map<String, Value>, count: usize) -> Result<Vec<String>, ConfigProblem> {
    if let Some(own) = label_names(file).ok().filter(|own| own.len() == count && file.contains_key("id2label")) {
        return Ok(own);
    }
    let mut fields = file.clone();
    fields.remove("id2label");
    fields.insert("num_labels".to_owned(), count.into());
    label_names(&fields)
}

/// The token that a head of labels passes over at a text's end.
fn padding(file: &Map<String, Value>) -> Result<Option<TokenId>, ConfigProblem> {
    let Some(found) = file.get("pad_token_id").filter(|found| !found.is_null()) else { return Ok(None) };
    match TokenIds::of(found).filter(|_| found.is_number()) {
        Some(ids) => Ok(ids.0.first().copied()),
        None => Err(ConfigProblem::value("pad_token_id", found, "a token id, or -1 for none")),
    }
}
