//! An item of an export, and how its parts are read whatever tool has written it.

use std::collections::BTreeMap;

use judge_core::ItemId;
use serde_json::{Map, Value, json};

use crate::Row;

/// What one rater said of an item.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Answers {
    /// By question.
    pub(super) values: BTreeMap<String, Value>,
    pub(super) seconds: Option<f64>,
    pub(super) note: Option<String>,
    pub(super) skipped: Option<String>,
}

/// An item of an export.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: ItemId,
    /// What was shown.
    pub(super) fields: Map<String, Value>,
    pub(super) raters: BTreeMap<String, Answers>,
}

/// A field that holds an object.
pub(super) fn object(row: &Row, field: &'static str) -> Result<Map<String, Value>, String> {
    row.required(field, "an object").map_err(|error| error.in_row())
}

/// The id of an item: that of what was shown, or else the tool's own.
pub(super) fn id(fields: &mut Map<String, Value>, row: &Row, own: &'static str) -> Result<ItemId, String> {
    let shown = fields.shift_remove("id").and_then(|id| serde_json::from_value(id).ok());
    match shown {
        Some(id) => Ok(id),
        None => row.required(own, "a string or a whole number").map_err(|error| error.in_row()),
    }
}

/// An answer as a grade has it: a number, a text or a truth value, or a list of one.
pub(super) fn grade(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) | Value::String(_) => Some(value.clone()),
        Value::Bool(truth) => Some(json!(u8::from(*truth))),
        Value::Array(all) => match all.as_slice() {
            [one] => grade(one),
            _ => None,
        },
        Value::Null | Value::Object(_) => None,
    }
}

/// What a rater is called: a text, or a number.
pub(super) fn name(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(name) if !name.is_empty() => Some(name.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Object(fields) => {
            name(fields.get("email").or_else(|| fields.get("username")).or_else(|| fields.get("id")))
        }
        _ => None,
    }
}
