//! Argilla's records as JSON: `{"id", "fields": {…}, "metadata": {…}, "responses": {question: [{"value", "user_id", "status"?}]}}`, and of
//! its first version `"responses": [{"user_id", "status", "values": {question: {"value"}}}]`.

use serde_json::{Map, Value};

use super::item::{Item, grade, name, object, twice};
use crate::Row;

pub(super) fn item(row: &Row, odd: &mut Option<String>) -> Result<Item, String> {
    let mut item = Item::new(object(row, "fields")?, row, "id")?;
    let metadata: Option<Map<String, Value>> = row.optional("metadata", "an object").map_err(|error| error.in_row())?;
    if let Some(metadata) = metadata.filter(|metadata| !metadata.is_empty()) {
        item.fields.insert("metadata".to_owned(), metadata.into());
    }
    let responses: Value = row.required("responses", "responses by question").map_err(|error| error.in_row())?;
    match responses {
        Value::Object(by_question) => {
            for (question, responses) in &by_question {
                match responses {
                    Value::Array(all) => {
                        all.iter().for_each(|response| take(&mut item, question, response, response, odd));
                    }
                    // Nobody has answered it.
                    Value::Null => {}
                    other => {
                        let why = || format!("expected a list of responses to {question:?}, found {other}");
                        odd.get_or_insert_with(why);
                    }
                }
            }
        }
        Value::Array(by_user) => {
            for response in &by_user {
                match response["values"].as_object() {
                    Some(values) => {
                        values.iter().for_each(|(question, value)| take(&mut item, question, response, value, odd))
                    }
                    None => take(&mut item, "", response, &Value::Null, odd),
                }
            }
        }
        other => return Err(format!("expected `responses` by question, found {other}")),
    }
    Ok(item)
}

/// A response of a user to a question; what is no answer yet is left out.
fn take(item: &mut Item, question: &str, of_user: &Value, of_question: &Value, odd: &mut Option<String>) {
    let rater = name(of_user.get("user_id")).unwrap_or_else(|| "user".to_owned());
    let said = item.raters.entry(rater.clone()).or_default();
    match of_user["status"].as_str() {
        Some("discarded") => said.skipped = Some("discarded".to_owned()),
        Some("draft" | "pending") => {}
        _ => match grade(&of_question["value"]) {
            Some(answer) => {
                let before = said.values.insert(question.to_owned(), answer.clone());
                if before.is_some_and(|before| before != answer) {
                    odd.get_or_insert_with(|| twice(&rater));
                }
            }
            None => drop(odd.get_or_insert_with(|| {
                format!("expected one label, a rating or a text for {question:?}, found {}", of_question["value"])
            })),
        },
    }
}
