//! `/v1/systemone`: questions by name.

use serde_json::Value;

use super::said::{Said, number, other_kind, unread};
use crate::{
    Unscored,
    decision::{Question, QuestionKind, exact_json},
};

/// A state as it is sent: text, objects and lists as they are, other JSON as its text.
pub(super) fn state(state: &Value) -> Value {
    match state {
        number if let Some(digits) = exact_json::whole_number(number) => digits.into(),
        Value::String(_) | Value::Object(_) | Value::Array(_) => state.clone(),
        other => Value::String(other.to_string()),
    }
}

/// `{"answers": {name: {"type", …}}}`.
pub(super) fn answer(answered: &Value, name: &str, question: &Question) -> Result<Said, Unscored> {
    let answer = answered.get("answers").and_then(|answers| answers.get(name));
    let answer = answer.ok_or_else(|| unread(format!("the service's answers have none to the question {name:?}")))?;
    let kind = question.kind();
    let is_kind = answer.get("type").is_none_or(|found| found.as_str() == Some(kind.as_str()));
    let probabilities = match kind {
        _ if !is_kind => None,
        QuestionKind::Noul => number(answer, "noul").map(|yes| vec![yes, 1.0 - yes]),
        QuestionKind::Choice | QuestionKind::Score => answer.get("probabilities").and_then(|probabilities| {
            let found: Option<Vec<f64>> =
                question.options().iter().map(|option| number(probabilities, option)).collect();
            found.filter(|found| probabilities.as_object().map(|all| all.len()) == Some(found.len()))
        }),
    };
    let probabilities = probabilities.ok_or_else(|| other_kind(&format!("a {kind} question"), answer))?;
    let label_mass = answered.get("label_mass").and_then(|masses| number(masses, name));
    Ok(Said { probabilities, label_mass })
}
