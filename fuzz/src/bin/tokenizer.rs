//! A `tokenizer.json`, a `tokenizer_config.json` and a `chat_template.jinja`:
//! they are refused, or make the same tokens of a text each time, and text of tokens.
#![no_main]

use judge_fuzz::{folder, panics_of_others_unwind, parts};
use libfuzzer_sys::fuzz_target;

fuzz_target!(
    init: panics_of_others_unwind(),
    |bytes: &[u8]| {
        let [tokenizer, config, template] = parts(bytes);
        let mut files = vec![("model.safetensors", &b""[..]), ("tokenizer.json", tokenizer), ("tokenizer_config.json", config)];
        if !template.is_empty() {
            files.push(("chat_template.jinja", template));
        }
        judge_models::fuzzing::tokenizer(folder(&files));
    }
);
