//! Which head a folder has: `architectures`, `id2label` and `pad_token_id` of a `config.json`.

use std::collections::BTreeMap;

use judge_core::TokenId;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::ConfigProblem;
use super::spec::LabelsSpec;

/// What the names of classes that this crate reads end with.
const KNOWN: &[&str] = &["ForCausalLM", "ForConditionalGeneration", "ForSequenceClassification"];

/// Labels that are believed; more is a damaged file.
const MOST: usize = 1 << 16;

#[derive(Deserialize)]
struct Fields {
    architectures: Option<Vec<String>>,
    id2label: Option<BTreeMap<usize, String>>,
    num_labels: Option<usize>,
    pad_token_id: Option<TokenId>,
}

/// The head of labels, if the folder is that of a sequence classifier.
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
