//! What tests read of `tests/fixtures`, and how near to it results must be.

use std::path::Path;

use judge_probe::Precision;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// NumPy's name of each, under which fixtures have what scikit-learn decides in it.
pub(crate) const PRECISIONS: [(&str, Precision); 3] =
    [("float64", Precision::F64), ("float32", Precision::F32), ("float16", Precision::F16)];

/// A file of the folder, by its name without `.json`.
pub(crate) fn fixture<F: DeserializeOwned>(name: &str) -> F {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.json"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The cases of a file, of which there must be `expected`.
#[track_caller]
pub(crate) fn cases<C: DeserializeOwned>(name: &str, expected: usize) -> Vec<C> {
    #[derive(Deserialize)]
    struct Fixture<C> {
        cases: Vec<C>,
    }
    let cases = fixture::<Fixture<C>>(name).cases;
    assert_eq!(cases.len(), expected, "{name}");
    cases
}

/// Numbers or texts.
pub(crate) fn list<'a, T: Deserialize<'a>>(list: &'a Value) -> Vec<T> {
    Vec::deserialize(list).unwrap()
}

/// All numbers of a list, those of lists in it too; or the one number.
pub(crate) fn numbers(list: &Value) -> Vec<f64> {
    match list {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap()],
    }
}

pub(crate) fn count(number: &Value) -> usize {
    number.as_u64().unwrap() as usize
}

/// As many numbers, each within `tolerance`, which is relative where the expected number is above 1 in size.
#[track_caller]
pub(crate) fn assert_close(what: &str, ours: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), expected.len(), "{what}");
    for (i, (ours, expected)) in ours.iter().zip(expected).enumerate() {
        let off = (ours - expected).abs() / expected.abs().max(1.0);
        assert!(off <= tolerance, "{what}[{i}] is {ours}, expected {expected}");
    }
}

/// `stir` of the scripts: numbers below 2³² that look like chance.
pub(crate) fn stir(number: u64) -> u64 {
    let mut number = number * 2_654_435_761 % (1 << 32);
    number ^= number >> 15;
    number = number * 2_246_822_519 % (1 << 32);
    number ^ number >> 13
}
