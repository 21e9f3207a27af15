//! The fields of an object, each taken once, and what is wrong with them.

use judge_core::decision::exact_json;
use serde_json::{Map, Value, json};

use super::super::refusal::{Problem, Refusal, SHOWN};

/// So many problems of a request are told.
const TOLD: usize = 64;

/// What is wrong with a request, as far as it was read.
#[derive(Default)]
pub(super) struct Problems(Vec<Problem>);

impl Problems {
    pub(super) fn add(&mut self, loc: &[Value], kind: &'static str, msg: impl std::fmt::Display) {
        if self.0.len() < TOLD {
            self.0.push(Problem::new(loc, kind, msg));
        }
    }

    /// What was read, unless something is wrong.
    pub(super) fn or<T>(self, read: Option<T>) -> Result<T, Refusal> {
        match read {
            Some(read) if self.0.is_empty() => Ok(read),
            _ => Err(Refusal::invalid(self.0)),
        }
    }

    /// The fields of an object at a place in the body; `None` for anything else, which is said.
    pub(super) fn object_at(&mut self, found: Value, loc: &[Value], expected: &str) -> Option<Map<String, Value>> {
        match object(found) {
            Ok(fields) => Some(fields),
            Err(found) => {
                self.add(loc, "dict_type", format!("expected {expected}, found {}", named(&found)));
                None
            }
        }
    }
}

/// The elements of a list at a place in the body, each with its own place.
pub(super) fn elements(at: &[Value], list: Vec<Value>) -> impl Iterator<Item = (Vec<Value>, Value)> {
    list.into_iter().enumerate().map(move |(place, found)| ([at, &[json!(place)]].concat(), found))
}

/// What is read of each element of a list at a place in the body; `None` where one of them is wrong, which is told.
pub(super) fn each<T>(
    at: &[Value],
    list: Vec<Value>,
    mut read: impl FnMut(Vec<Value>, Value) -> Option<T>,
) -> Option<Vec<T>> {
    let number = list.len();
    let found: Vec<T> = elements(at, list).filter_map(|(loc, found)| read(loc, found)).collect();
    (found.len() == number).then_some(found)
}

/// The fields of an object that are still to be read.
pub(super) struct Fields<'p> {
    fields: Map<String, Value>,
    loc: Vec<Value>,
    problems: &'p mut Problems,
}

impl<'p> Fields<'p> {
    /// Those of an object at a place in the body, of which no others than `known` may be there.
    pub(super) fn new(fields: Map<String, Value>, loc: &[Value], known: &[&str], problems: &'p mut Problems) -> Self {
        for name in fields.keys().filter(|name| !known.contains(&name.as_str())) {
            let name: String = name.chars().take(SHOWN).collect();
            let loc = [loc, &[json!(name)]].concat();
            problems.add(
                &loc,
                "extra_forbidden",
                format!("unknown field `{name}`; the fields are {}", known.join(", ")),
            );
        }
        Self { fields, loc: loc.to_vec(), problems }
    }

    /// The place of a field.
    pub(super) fn at(&self, name: &str) -> Vec<Value> {
        [&self.loc[..], &[json!(name)]].concat()
    }

    /// Says that a field is not what it should be.
    pub(super) fn wrong(&mut self, name: &str, kind: &'static str, expected: &str, found: &Value) {
        let loc = self.at(name);
        self.problems.add(&loc, kind, format!("expected {expected}, found {}", named(found)));
    }

    /// A field that may be absent, as one that is null is taken to be: many clients write absent fields so.
    pub(super) fn optional(&mut self, name: &str) -> Option<Value> {
        self.fields.shift_remove(name).filter(|found| !found.is_null())
    }

    /// A field that must be there.
    pub(super) fn required(&mut self, name: &str) -> Option<Value> {
        let found = self.fields.shift_remove(name);
        if found.is_none() {
            let loc = self.at(name);
            self.problems.add(&loc, "missing", "this field is missing");
        }
        found
    }

    /// A text, or none where the field is absent.
    pub(super) fn optional_text(&mut self, name: &str) -> Option<String> {
        let found = self.optional(name)?;
        self.as_text(name, found)
    }

    /// A text that must be there.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let found = self.required(name)?;
        self.as_text(name, found)
    }

    fn as_text(&mut self, name: &str, found: Value) -> Option<String> {
        match found {
            Value::String(text) => Some(text),
            found => {
                self.wrong(name, "string_type", "text", &found);
                None
            }
        }
    }

    /// A list that must be there, of so many elements.
    pub(super) fn list(&mut self, name: &str, least: usize, most: usize) -> Option<Vec<Value>> {
        match self.required(name)? {
            Value::Array(list) => self.is_in(name, list.len(), least, most).then_some(list),
            found => {
                self.wrong(name, "list_type", "a list", &found);
                None
            }
        }
    }

    /// Whether a number of elements is allowed, which is said otherwise.
    pub(super) fn is_in(&mut self, name: &str, number: usize, least: usize, most: usize) -> bool {
        let kind = match number {
            _ if number < least => "too_short",
            _ if number > most => "too_long",
            _ => return true,
        };
        let loc = self.at(name);
        self.problems.add(&loc, kind, format!("expected {least} to {most}, found {number}"));
        false
    }

    pub(super) fn problems(&mut self) -> &mut Problems {
        self.problems
    }
}

/// The fields of an object; the value itself where it is none. A whole number whose digits [`exact_json`] keeps is none.
pub(super) fn object(value: Value) -> Result<Map<String, Value>, Value> {
    match value {
        number if exact_json::whole_number(&number).is_some() => Err(number),
        Value::Object(fields) => Ok(fields),
        other => Err(other),
    }
}

/// Whether a value is an object or a list. A whole number whose digits [`exact_json`] keeps is neither.
pub(super) fn is_object_or_list(value: &Value) -> bool {
    value.is_array() || (value.is_object() && exact_json::whole_number(value).is_none())
}

/// What kind of JSON a value is, for messages.
pub(super) fn named(value: &Value) -> String {
    match value {
        number if let Some(digits) = exact_json::whole_number(number) => match digits.len() {
            ..=SHOWN => digits.to_owned(),
            length => format!("a number of {length} digits"),
        },
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if text.chars().count() <= SHOWN => format!("{text:?}"),
        Value::String(_) => "a text".to_owned(),
        Value::Array(list) if list.is_empty() => "an empty list".to_owned(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
