//! Grades of a file as the ratings that statistics compare.

use std::collections::HashMap;

use anyhow::{Context, Result};
use judge_data::{Grade, ScoredRow};
use judge_metrics::comparison::{ComparedItem, Rating};
use serde_json::Value;

use crate::terminal::console::tell;

/// What a judge or a person said.
#[must_use]
pub fn rating(grade: Grade) -> Rating {
    match grade {
        Grade::Number(number) => Rating::Number(number),
        Grade::Label(text) => Rating::Text(text),
    }
}

/// What raters said, each in the same place.
#[must_use]
pub fn ratings(grades: Vec<Option<Grade>>) -> Vec<Option<Rating>> {
    grades.into_iter().map(|grade| grade.map(rating)).collect()
}

/// Says which labels differ in case or in spaces alone, if two do: a slip of the pen, as a rule, and they count as two.
pub fn tell_alike(items: &[ComparedItem]) {
    let mut known: HashMap<String, &str> = HashMap::new();
    for rating in items.iter().flat_map(|item| item.ratings().chain([&item.predicted])) {
        let Rating::Text(text) = rating else { return };
        let first = *known.entry(text.trim().to_lowercase()).or_insert(text);
        if first != text {
            return tell(format_args!(
                "note: the labels {first:?} and {text:?} differ in case or spaces alone, and count as two"
            ));
        }
    }
}

/// A field's value; null is none. A number too large for one, such as 1e400, is an error, as NaN is.
///
/// # Errors
/// For such a number.
pub fn value(row: &ScoredRow, field: &str) -> Result<Option<Value>> {
    let Some(text) = row.row.value(field) else { return Ok(None) };
    serde_json::from_str(text).map(Some).with_context(|| format!("{field} is {text}, not a finite number"))
}

/// A field's value as a name, such as that of a group; `None` for null.
#[must_use]
pub fn text(row: &ScoredRow, field: &str) -> Option<String> {
    match value(row, field) {
        Ok(Some(Value::String(text))) => Some(text),
        Ok(Some(other)) => Some(other.to_string()),
        Ok(None) => None,
        // A name like any other.
        Err(_) => row.row.value(field).map(str::to_owned),
    }
}
