//! Any bytes are read or refused as a GGUF file of each family that has such files, and as a model of one file;
//! tensors are as long as their shapes say.
#![no_main]

use std::fs;

use judge_fuzz::{folder, panics_of_others_unwind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(init: panics_of_others_unwind(), |bytes: &[u8]| {
    let folder = folder(&[("model.gguf", bytes)]);
    judge_models::fuzzing::stored(folder);
    // The same file with nothing beside it: its keys are the model's description and its tokenizer.
    let alone = folder.join("alone");
    fs::create_dir_all(&alone).expect("the temporary folder can be written");
    let alone = alone.join("model.gguf");
    fs::write(&alone, bytes).expect("the temporary folder can be written");
    judge_models::fuzzing::tokenizer(&alone);
    judge_models::fuzzing::weights(&alone);
});
