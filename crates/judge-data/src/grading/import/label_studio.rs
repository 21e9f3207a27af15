//! Label Studio's JSON, as its guide on the task format has it: `{"id", "data": {…}, "annotations": [{"completed_by", "was_cancelled",
//! "lead_time", "result": [{"from_name", "type", "value": {…}}]}]}`.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::item::{Answers, Item, grade, name, object};
use crate::Row;

#[derive(Deserialize)]
struct Annotation {
    completed_by: Option<Value>,
    was_cancelled: Option<bool>,
    lead_time: Option<f64>,
    result: Option<Vec<Found>>,
}

#[derive(Deserialize)]
struct Found {
    from_name: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    value: Value,
}

/// What the value of a result has where it is about a part of what was shown: of a text, a sound, a picture or a film.
const REGION: [&str; 7] = ["start", "x", "points", "vertices", "rle", "sequence", "ranges"];

pub(super) fn item(row: &Row, odd: &mut Option<String>) -> Result<Item, String> {
    let data =
        object(row, "data").map_err(|why| format!("{why}; Label Studio's JSON has it, JSON-MIN and CSV have not"))?;
    let mut item = Item::new(data, row, "id")?;
    let expected = "a list of annotations with `result`";
    let all: Vec<Annotation> = row.required("annotations", expected).map_err(|error| error.in_row())?;
    for (number, annotation) in (1..).zip(all) {
        let rater = name(annotation.completed_by.as_ref()).unwrap_or_else(|| format!("annotation {number}"));
        let was_cancelled = annotation.was_cancelled.unwrap_or_default();
        let skipped = was_cancelled.then(|| "skipped".to_owned());
        let mut said = Answers { seconds: annotation.lead_time, skipped, ..Answers::default() };
        let (mut notes, mut answers) = (Vec::new(), BTreeMap::<String, Vec<Value>>::new());
        let mut refuse = |why: String| {
            odd.get_or_insert_with(|| format!("annotation {number}: expected {why}"));
        };
        for Found { from_name, kind, value } in annotation.result.into_iter().flatten() {
            let (question, kind) = (from_name.unwrap_or_else(|| "grade".to_owned()), kind.unwrap_or_default());
            let is_note = kind == "textarea";
            // What was chosen before the skip is no answer.
            if was_cancelled && !is_note {
                continue;
            }
            if REGION.iter().any(|part| !value[*part].is_null()) {
                refuse(format!("an answer about the whole item to {question:?}, found a region: {kind:?} {value}"));
                continue;
            }
            if is_note {
                notes.extend(texts(&value["text"]));
                continue;
            }
            let answer = match kind.as_str() {
                // A pair's sides, as its tag has them.
                "pairwise" => match value["selected"].as_str() {
                    Some("left") => Some("A".into()),
                    Some("right") => Some("B".into()),
                    _ => None,
                },
                kind => grade(&value[kind]),
            };
            match answer {
                Some(answer) => answers.entry(question).or_default().push(answer),
                None => refuse(format!("one choice, a rating or a number in {question:?}, found {kind:?} {value}")),
            }
        }
        for (question, mut all) in answers {
            all.dedup();
            match <[Value; 1]>::try_from(all) {
                Ok([answer]) => drop(said.values.insert(question, answer)),
                Err(_) => refuse(format!("one answer to {question:?}, found several that differ")),
            }
        }
        said.note = (!notes.is_empty()).then(|| notes.join("\n"));
        item.say(rater, said, odd);
    }
    Ok(item)
}

/// A text, or the texts of a list.
fn texts(value: &Value) -> Vec<String> {
    let all = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
