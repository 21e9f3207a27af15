//! Label Studio's JSON, as its guide on the task format has it: `{"id", "data": {…}, "annotations": [{"completed_by", "was_cancelled",
//! "lead_time", "result": [{"from_name", "type", "value": {…}}]}]}`.

use serde::Deserialize;
use serde_json::Value;

use super::item::{Answers, Item, grade, name, object};
use crate::Row;

#[derive(Deserialize)]
struct Annotation {
    completed_by: Option<Value>,
    #[serde(default)]
    was_cancelled: bool,
    lead_time: Option<f64>,
    #[serde(default)]
    result: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    from_name: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    value: Value,
}

pub(super) fn item(row: &Row, odd: &mut Option<String>) -> Result<Item, String> {
    let mut item = Item::new(object(row, "data")?, row, "id")?;
    let expected = "a list of annotations with `result`";
    let all: Vec<Annotation> = row.required("annotations", expected).map_err(|error| error.in_row())?;
    for (number, annotation) in (1..).zip(all) {
        let rater = name(annotation.completed_by.as_ref()).unwrap_or_else(|| format!("annotation {number}"));
        let skipped = annotation.was_cancelled.then(|| "skipped".to_owned());
        let mut said = Answers { seconds: annotation.lead_time, skipped, ..Answers::default() };
        for Found { from_name, kind, value } in annotation.result {
            let (question, kind) = (from_name.unwrap_or_else(|| "grade".to_owned()), kind.unwrap_or_default());
            let answer = match kind.as_str() {
                "textarea" => {
                    said.note = grade(&value["text"]).and_then(|text| text.as_str().map(str::to_owned)).or(said.note);
                    continue;
                }
                // What was chosen before the skip is no answer.
                _ if annotation.was_cancelled => continue,
                // A pair's sides, as its tag has them.
                "pairwise" => match value["selected"].as_str() {
                    Some("left") => Some("A".into()),
                    Some("right") => Some("B".into()),
                    _ => None,
                },
                kind => grade(&value[kind]),
            };
            match answer {
                Some(answer) => drop(said.values.insert(question, answer)),
                None => drop(odd.get_or_insert_with(|| {
                    format!("annotation {number}: expected one choice, a rating or a number in {question:?}, found {kind:?} {value}")
                })),
            }
        }
        item.say(rater, said, odd);
    }
    Ok(item)
}
