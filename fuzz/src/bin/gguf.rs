//! Any bytes are read or refused as a GGUF file of each family that has such files; tensors are as long as their shapes say.
#![no_main]

use judge_fuzz::folder;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| judge_models::fuzzing::stored(folder(&[("model.gguf", bytes)])));
