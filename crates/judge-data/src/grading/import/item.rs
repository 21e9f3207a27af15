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
    /// The tool's own.
    own: Option<ItemId>,
    /// What was shown.
    pub(super) fields: Map<String, Value>,
    pub(super) raters: BTreeMap<String, Answers>,
}

impl Item {
    /// With the id of what was shown, or else the tool's own, which is in the field `own`. Another thing in the place of an id is an error:
    /// by the tool's own id the row would be found nowhere else.
    pub(super) fn new(mut fields: Map<String, Value>, row: &Row, own: &'static str) -> Result<Self, String> {
        let expected = "a string or a whole number";
        let shown = fields.shift_remove("id").filter(|id| !id.is_null());
        let shown = shown.map(|id| {
            let found = id.to_string();
            serde_json::from_value(id)
                .map_err(|_| format!("expected the id of what was shown to be {expected}, found {found}"))
        });
        let shown: Option<ItemId> = shown.transpose()?;
        let (id, own) = match shown {
            Some(id) => (id, row.optional(own, expected).ok().flatten()),
            None => {
                let own: ItemId = row.required(own, expected).map_err(|error| error.in_row())?;
                (own.clone(), Some(own))
            }
        };
        Ok(Self { id, own, fields, raters: BTreeMap::new() })
    }

    /// With the tool's own id, where it has one; that of what was shown stays as `shown_id`.
    pub(super) fn with_own_id(mut self) -> Self {
        if let Some(own) = self.own.clone() {
            let shown = std::mem::replace(&mut self.id, own);
            self.fields.insert("shown_id".to_owned(), json!(shown));
        }
        self
    }

    /// Whether another is the same item: to the tool, or by what was shown.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.own.is_some() && self.own == other.own) || self.fields == other.fields
    }

    /// Takes what a rater said; of two answers the last, which is odd.
    pub(super) fn say(&mut self, rater: String, said: Answers, odd: &mut Option<String>) {
        if self.raters.get(&rater).is_some_and(|before| *before != said) {
            odd.get_or_insert_with(|| twice(&rater));
        }
        self.raters.insert(rater, said);
    }
}

/// What is odd about a second answer of a rater.
pub(super) fn twice(rater: &str) -> String {
    format!("expected one answer of each rater, found two of {rater:?}, of which the last counts")
}

/// A field that holds an object.
pub(super) fn object(row: &Row, field: &'static str) -> Result<Map<String, Value>, String> {
    row.required(field, "an object").map_err(|error| error.in_row())
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
        Value::Object(fields) => ["email", "username", "id"].into_iter().find_map(|of| name(fields.get(of))),
        _ => None,
    }
}
