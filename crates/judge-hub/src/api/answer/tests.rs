use judge_core::{
    Prompt, PromptTemplate, Scale,
    prompted::{GradeConvention, PromptFamily, Task},
};
use serde_json::json;

use super::*;

fn response(status: u16, body: impl ToString) -> Response {
    Response { status, retry_after: None, location: String::new(), body: body.to_string().into_bytes() }
}

fn generation(stop: &[&str], top_log_probs: u8) -> Generation {
    Generation { stop: stop.iter().map(ToString::to_string).collect(), top_log_probs, ..Generation::default() }
}

fn reply(content: Value, finish: &str) -> Value {
    json!({"model": "m-1", "choices": [{"message": {"role": "assistant", "content": content}, "finish_reason": finish}]})
}

/// What is read of a chat's answer to a request without stop texts or alternatives.
fn chat(status: u16, body: impl ToString) -> Answer {
    asked(status, body, &generation(&[], 0), None)
}

fn asked(status: u16, body: impl ToString, generation: &Generation, key: Option<&ApiKey>) -> Answer {
    read(&response(status, body), ApiRoute::Chat, generation, key)
}

fn text(answer: Answer) -> (String, Finish) {
    match answer.result.unwrap() {
        Outcome::Read(reading) => reading.generated.map(|generated| (generated.text, generated.finish)).unwrap(),
        Outcome::Unscored(unscored) => panic!("{unscored}"),
    }
}

fn unscored(answer: Answer) -> Unscored {
    match answer.result.unwrap() {
        Outcome::Read(reading) => panic!("{reading:?}"),
        Outcome::Unscored(unscored) => unscored,
    }
}

