//! A template of a decision's prompt, and a state as JSON: it is refused, or renders the same text each time, within its bounds.
#![no_main]

use judge_fuzz::parts;
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: judge_fuzz::panics_of_others_unwind(), |bytes: &[u8]| {
    let [template, state] = parts(bytes);
    judge_models::fuzzing::template_values(&String::from_utf8_lossy(template), state);
});
