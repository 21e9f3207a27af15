//! What tests read of `tests/fixtures`.

use std::path::Path;

use serde_json::Value;

use crate::published::text;

/// A file of the folder, by its name without `.json`.
pub(crate) fn fixture(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.json"));
    serde_json::from_str(&text(&path)).unwrap()
}

/// The cases of an area of a fixture, of which there must be `expected`.
#[track_caller]
pub(crate) fn cases(name: &str, area: &str, expected: usize) -> Vec<Value> {
    let cases = list(&fixture(name)[area]).clone();
    assert_eq!(cases.len(), expected, "{name}: {area}");
    cases
}

pub(crate) fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap()
}

pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    list(value).iter().map(|number| number.as_f64().unwrap()).collect()
}

pub(crate) fn count(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

pub(crate) fn counts(value: &Value) -> Vec<usize> {
    list(value).iter().map(count).collect()
}

pub(crate) fn flags(value: &Value) -> Vec<bool> {
    list(value).iter().map(|flag| flag.as_bool().unwrap()).collect()
}

/// Equal to 1e-10 relative; below a thousandth, to 1e-13 absolute.
#[track_caller]
pub(crate) fn near(ours: f64, expected: &Value) {
    let expected = expected.as_f64().unwrap();
    assert!((ours - expected).abs() <= 1e-10 * expected.abs().max(1e-3), "{ours}, not {expected}");
}
