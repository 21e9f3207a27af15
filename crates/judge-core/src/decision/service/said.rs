//! What a service says of a question, in either form.

use serde_json::Value;

use crate::{Reason, Unscored};

/// What a service says of a question.
pub(super) struct Said {
    /// The probabilities of its options, in their order.
    pub(super) probabilities: Vec<f64>,
    pub(super) label_mass: Option<f64>,
}

/// An answer that is none of its question.
pub(super) fn unread(detail: String) -> Unscored {
    Unscored::new(Reason::NoAnswer, detail)
}

/// An answer of another kind than its question.
pub(super) fn other_kind(expected: &str, found: &Value) -> Unscored {
    let found: String = found.to_string().chars().take(200).collect();
    unread(format!("expected an answer to {expected} with its probabilities, found {found}"))
}

/// The number of a field.
pub(super) fn number(fields: &Value, field: &str) -> Option<f64> {
    fields.get(field).and_then(Value::as_f64)
}
