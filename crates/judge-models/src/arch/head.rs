//! Which head a folder has, by `architectures`, `id2label` and `pad_token_id` of its `config.json`.
//!
//! Only the class name says that a folder is a sequence classifier (a reward model, for example).
//! What its head does is transformers' `GenericForSequenceClassification`: one linear map without
//! bias on the state after the final norm. Reading it is up to `reading/` and
//! `judge_core::RewardHead`.

use std::collections::BTreeMap;

use judge_core::TokenId;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::ConfigProblem;
use super::spec::LabelsSpec;

/// Suffixes of class names that are read. The first two have logits over the vocabulary.
const KNOWN: &[&str] = &["ForCausalLM", "ForConditionalGeneration", "ForSequenceClassification"];

/// Labels that are accepted; more is a damaged file.
const MOST: usize = 1 << 16;

/// The fields that decide about the head. All are optional.
#[derive(Deserialize)]
struct Fields {
    /// Class names; the first one counts.
    architectures: Option<Vec<String>>,
    /// Names of the labels, by number.
    id2label: Option<BTreeMap<usize, String>>,
    /// Number of labels, used where `id2label` is absent.
    num_labels: Option<usize>,
    /// The padding token: a classifier reads the last token that is another one.
    pad_token_id: Option<TokenId>,
}

/// The head of labels, if the folder is that of a sequence classifier. Without a class there is
/// none.
///
/// Without `id2label` the names are `LABEL_0`, `LABEL_1` and so on, as in transformers.
///
/// # Errors
/// [`ConfigProblem`] for a class with another kind of head, and for labels that are none, too many
/// or not numbered from 0.
pub(super) fn labels(file: &Map<String, Value>) -> Result<Option<LabelsSpec>, ConfigProblem> {
    let Fields { architectures, id2label, num_labels, pad_token_id } =
        serde_json::from_value(Value::Object(file.clone()))?;
    let Some(class) = architectures.and_then(|all| all.into_iter().next()) else { return Ok(None) };
    if !KNOWN.iter().any(|known| class.ends_with(known)) {
        return Err(ConfigProblem::Unknown { field: "architectures", found: class, known: KNOWN });
    }
    if !class.ends_with("ForSequenceClassification") {
        return Ok(None);
    }
    // transformers counts `id2label`, and has two labels where a file says nothing.
    let count = id2label.as_ref().map(BTreeMap::len).or(num_labels).unwrap_or(2);
    let names =
        id2label.unwrap_or_else(|| (0..count.min(MOST)).map(|label| (label, format!("LABEL_{label}"))).collect());
    let are_numbered = names.keys().copied().eq(0..names.len());
    if !are_numbered || !(1..=MOST).contains(&count) {
        let found = format!("{count} labels{}", if are_numbered { "" } else { ", not numbered from 0" });
        return Err(ConfigProblem::Value {
            field: "id2label",
            found,
            expected: format!("1 to {MOST}, numbered from 0"),
        });
    }
    let labels = names.into_values().collect();
    Ok(Some(LabelsSpec { name: "score.weight".to_owned(), labels, padding: pad_token_id }))
}
