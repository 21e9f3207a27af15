//! A chat template, and messages by role and content: it is refused, or renders the same text each time, within its bounds.
#![no_main]

use judge_fuzz::renders_alike;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(init: judge_fuzz::panics_of_others_unwind(), |bytes: &[u8]| {
    let mut parts = bytes.split(|&byte| byte == 0xff).map(String::from_utf8_lossy);
    let template = parts.next().unwrap_or_default();
    let parts: Vec<_> = parts.collect();
    let message = |pair: &[std::borrow::Cow<'_, str>]| {
        json!({ "role": pair[0], "content": pair.get(1).map_or("", |part| &**part) })
    };
    let messages: Vec<Value> = parts.chunks(2).map(message).collect();
    let tools = json!([{ "type": "function", "function": { "name": "f", "parameters": { "x": [1, 2.5, null, true] } } }]);
    let variables = [
        ("tools", tools),
        ("documents", Value::Null),
        ("add_generation_prompt", true.into()),
        ("enable_thinking", false.into()),
        ("bos_token", "<s>".into()),
        ("messages", messages.into()),
    ];
    renders_alike(&template, &variables);
});
