//! Whatever a body holds, it is read or refused, and a refusal is JSON.
//!
//! `PROPTEST_CASES=5000000 cargo test --release -p judge-serve --lib wire` is a long search.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::rerank::{self, ScoresOf};
use super::{OpenAi, SystemOne, Wire, object};

/// What [`judge_core::decision::exact_json`] makes of large whole numbers, which no client is to see.
const MARKER: &str = "judge::whole_number";

/// Reads a body in one of the forms; what is wrong with it can be said.
fn read<W: Wire>(body: &[u8]) -> bool {
    match object(body, W::STATE).and_then(W::read) {
        Ok(asked) => {
            assert!(asked.of.questions.len() > 0);
            assert!(!Value::from(asked.of.questions).to_string().contains(MARKER));
            true
        }
        Err(refused) => {
            let message = refused.message();
            assert!(!message.is_empty() && !message.contains(MARKER) && refused.status.is_client_error(), "{message}");
            assert!(W::refusal(&refused).is_object());
            false
        }
    }
}

/// Words that requests have.
const WORDS: &str = "model state questions assets type noul choice score predicate instructions criteria true false \
                     input name choices value description levels label role content user message text input_text \
                     input_json input_image function_call call_id arguments output function_call_output \
                     safety_identifier prompt_cache_options";

/// One of them, or any other.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(WORDS.split_whitespace().chain([""]).collect::<Vec<_>>()).prop_map(str::to_owned),
        "\\PC{0,6}",
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A right request of each form.
fn right() -> [Value; 2] {
    [
        json!({"model": "m", "state": {"a": [1, "b"]}, "questions": {
            "q": {"type": "noul", "instructions": "?", "criteria": {"true": "a"}},
            "r": {"type": "choice", "criteria": {"a": null, "b": {"c": 1}}},
            "s": {"type": "score", "instructions": ["?"], "criteria": ["a", "b"]}}}),
        json!({"model": "m", "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_json", "data": {"a": 1}}]},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "o"}], "questions": [
            {"type": "predicate", "name": "q", "instructions": "?"},
            {"type": "choice", "instructions": "?", "choices": [{"value": "a", "description": "b"}, {"value": true}]},
            {"type": "score", "name": null, "instructions": "?", "levels": [{"label": "a"}, {"label": "b"}]}]}),
    ]
}

/// All values within a value, itself included.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Puts another value in the place of the `at`-th within it.
fn put(value: &mut Value, at: &mut usize, other: &Value) {
    if *at == 0 {
        value.clone_from(other);
    }
    *at = at.wrapping_sub(1);
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| put(value, at, other)),
        Value::Object(fields) => fields.values_mut().for_each(|value| put(value, at, other)),
        _ => {}
    }
}

#[test]
fn the_right_requests_are_read() {
    let [system_one, openai] = right().map(|body| body.to_string());
    assert!(read::<SystemOne>(system_one.as_bytes()));
    assert!(read::<OpenAi>(openai.as_bytes()));
}

/// Wherever a number may stand, a large one may, and nowhere else.
#[test]
fn a_large_whole_number_is_a_number_everywhere() {
    for (form, right) in right().into_iter().enumerate() {
        for place in 0..count(&right) {
            let mut body = right.clone();
            put(&mut body, &mut { place }, &json!("HERE"));
            let [small, large] = ["7", "18446744073709551616"].map(|number| {
                let body = body.to_string().replace("\"HERE\"", number).into_bytes();
                if form == 0 { read::<SystemOne>(&body) } else { read::<OpenAi>(&body) }
            });
            assert_eq!(small, large, "{body}");
        }
    }
    let wrong = br#"{"query": "q", "documents": ["d"], "top_n": 18446744073709551616}"#;
    let refused =
        object(wrong, "documents").and_then(|body| rerank::read("/rerank", body)).err().expect("no such number");
    assert!(
        refused.message().ends_with("a whole number above 0, found 1.8446744073709552e+19"),
        "{}",
        refused.message()
    );
    let wrong = br#"{"state": 18446744073709551616, "questions": {"q": {"type": "noul", "instructions": "?"}}}"#;
    let refused = object(wrong, "state").and_then(SystemOne::read).err().expect("no such state");
    assert_eq!(refused.message(), "expected text, an object or a list, found 18446744073709551616");
    let mut state = object(br#"{"state": [18446744073709551616]}"#, "state").expect("an object");
    let state = state.remove("state").expect("a state");
    assert_eq!(judge_core::decision::exact_json::to_text(&state), "[18446744073709551616]");
}

/// A request for scores of labels is no longer in memory than it came: its texts are joined behind the limit.
#[test]
fn a_query_is_kept_once_for_all_items() {
    let body = json!({"query": "a".repeat(1_000_000), "items": vec![""; 1000], "label_token_ids": [1]}).to_string();
    let asked = object(body.as_bytes(), "documents").and_then(|body| rerank::read("/score", body)).expect("a request");
    let ScoresOf::Tokens(next) = asked.of else { panic!("documents") };
    assert_eq!((next.query.len(), next.items.concat().len(), next.bytes()), (1_000_000, 0, 1_000_000_000));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
        read::<SystemOne>(&body);
        read::<OpenAi>(&body);
    }

    #[test]
    fn any_json_is_read_or_refused(body in any_json()) {
        read::<SystemOne>(body.to_string().as_bytes());
        read::<OpenAi>(body.to_string().as_bytes());
    }

    /// Near a right request, where most of the reading is done.
    #[test]
    fn a_request_with_one_odd_value_is_read_or_refused(at in 0_usize..1000, other in any_json()) {
        let [mut system_one, mut openai] = right();
        for body in [&mut system_one, &mut openai] {
            let mut at = at % count(body);
            put(body, &mut at, &other);
        }
        read::<SystemOne>(system_one.to_string().as_bytes());
        read::<OpenAi>(openai.to_string().as_bytes());
    }

    #[test]
    fn a_request_with_odd_bytes_is_read_or_refused(at in 0_usize..2000, odd in prop::collection::vec(any::<u8>(), 0..4)) {
        for (form, body) in right().into_iter().enumerate() {
            let mut bytes = body.to_string().into_bytes();
            let at = at % bytes.len();
            bytes.splice(at..(at + odd.len()).min(bytes.len()), odd.iter().copied());
            if form == 0 { read::<SystemOne>(&bytes) } else { read::<OpenAi>(&bytes) };
        }
    }
}
