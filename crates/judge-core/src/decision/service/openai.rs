//! `/v1/decisions`: a list of questions, as OpenAI has them. Names of fields are those of the openai package, 3.57.0.

use serde_json::{Map, Value, json};

use super::said::{Said, number, other_kind, unread};
use crate::{
    Reason, Unscored,
    decision::{NoulCriteria, Question, exact_json},
};

/// A state as it is sent: text as it is, JSON as its text.
pub(super) fn input(state: &Value) -> String {
    text(state)
}

fn text(json: &Value) -> String {
    json.as_str().map_or_else(|| exact_json::to_text(json), str::to_owned)
}

/// A question with its name.
pub(super) fn question(name: &str, question: &Question) -> Result<Value, Unscored> {
    let no_place = |what: &str| Unscored::new(Reason::Missing, format!("OpenAI's form of a question {what}"));
    let instructions = question.instructions().ok_or_else(|| no_place("needs instructions, and this one has none"))?;
    let instructions = text(instructions);
    Ok(match question {
        Question::Noul { criteria: NoulCriteria { yes: None, no: None }, .. } => {
            json!({"type": "predicate", "name": name, "instructions": instructions})
        }
        Question::Noul { .. } => {
            return Err(no_place("has no `criteria` for yes and no; put them into the instructions"));
        }
        Question::Choice { criteria, .. } => {
            let choice = |(option, description): (&String, &Value)| match description {
                Value::Null => json!({"value": option}),
                description => json!({"value": option, "description": text(description)}),
            };
            let choices: Vec<Value> = criteria.iter().map(choice).collect();
            json!({"type": "choice", "name": name, "instructions": instructions, "choices": choices})
        }
        Question::Score { criteria, .. } => {
            let levels: Vec<Value> = criteria.iter().map(|level| json!({"label": text(level)})).collect();
            json!({"type": "score", "name": name, "instructions": instructions, "levels": levels})
        }
    })
}

/// `{"answers": [{"type", "name", …}]}`. Answers without names are in the order of the questions, of which there are `count`.
pub(super) fn answer(
    answered: &Value,
    name: &str,
    (place, count): (usize, usize),
    question: &Question,
) -> Result<Said, Unscored> {
    let answers = answered.get("answers").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let named = |answer: &Value| answer.get("name").is_some_and(|found| !found.is_null());
    let own: Vec<&Value> = match answers.iter().any(named) {
        true => answers.iter().filter(|answer| answer.get("name").and_then(Value::as_str) == Some(name)).collect(),
        false if answers.len() == count => vec![&answers[place]],
        false => {
            let found = answers.len();
            return Err(unread(format!("the service's answers have no names, and are {found} to {count} questions")));
        }
    };
    let [answer] = own[..] else {
        return Err(unread(format!("expected one answer of the service to {name:?}, found {}", own.len())));
    };
    let kind = answer.get("type").and_then(Value::as_str).unwrap_or_default();
    let probabilities = match (kind, question) {
        ("refusal", _) => {
            return Err(Unscored::new(Reason::Refused, "the service declined to answer this question"));
        }
        ("predicate", Question::Noul { .. }) => number(answer, "probability").map(|yes| vec![yes, 1.0 - yes]),
        ("choice", Question::Choice { .. }) => {
            listed(answer, &question.options(), |value| value.as_str().map(str::to_owned))
        }
        ("score", Question::Score { .. }) => {
            listed(answer, &question.options(), |value| value.as_u64().map(|level| level.to_string()))
        }
        _ => None,
    };
    let probabilities =
        probabilities.ok_or_else(|| other_kind(&format!("a question of the kind {}", question.kind()), answer))?;
    Ok(Said { probabilities, label_mass: number(answer, "label_mass") })
}

/// The probabilities of a list of `{"value", "probability"}`, in the order of the options; `None` unless each option is there once.
fn listed(answer: &Value, options: &[String], name: impl Fn(&Value) -> Option<String>) -> Option<Vec<f64>> {
    let mut found = Map::new();
    for entry in answer.get("probabilities")?.as_array()? {
        let twice = found.insert(name(entry.get("value")?)?, number(entry, "probability")?.into());
        if twice.is_some() {
            return None;
        }
    }
    let probabilities: Option<Vec<f64>> = options.iter().map(|option| found.get(option)?.as_f64()).collect();
    probabilities.filter(|probabilities| probabilities.len() == found.len())
}
