//! The words of messages that depend on what was found.

use judge_core::settings::nearest_name;

use crate::{Difference, Field};

/// What is missing: a field that columns can be chosen for, or one of this name alone.
pub(super) fn no_field(field: Option<Field>, names: &[String]) -> String {
    match field {
        Some(field) if names.is_empty() => format!("no field for {field}"),
        Some(field) => format!("no field for {field} (looked for {})", names.join(", ")),
        None => format!("expected a field {:?}", names.join(", ")),
    }
}

pub(super) fn no_row_has(rows: usize, field: &str, holds: Option<&str>, found: &[String]) -> String {
    match holds {
        Some(holds) => format!(
            "the template uses the field {field:?}, expected text, a number or a boolean, found {holds}; make one text of it, \
             e.g. of a list: jq -c '.{field} |= join(\"\\n\\n\")'"
        ),
        None => {
            format!("none of the first {rows} rows has the field {field:?} that the template uses; they have {found:?}")
        }
    }
}

pub(super) fn two_columns(field: &str, first: &str, second: &str) -> String {
    match first == second {
        true => format!("two columns are called {first:?}; give each a name of its own"),
        false => format!("the columns {first:?} and {second:?} may both be {field}"),
    }
}

pub(super) fn several(names: &[&str]) -> String {
    if names.is_empty() { "no known kind".into() } else { format!("several kinds ({})", names.join(", ")) }
}

/// The parser's words without its own line and column, which count from the start of the object.
pub(super) fn without_position(source: &serde_json::Error) -> String {
    let text = source.to_string();
    match text.rsplit_once(" at line ") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

pub(super) fn list(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What follows a sentence, where there is something.
pub(super) fn clause(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| format!("; {why}"))
}

/// The fields of a row that can be carried.
pub(super) fn besides(found: &[String]) -> String {
    match found {
        [] => "no field besides what is read of it".to_owned(),
        found => format!("the fields {found:?} besides what is read of it"),
    }
}

/// The name that a misspelt one was most likely meant to be, as a question.
pub(super) fn meant(found: &str, known: &[String]) -> String {
    let known = nearest_name(found, known.iter().map(String::as_str));
    known.map_or_else(String::new, |name| format!(". Did you mean {name:?}?"))
}

pub(super) fn made_otherwise(differences: &[Difference]) -> String {
    if differences.is_empty() {
        "and it is not what this run would write".into()
    } else {
        format!("made with other settings: {}", list(differences))
    }
}