#[test]
fn completions_are_read() {
    let plain = |body: Value, stop: &[&str]| asked(200, body, &generation(stop, 0), None);
    assert_eq!(text(plain(reply(json!("four"), "stop"), &[])), ("four".into(), Finish::EndToken));
    // https://github.com/patniko/github-copilot-office/pull/7: an answer with a byte-order mark.
    let marked = format!("\u{feff}{}", reply(json!("four"), "stop"));
    assert_eq!(text(chat(200, marked)), ("four".into(), Finish::EndToken));
    for (reason, finish) in [("end_turn", Finish::EndToken), ("length", Finish::Length), ("MAX_TOKENS", Finish::Length)]
    {
        assert_eq!(text(plain(reply(json!("four"), reason), &[])), ("four".into(), finish), "{reason}");
    }
    assert_eq!(text(plain(reply(json!(""), "stop"), &["x"])), (String::new(), Finish::StopText));
    assert_eq!(text(plain(reply(json!("a]]b"), "length"), &["b", "]]"])), ("a".into(), Finish::StopText));
    let mut counted = reply(json!("four"), "stop");
    counted["usage"] = json!({"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15});
    let answer = plain(counted, &[]);
    assert_eq!((answer.tokens, answer.model.as_deref()), (Some(Tokens { prompt: 12, completion: 3 }), Some("m-1")));
    let Ok(Outcome::Read(reading)) = answer.result else { panic!("read") };
    assert_eq!((reading.prompt_tokens, reading.generated.unwrap().n_tokens), (Some(12), Some(3)));
    let mut floats = reply(json!("four"), "stop");
    floats["usage"] = json!({"prompt_tokens": 12.0, "completion_tokens": 3.0});
    assert_eq!(plain(floats, &[]).tokens, Some(Tokens { prompt: 12, completion: 3 }));
    let mut half = reply(json!("four"), "stop");
    half["usage"] = json!({"prompt_tokens": "12", "completion_tokens": 3});
    assert_eq!(plain(half, &[]).tokens, None);
}

#[test]
fn refusals_are_the_items_own() {
    let mut refusal = reply(Value::Null, "stop");
    refusal["choices"][0]["message"]["refusal"] = json!("I would rather not.");
    let mut moderated =
        json!({"error": {"code": 403, "message": "it was flagged", "metadata": {"reasons": ["violence"]}}});
    let in_choice = json!({"choices": [{"message": {"content": "half"}, "error": moderated["error"]}]});
    let of_status = moderated.clone();
    moderated["error"]["metadata"] = json!({"flagged_input": "…"});
    for (body, status, detail) in [
        (of_status, 403, "flagged"),
        (moderated, 200, "flagged"),
        (in_choice, 200, "flagged"),
        (json!({"error": {"message": "Blocked by moderation."}}), 451, "moderation"),
        (refusal, 200, "I would rather not."),
        (reply(json!("half an ans"), "content_filter"), 200, "content filter"),
        (json!({"error": {"message": "flagged", "code": "content_filter"}}), 400, "flagged"),
    ] {
        let found = unscored(chat(status, body));
        assert!(found.reason == Reason::Refused && found.detail.contains(detail), "{found}");
    }
    for body in [
        json!({"error": {"message": "This model's maximum context length is 10 tokens.", "type": "BadRequestError"}}),
        json!({"error": {"message": "too much", "code": "context_length_exceeded"}}),
        json!({"error": {"message": "the request exceeds …", "type": "exceed_context_size_error", "code": 400}}),
        json!({"object": "error", "message": "prompt is too long: 9 > 8"}),
        json!({"message": format!("{} This model's maximum context length is 8 tokens.", "You sent: x. ".repeat(60))}),
    ] {
        assert_eq!(unscored(chat(400, body)).reason, Reason::TooLong);
    }
}

#[test]
fn what_is_no_completion_is_named_and_tried_again() {
    let two = json!({"choices": [{"message": {"content": "a"}}, {"message": {"content": "b"}}]});
    for (body, expected) in [
        (json!("<html>busy</html>"), "expected a list \"choices\""),
        (json!({"error": {"message": "overloaded"}}), "status 200: \"overloaded\""),
        (json!({"choices": []}), "expected 1 choice, found 0"),
        (two, "expected 1 choice, found 2"),
        (json!({"choices": [{"text": "a"}]}), "\"message\""),
        (reply(json!(["a"]), "stop"), "\"content\""),
        (reply(Value::Null, "stop"), "\"content\""),
        (json!({"choices": [{"message": {"content": "half"}, "error": {"code": 502, "message": "gone"}}]}), "\"gone\""),
        (reply(json!("half"), "error"), "\"finish_reason\" \"error\""),
        (reply(json!("half"), "abort"), "\"finish_reason\" \"abort\""),
        (reply(json!("half"), "insufficient_system_resource"), "expected a whole answer"),
    ] {
        let answer = chat(200, &body);
        let error = answer.result.unwrap_err().to_string();
        assert!(answer.is_transient && error.contains(expected), "{body}: {error}");
    }
    let answer = chat(200, r#"{"choices": [{"mess"#);
    let error = answer.result.unwrap_err().to_string();
    assert!(error.contains("expected JSON") && error.contains("mess"), "{error}");
    for status in [200, 500] {
        let gzip = Response { body: vec![0x1f, 0x8b, 8, 0, 0xff], ..response(status, "") };
        let error = read(&gzip, ApiRoute::Chat, &generation(&[], 0), None).result.unwrap_err().to_string();
        assert!(error.contains("compressed with gzip") && !error.contains('\u{FFFD}'), "{error}");
    }
}

#[test]
fn statuses_are_final_or_not() {
    // What is of one row alone costs that row; all else ends the run.
    for (status, body, transient, is_rows) in [
        (401, json!({"error": {"message": "no such key"}}), false, false),
        (403, json!({"error": {"message": "not yours", "metadata": {"provider_name": "p"}}}), false, false),
        (451, json!({"error": {"message": "not in your country"}}), false, false),
        (404, json!({"error": {"message": "no such model"}}), false, false),
        (400, json!({"error": {"message": "no such model"}}), false, true),
        (408, json!({}), true, true),
        (409, json!({}), true, true),
        // Too early; and the client closed, as gateways say it of themselves.
        (425, json!({}), true, true),
        (499, json!({}), true, true),
        (429, json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}), true, false),
        (429, json!({"error": {"message": "pay", "code": "insufficient_quota"}}), false, false),
        (500, json!("oh"), true, true),
        (503, json!({"detail": "starting"}), true, true),
        (307, json!({}), false, false),
    ] {
        let answer = chat(status, &body);
        let problem = answer.result.unwrap_err();
        assert_eq!((answer.is_transient, problem.is_rows()), (transient, is_rows), "{status} {body}");
        assert!(problem.to_string().contains(&status.to_string()));
    }
}

#[test]
fn decisions_are_read() {
    let route = ApiRoute::Decisions(judge_core::decision::DecisionRoute::SystemOne);
    let of = |status, body: Value| read(&response(status, body), route, &generation(&[], 0), None);
    let body = json!({"model": "m-1", "answers": {"q": {"type": "noul", "noul": 0.5}}, "usage": {"input_tokens": 7, "output_tokens": 0}});
    let Answer { result: Ok(Outcome::Read(reading)), tokens, model, .. } = of(200, body.clone()) else {
        panic!("an answer")
    };
    assert_eq!(serde_json::from_str::<Value>(&reading.generated.expect("a text").text).expect("JSON"), body);
    assert_eq!(
        (reading.prompt_tokens, tokens.map(|tokens| tokens.completion), model),
        (Some(7), Some(0), Some("m-1".to_owned()))
    );
    let none = of(200, json!({"choices": []}));
    assert!(none.is_transient && none.result.unwrap_err().to_string().contains("\"answers\""));
    let detail = json!({"detail": [{"loc": ["body", "questions", 0], "msg": "no question", "type": "value_error"}]});
    let refused = of(422, detail);
    assert!(!refused.is_transient && refused.result.unwrap_err().to_string().contains("body.questions.0: no question"));
}

#[test]
fn a_key_that_is_echoed_does_not_show() {
    let key = ApiKey::new("sk-very-secret").unwrap();
    // Behind what is cut off, and across the cut: the key goes before the text is cut.
    let long = format!("{}sk-very-secret", "x".repeat(SHOWN - 4));
    let bodies = [
        (401, json!({"error": {"message": "the key sk-very-secret is wrong", "code": "sk-very-secret"}}).to_string()),
        (500, long),
        (200, json!({"sk-very-secret": "sk-very-secret"}).to_string()),
        (200, "sk-very-secret".to_owned()),
        (200, reply(json!("It is sk-very-secret."), "stop").to_string()),
        (200, json!({"choices": [{"message": {"refusal": "sk-very-secret"}}]}).to_string()),
        (400, json!({"error": {"message": "sk-very-secret", "code": "content_filter"}}).to_string()),
    ];
    for (status, body) in bodies {
        let shown = format!("{:?}", asked(status, &body, &generation(&[], 0), Some(&key)));
        assert!(!shown.contains("sk-very") && shown.contains("[key"), "{shown}");
    }
    let moved = Response { location: "http://elsewhere/?key=sk-very-secret".into(), ..response(302, "") };
    let shown = format!("{:?}", read(&moved, ApiRoute::Chat, &generation(&[], 0), Some(&key)));
    assert!(!shown.contains("sk-very") && shown.contains("elsewhere"), "{shown}");
}

fn with_log_probs(content: &str, entries: Value) -> Value {
    let mut body = reply(json!(content), "stop");
    body["choices"][0]["logprobs"] = json!({"content": entries});
    body
}

fn token(text: &str, log_prob: f64, top: &[(&str, f64)]) -> Value {
    let top: Vec<Value> = top.iter().map(|(text, p)| json!({"token": text, "logprob": p})).collect();
    json!({"token": text, "logprob": log_prob, "bytes": text.as_bytes(), "top_logprobs": top})
}

#[test]
fn a_grade_has_the_probabilities_of_its_token() {
    let content = "{\"reason\": \"é\", \"score\": 4}";
    let (before, after) = content.split_once('4').unwrap();
    let top = [("4", -0.5_f64), ("5", -1.5), (" 5", -3.0), ("five", -2.0), ("7", -4.0)];
    let mut entries = vec![token(before, -0.1, &[]), token("4", -0.5, &top), token(after, 0.0, &[])];
    let family = PromptFamily::new(
        "grade",
        Task::Single(GradeConvention::Json),
        PromptTemplate::new(Prompt::user("{response}")).unwrap(),
        Scale::integers(1, 5).unwrap(),
        ("", ""),
        9,
    )
    .unwrap();
    let grade = |entries: &[Value], top_log_probs| {
        let answer = asked(200, with_log_probs(content, json!(entries)), &generation(&[], top_log_probs), None);
        let Outcome::Read(reading) = answer.result.unwrap() else { panic!("read") };
        family.grade_distribution(&reading.generated.unwrap())
    };
    let (distribution, mass) = grade(&entries, 5).unwrap();
    let (four, five) = ((-0.5_f64).exp(), (-1.5_f64).exp() + (-3.0_f64).exp());
    assert!((mass - four - five).abs() < 1e-6, "{mass}");
    let p = distribution.probabilities();
    assert!((p[3] - four / (four + five)).abs() < 1e-6 && p[..3] == [0.0; 3], "{p:?}");
    assert_eq!(grade(&entries, 0), None, "not asked for");
    // The written token counts although it is not among the alternatives.
    entries[1] = token("4", -3.0, &top[1..2]);
    let (distribution, _) = grade(&entries, 5).unwrap();
    assert!(distribution.probabilities()[3] > 0.0);
    // Two tokens of one spelling are one grade; the written one counts once.
    for written in [-1.0, -2.0] {
        entries[1] = token("4", written, &[("4", -1.0), ("4", -2.0), ("5", -1.5)]);
        let (_, mass) = grade(&entries, 5).unwrap();
        let all: f64 = [-1.0_f64, -2.0, -1.5].map(f64::exp).iter().sum();
        assert!((mass - all).abs() < 1e-6, "{written}: {mass}");
    }
    // A grade that is not a token of its own, and tokens that are not the text's.
    assert_eq!(grade(&[token(content, -0.1, &[])], 5), None);
    assert_eq!(grade(&entries[1..], 5), None);
    assert_eq!(grade(&[], 5), None);
}

#[test]
fn characters_of_several_tokens_and_stop_texts_keep_places_right() {
    let part = |bytes: &[u8]| json!({"token": "\u{FFFD}", "logprob": -1.0, "bytes": bytes, "top_logprobs": [{"token": "e", "logprob": -2.0}]});
    let entries = json!([part(&[0xC3]), part(&[0xA9]), token("4]]", 0.0005, &[])]);
    let answer = asked(200, with_log_probs("é4", entries), &generation(&["]]"], 1), None);
    let Outcome::Read(reading) = answer.result.unwrap() else { panic!("read") };
    let found = reading.generated.unwrap().alternatives;
    let places: Vec<(usize, usize)> = found.iter().map(|token| (token.start, token.end)).collect();
    assert_eq!(places, [(0, 1), (1, 2), (2, 3)]);
    assert_eq!((&found[0].top, &found[2].top), (&vec![("e".to_owned(), -2.0)], &vec![("4]]".to_owned(), 0.0)]));
}

/// Whatever a service shows for the probabilities of its tokens: of those that are null there are none, and what is a lie costs the answer.
#[test]
fn probabilities_that_are_none_are_passed_over_or_lies() {
    let entry = |log_prob: Value, top: Value| json!([{"token": "4", "logprob": log_prob, "top_logprobs": top}]);
    let two = |log_prob: Value| json!([{"token": "4", "logprob": -0.1}, {"token": "5", "logprob": log_prob}]);
    for (entries, alternatives) in [
        (entry(json!(-0.1), two(json!(-3))), Some(1)),
        (entry(json!(-0.1), Value::Null), Some(1)),
        (entry(Value::Null, two(json!(-3))), Some(0)),
        (entry(json!(-0.1), two(Value::Null)), Some(0)),
        (entry(json!(-0.1), json!([null])), Some(0)),
        (json!([null]), Some(0)),
        (Value::Null, Some(0)),
        (entry(json!(3.0), json!([])), None),
        (entry(json!("x"), json!([])), None),
        (entry(json!(-1.0), two(json!("x"))), None),
        (json!([{"token": "4"}]), None),
        (json!([{"token": 4, "logprob": -1.0}]), None),
        (json!([{"token": "4", "logprob": -1.0, "bytes": [300]}]), None),
        (json!("4"), None),
    ] {
        let answer = asked(200, with_log_probs("4", entries.clone()), &generation(&[], 1), None);
        assert_eq!(answer.is_transient, alternatives.is_none(), "{entries}");
        let found = answer.result.ok().map(|outcome| match outcome {
            Outcome::Read(reading) => reading.generated.map_or(0, |generated| generated.alternatives.len()),
            Outcome::Unscored(unscored) => panic!("{unscored}"),
        });
        assert_eq!(found, alternatives, "{entries}");
    }
    let none = asked(200, reply(json!("4"), "stop"), &generation(&[], 1), None);
    assert_eq!(text(none).0, "4");
}
