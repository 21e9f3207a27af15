//! Which field of a `config.json` a deserialisation failed at.
//!
//! Fields that families share are flattened into their structs, and serde does not name a flattened
//! field: it says "invalid type: null, expected usize" and nothing else. So each field is tried
//! alone over the defaults, which are sound; the one that fails is the one to name.

use serde_json::{Map, Value, json};

use super::ConfigProblem;

/// Objects within objects that are looked into.
const DEPTH: usize = 3;

/// Reads a file for its problem alone.
pub(super) type Lower<'a> = dyn Fn(&Map<String, Value>) -> Result<(), ConfigProblem> + 'a;

/// A [`ConfigProblem::Json`] as [`ConfigProblem::Field`] if one field of `file` explains it; any
/// other problem as it is. `lower` reads a file whose absent fields have their defaults.
pub(super) fn field(problem: ConfigProblem, file: &Map<String, Value>, lower: &Lower<'_>) -> ConfigProblem {
    if !matches!(problem, ConfigProblem::Json(_)) {
        return problem;
    }
    let fails = |file: Map<String, Value>| match lower(&file) {
        Err(ConfigProblem::Json(source)) => Some(source),
        _ => None,
    };
    find(file, &|name, value| fails([(name.to_owned(), value)].into_iter().collect()), DEPTH)
        .map_or(problem, |(field, found, source)| ConfigProblem::Field { field, found, source })
}

/// The first field of an object that fails alone, with its path, its value as JSON and the error:
/// of an object that fails, the field inside that does.
fn find(
    fields: &Map<String, Value>,
    fails: &dyn Fn(&str, Value) -> Option<serde_json::Error>,
    depth: usize,
) -> Option<(String, String, serde_json::Error)> {
    fields.iter().find_map(|(name, value)| {
        let source = fails(name, value.clone())?;
        let inner = value.as_object().filter(|_| depth > 0);
        let inner = inner
            .and_then(|inner| find(inner, &|field, value| fails(name, json!({ field: value })), depth - 1))
            .map(|(path, found, source)| (format!("{name}.{path}"), found, source));
        Some(inner.unwrap_or_else(|| (name.clone(), value.to_string(), source)))
    })
}
