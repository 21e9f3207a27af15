//! A chat template, and messages by role and content: it is refused, or renders the same text each time, within its bounds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(init: judge_fuzz::panics_of_others_unwind(), |bytes: &[u8]| {
    let mut parts = bytes.split(|&byte| byte == 0xff).map(String::from_utf8_lossy);
    let template = parts.next().unwrap_or_default();
    let parts: Vec<_> = parts.collect();
    let messages: Vec<(&str, &str)> =
        parts.chunks(2).map(|pair| (&*pair[0], pair.get(1).map_or("", |part| part))).collect();
    judge_models::fuzzing::chat_template(&template, &messages);
});
