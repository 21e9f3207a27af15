//! Any bytes are read or refused as a `config.json`; what is read describes a model that can be.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| judge_models::fuzzing::config(bytes));
