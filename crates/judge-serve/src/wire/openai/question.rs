//! A question of a request, and what its answer calls it and its options.

use judge_core::decision::{NoulCriteria, Question};
use serde_json::{Map, Value, json};

use super::super::fields::{Fields, Problems, each, named};
use super::input;

/// So many options a choice has.
const CHOICES: (usize, usize) = (2, 255);

/// So many levels a score has.
const LEVELS: (usize, usize) = (1, 255);

/// What an answer calls a question and its options.
pub(super) struct Names {
    pub(super) name: Option<String>,
    /// Values of a choice, labels of a score's levels.
    pub(super) options: Vec<Value>,
}

/// A question and its names; `None` where something is wrong with it, which is told.
pub(super) fn read(
    json: Value,
    loc: &[Value],
    problems: &mut Problems,
    images: &mut bool,
) -> Option<(Question, Names)> {
    let fields = problems.object_at(json, loc, "a question, which is an object")?;
    let (kind, known): (Kind, &[&str]) = match fields.get("type").and_then(Value::as_str) {
        Some("predicate") => (Kind::Predicate, &["type", "name", "instructions"]),
        Some("choice") => (Kind::Choice, &["type", "name", "instructions", "choices"]),
        Some("score") => (Kind::Score, &["type", "name", "instructions", "levels"]),
        _ => {
            let found = fields.get("type").map_or_else(|| "nothing".to_owned(), named);
            let loc = [loc, &[json!("type")]].concat();
            problems.add(&loc, "literal_error", format!("expected predicate, choice or score, found {found}"));
            return None;
        }
    };
    let mut fields = Fields::new(fields, loc, known, problems);
    let name = fields.optional_text("name");
    let instructions = fields.required("instructions").and_then(|found| {
        input::content(found, "instructions", &["input_text", "input_json", "input_image"], &mut fields, images)
    });
    match kind {
        Kind::Predicate => {
            let question = Question::Noul { instructions: Some(instructions?), criteria: NoulCriteria::default() };
            Some((question, Names { name, options: Vec::new() }))
        }
        Kind::Choice => {
            let list = fields.list("choices", CHOICES.0, CHOICES.1)?;
            let (criteria, options) = choices(list, &fields.at("choices"), fields.problems())?;
            Some((Question::Choice { instructions: Some(instructions?), criteria }, Names { name, options }))
        }
        Kind::Score => {
            let list = fields.list("levels", LEVELS.0, LEVELS.1)?;
            let (criteria, options) = levels(list, &fields.at("levels"), fields.problems())?;
            Some((Question::Score { instructions: Some(instructions?), criteria }, Names { name, options }))
        }
    }
}

enum Kind {
    Predicate,
    Choice,
    Score,
}

/// The options of a choice, and their values. A text and a truth value are different options, also where they are written alike.
fn choices(list: Vec<Value>, at: &[Value], problems: &mut Problems) -> Option<(Map<String, Value>, Vec<Value>)> {
    let (mut criteria, mut values) = (Map::new(), Vec::new());
    each(at, list, |loc, json| {
        let mut fields = element(json, &loc, &["value", "description"], problems)?;
        let description = fields.optional_text("description").map_or(Value::Null, Value::String);
        let value = fields.required("value")?;
        let (mut option, what) = match &value {
            Value::String(text) if !text.is_empty() => (text.clone(), "text"),
            Value::Bool(truth) => (truth.to_string(), "boolean"),
            found => {
                fields.wrong("value", "value_error", "a text that is not empty, true or false", found);
                return None;
            }
        };
        if values.contains(&value) {
            let at = fields.at("value");
            problems.add(&at, "value_error", format!("{} appears twice", named(&value)));
            return None;
        }
        while criteria.contains_key(&option) {
            option = format!("{option} ({what})");
        }
        criteria.insert(option, description);
        values.push(value);
        Some(())
    })?;
    Some((criteria, values))
}

/// What each level means, and the labels of levels.
fn levels(list: Vec<Value>, at: &[Value], problems: &mut Problems) -> Option<(Vec<Value>, Vec<Value>)> {
    let levels = each(at, list, |loc, json| {
        let mut fields = element(json, &loc, &["label", "description"], problems)?;
        let description = fields.optional_text("description");
        let label = fields.text("label")?;
        let meaning = description.map_or_else(|| label.clone(), |description| format!("{label}: {description}"));
        Some((Value::String(meaning), Value::String(label)))
    })?;
    Some(levels.into_iter().unzip())
}

/// The fields of an element of a list, which is to be an object.
fn element<'p>(json: Value, loc: &[Value], known: &[&str], problems: &'p mut Problems) -> Option<Fields<'p>> {
    let fields = problems.object_at(json, loc, "an object")?;
    Some(Fields::new(fields, loc, known, problems))
}
