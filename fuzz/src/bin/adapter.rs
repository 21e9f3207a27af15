//! An `adapter_config.json` and an `adapter_model.safetensors`: they are refused, or change the matrices that they name to finite numbers.
#![no_main]

use judge_fuzz::{folder, parts};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [config, tensors] = parts(bytes);
    judge_models::fuzzing::adapter(folder(&[("adapter_config.json", config), ("adapter_model.safetensors", tensors)]));
});
