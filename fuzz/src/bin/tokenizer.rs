//! A `tokenizer.json`, a `tokenizer_config.json` and a `chat_template.jinja`: they are refused, or make the same tokens of a text each time, and text of tokens.
#![no_main]

use std::panic;

use judge_fuzz::{folder, parts};
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

/// The crate `tokenizers` panics on some files, which judge-models makes an error of. libFuzzer's hook would end the process before that.
fn panics_of_others_unwind() {
    let abort = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let is_of_others =
            info.location().is_some_and(|place| !place.file().contains("judge-") && !place.file().starts_with("src/"));
        if !is_of_others {
            abort(info);
        }
    }));
}
