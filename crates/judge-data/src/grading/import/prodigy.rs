//! Prodigy's JSON lines, as its `db-out` writes them: `{"text", "options"?: [{"id", "text"}], "accept"?: [id], "answer": "accept" | "reject" |
//! "ignore", "_annotator_id"?, "_session_id"?, "_task_hash"}`.

use serde_json::{Map, Value, json};

use super::item::{Answers, Item, grade, name};
use crate::Row;

/// The question of a tool that has one.
const QUESTION: &str = "answer";

pub(super) fn item(row: &Row, odd: &mut Option<String>) -> Result<Item, String> {
    let mut fields = Map::new();
    for key in row.keys() {
        let json = row.value(key).and_then(|json| serde_json::from_str(json).ok());
        fields.insert(key.to_owned(), json.unwrap_or_default());
    }
    let rater = name(fields.get("_annotator_id")).or_else(|| name(fields.get("_session_id")));
    let answer = row.string("answer").map_err(|error| error.in_row())?;
    let accepted = fields.get("accept").cloned();
    fields.retain(|name, _| !name.starts_with('_') && !["answer", "accept"].contains(&name.as_str()));
    let mut said = Answers::default();
    let value = match (answer.as_str(), accepted) {
        ("accept", Some(accepted)) => {
            let value = grade(&accepted);
            if value.is_none() {
                odd.get_or_insert_with(|| format!("expected one accepted option, found {accepted}"));
            }
            value
        }
        ("accept", None) => Some(json!(1)),
        ("reject", None) => Some(json!(0)),
        ("reject", Some(_)) => {
            said.skipped = Some("rejected".to_owned());
            None
        }
        ("ignore", _) => {
            said.skipped = Some("ignored".to_owned());
            None
        }
        (other, _) => return Err(format!("expected the answer accept, reject or ignore, found {other:?}")),
    };
    said.values.extend(value.map(|value: Value| (QUESTION.to_owned(), value)));
    let mut item = Item::new(fields, row, "_task_hash")?;
    item.say(rater.unwrap_or_else(|| "prodigy".to_owned()), said, odd);
    Ok(item)
}
