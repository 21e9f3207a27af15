//! A `config.json`, which may say how weights are quantised, and a file of safetensors:
//! the weights of the model that the first describes are refused or read.
#![no_main]

use judge_fuzz::{folder, parts};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [config, tensors] = parts(bytes);
    judge_models::fuzzing::weights(folder(&[("config.json", config), ("model.safetensors", tensors)]));
});
