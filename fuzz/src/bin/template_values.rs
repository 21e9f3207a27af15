//! A template of a decision's prompt, and a state as JSON: it is refused, or renders the same text each time, within its bounds.
#![no_main]

use judge_fuzz::{parts, renders_alike};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(init: judge_fuzz::panics_of_others_unwind(), |bytes: &[u8]| {
    let [template, state] = parts(bytes);
    let state: Value =
        serde_json::from_slice(state).unwrap_or_else(|_| String::from_utf8_lossy(state).into_owned().into());
    let question = json!({ "name": "q", "type": "choice", "options": ["a", "b"], "labels": ["A", "B"] });
    renders_alike(&String::from_utf8_lossy(template), &[("state", state), ("question", question)]);
});
