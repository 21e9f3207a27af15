//! The answers of `judge serve`, and what it refuses.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::thread;

use judge_core::Runner;
use judge_core::decision::{DecisionItem, DecisionJudge, DecisionSettings};
use judge_models::{LoadOptions, Model};
use serde_json::{Map, Value, json};

use crate::program::{Desk, embedded_model, read_json, refused};
use crate::service::Service;

/// The embedded model with tokens for `Yes` and `No`, which it lacks, in place of its two rarest ones.
pub fn model_with_yes_and_no(folder: &Path) -> PathBuf {
    let path = folder.join("yes-and-no");
    fs::create_dir(&path).unwrap();
    tiny_judge::write(&path).unwrap();
    let file = path.join("tokenizer.json");
    let mut tokenizer = read_json(&file);
    let merges = tokenizer["model"]["merges"].as_array_mut().unwrap();
    let last = merges.len() - 2;
    let gone: Vec<String> = merges[last..]
        .iter()
        .map(|merge| match merge {
            Value::String(merge) => merge.replace(' ', ""),
            pair => [0, 1].map(|side| pair[side].as_str().unwrap()).concat(),
        })
        .collect();
    merges.truncate(last);
    merges.extend([json!(["Y", "es"]), json!(["N", "o"])]);
    let vocabulary = tokenizer["model"]["vocab"].as_object_mut().unwrap();
    for (old, new) in gone.iter().zip(["Yes", "No"]) {
        let id = vocabulary.remove(old).unwrap();
        vocabulary.insert(new.to_owned(), id);
    }
    fs::write(&file, tokenizer.to_string()).unwrap();
    path
}

/// A request, different for each number.
fn request(number: usize) -> Value {
    let state = match number % 3 {
        0 => json!(format!("Mail {number}: the parcel has not come. {}", "Please look. ".repeat(number % 7))),
        1 => json!({"mail": number, "text": "I want a refund, now!", "ä": null}),
        _ => json!([number, {"text": "Thank you."}]),
    };
    let mut questions = json!({
        "tone": {"type": "choice", "instructions": "What is the tone?",
            "criteria": {"calm": null, "angry": "Accuses", "joking": {"as": 1}}},
        "urgency": {"type": "score", "criteria": ["can wait", "this week", "today"]},
    });
    if number.is_multiple_of(2) {
        questions.as_object_mut().unwrap().remove("urgency");
    }
    json!({"state": state, "questions": questions})
}

/// What each of these requests is answered, by the judge itself and alone.
fn alone(path: &Path, requests: &[Value]) -> Vec<Value> {
    let model = Model::load(path, &LoadOptions::default()).unwrap();
    let judge = DecisionJudge::new(DecisionSettings::default(), &model).unwrap();
    let answer = |request: &Value| {
        let item: DecisionItem = serde_json::from_value(request.clone()).unwrap();
        let results = Runner::new(&model, vec![&judge]).collect([(0.into(), item.clone())]).unwrap();
        let answers: Map<String, Value> = item
            .questions
            .answers(&results[0].verdicts[0])
            .unwrap()
            .into_iter()
            .map(|answered| (answered.name, serde_json::to_value(answered.answer.unwrap()).unwrap()))
            .collect();
        let rounds = results[0].rounds(0);
        let tokens: usize = rounds.outcomes().map(|outcome| outcome.reading().unwrap().prompt_tokens.unwrap()).sum();
        let name = path.file_name().unwrap().to_str().unwrap();
        json!({"model": name, "answers": answers, "usage": {"input_tokens": tokens, "output_tokens": 0}})
    };
    requests.iter().map(answer).collect()
}

#[test]
fn a_hundred_requests_at_once_get_the_bits_that_each_gets_alone() {
    let requests: Vec<Value> = (0..100).map(request).collect();
    let expected = alone(&embedded_model(), &requests);
    let service = Service::start(&["--quiet"]);
    let start = Barrier::new(requests.len());
    thread::scope(|scope| {
        // From the last to the first, in whatever order they come through.
        for (request, expected) in requests.iter().zip(&expected).rev() {
            let (service, start) = (&service, &start);
            scope.spawn(move || {
                start.wait();
                let reply = service.post("/v1/systemone", request);
                assert_eq!((reply.status, &reply.json()), (200, expected), "{request}");
            });
        }
    });
    let questions: usize = requests.iter().map(|request| request["questions"].as_object().unwrap().len()).sum();
    let tokens: u64 = expected.iter().map(|answer| answer["usage"]["input_tokens"].as_u64().unwrap()).sum();
    assert_eq!(service.metric("judge_questions_total"), questions as f64);
    assert_eq!(service.metric("judge_input_tokens_total"), tokens as f64);
    assert_eq!(service.metric("judge_requests_waiting"), 0.0);
    assert_eq!(service.metric(r#"judge_requests_total{route="/v1/systemone",status="200"}"#), 100.0);
    for end in ["bucket{route=\"/v1/systemone\",le=\"+Inf\"}", "count{route=\"/v1/systemone\"}"] {
        assert_eq!(service.metric(&format!("judge_request_seconds_{end}")), 100.0);
    }
}

// https://github.com/huggingface/datasets/issues/8365
#[test]
fn whole_numbers_of_a_state_stand_in_the_prompt_as_they_are() {
    let folder = &Desk::new();
    let path = model_with_yes_and_no(folder);
    let service = Service::start(&["--quiet", "--model", path.to_str().unwrap()]);
    let ask = |state: &str| {
        let body = format!(
            r#"{{"state": {state}, "questions": {{"q": {{"type": "noul", "instructions": "Is it large?"}}}}}}"#
        );
        service.send(&Service::request("POST", "/v1/systemone", "", body.as_bytes())).json()
    };
    let number = ask(r#"{"a":12345678901234567890123}"#);
    assert!(number["answers"]["q"]["noul"].is_number(), "{number}");
    assert_eq!(number["answers"], ask(r#""{\"a\":12345678901234567890123}""#)["answers"]);
    assert_ne!(number["answers"], ask(r#"{"a":12345678901234567890124}"#)["answers"], "the last digit counts");
}

#[test]
fn both_standards_give_the_same_probabilities() {
    let folder = &Desk::new();
    let path = model_with_yes_and_no(folder);
    let service = Service::start(&["--quiet", "--model", path.to_str().unwrap(), "--name", "ours", "--label-mass"]);
    let state = json!([{"role": "user", "content": "I want a refund, now!"}]);
    let named = service
        .post(
            "/v1/systemone",
            &json!({"model": "ours", "state": state, "questions": {
                "refund": {"type": "noul", "instructions": "Is a refund asked for?"},
                "tone": {"type": "choice", "instructions": "What is the tone?",
                    "criteria": {"calm": null, "true": "Accuses", "true (boolean)": null}},
                "urgency": {"type": "score", "instructions": "How urgent?\n[today: the 3rd]", "criteria": ["can wait", "urgent: today"]},
            }}),
        )
        .json();
    let reply = service.post(
        "/v1/decisions",
        &json!({"model": "ours", "input": [{"type": "message", "role": "user",
                "content": [{"type": "input_text", "text": "I want a refund, now!"}]}],
            "safety_identifier": "someone", "questions": [
                {"type": "predicate", "name": "refund", "instructions": "Is a refund asked for?"},
                {"type": "choice", "instructions": [{"type": "input_text", "text": "What is the tone?"}],
                 "choices": [{"value": "calm"}, {"value": "true", "description": "Accuses"}, {"value": true}]},
                {"type": "score", "name": "urgency",
                 "instructions": [{"type": "input_text", "text": "How urgent?"}, {"type": "input_text", "text": "[today: the 3rd]"}],
                 "levels": [{"label": "can wait"}, {"label": "urgent", "description": "today"}]},
            ]}),
    );
    let listed = reply.json();
    assert_eq!(reply.status, 200, "{listed}");
    let (answers, masses) = (&named["answers"], &named["label_mass"]);
    let p = |question: &str, option: &str| answers[question]["probabilities"][option].clone();
    assert_eq!(
        listed["answers"],
        json!([
            {"type": "predicate", "name": "refund", "probability": answers["refund"]["noul"], "label_mass": masses["refund"]},
            {"type": "choice", "name": null, "confidence": answers["tone"]["confidence"], "label_mass": masses["tone"],
             "choice": match answers["tone"]["choice"].as_str().unwrap() { "true (boolean)" => json!(true), text => json!(text) },
             "probabilities": [
                {"value": "calm", "probability": p("tone", "calm")}, {"value": "true", "probability": p("tone", "true")},
                {"value": true, "probability": p("tone", "true (boolean)")},
            ]},
            {"type": "score", "name": "urgency", "score": answers["urgency"]["score"], "confidence": answers["urgency"]["confidence"],
             "label_mass": masses["urgency"], "probabilities": [
                {"value": 0, "label": "can wait", "probability": p("urgency", "0")},
                {"value": 1, "label": "urgent", "probability": p("urgency", "1")},
            ]},
        ])
    );
    for mass in masses.as_object().unwrap().values() {
        assert!((0.0..=1.0).contains(&mass.as_f64().unwrap()));
    }
    let tokens = &named["usage"]["input_tokens"];
    assert_eq!(
        listed["usage"],
        json!({"input_tokens": tokens, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 0, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": tokens})
    );
    assert_eq!(listed["model"], "ours");
    // Calls of tools are part of the state, and their outputs belong to them.
    let input = json!([
        {"role": "developer", "content": "Sort mails."},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}", "id": null},
        {"type": "function_call_output", "call_id": "c1", "output": "late"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "It is late."}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Then?"}, {"type": "input_json", "data": {"days": 3}}]},
    ]);
    let state = json!([
        {"role": "developer", "content": "Sort mails."},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "late"},
        {"role": "assistant", "content": "It is late."},
        {"role": "user", "content": ["Then?", {"days": 3}]},
    ]);
    let of_openai = service
        .post("/v1/decisions", &json!({"input": input, "questions": [{"type": "predicate", "instructions": "Late?"}]}))
        .json();
    let of_state = service
        .post(
            "/v1/systemone",
            &json!({"state": state, "questions": {"late": {"type": "noul", "instructions": "Late?"}}}),
        )
        .json();
    assert_eq!(of_openai["answers"][0]["probability"], of_state["answers"]["late"]["noul"]);
    assert!(of_state["answers"]["late"]["noul"].is_f64(), "{of_state}");
}

#[test]
fn what_is_no_request_is_refused_with_its_place() {
    let service = Service::start(&["--quiet", "--max-body", "60000"]);
    let tone = json!({"type": "choice", "criteria": {"calm": null, "angry": null}});
    let many: Map<String, Value> = (0..65).map(|number| (number.to_string(), tone.clone())).collect();
    let options: Map<String, Value> = (0..10_000).map(|number| (number.to_string(), Value::Null)).collect();
    let odd =
        json!({"state": "", "questions": {"a": {"type": "yesno"}, "good": tone, "b": {"type": "noul", "criteria": 1}}});
    // The details' places with words of their messages.
    for (body, expected) in [
        (json!([1]), vec![("[\"body\"]", "expected an object, found a list")]),
        (json!({}), vec![("[\"body\",\"state\"]", "missing"), ("[\"body\",\"questions\"]", "missing")]),
        (
            json!({"state": 3, "questions": [], "stream": true, "model": 1}),
            vec![
                ("[\"body\",\"stream\"]", "unknown field `stream`"),
                ("[\"body\",\"model\"]", "expected text, found 1"),
                ("[\"body\",\"state\"]", "expected text, an object or a list, found 3"),
                ("[\"body\",\"questions\"]", "found an empty list"),
            ],
        ),
        (json!({"state": "", "questions": {}}), vec![("[\"body\",\"questions\"]", "expected 1 to 64, found 0")]),
        (json!({"state": "", "questions": many}), vec![("[\"body\",\"questions\"]", "found 65")]),
        (
            odd.clone(),
            vec![(
                "[\"body\",\"questions\"]",
                "question \"a\": expected `type` to be noul, choice or score, found \"yesno\"",
            )],
        ),
        (odd, vec![("[\"body\",\"questions\"]", "question \"b\": ")]),
    ] {
        let reply = service.post("/v1/systemone", &body);
        let json = reply.json();
        assert_eq!(reply.status, 422, "{json}");
        let details = json["detail"].as_array().unwrap();
        assert_eq!(details.len(), expected.len(), "{json}");
        for (detail, (loc, words)) in details.iter().zip(expected) {
            assert_eq!(detail["loc"].to_string(), loc, "{json}");
            assert!(detail["msg"].as_str().unwrap().contains(words) && detail["type"].is_string(), "{json}");
        }
    }
    // What is wrong is in no field.
    let of = |questions: Value| json!({"state": "", "questions": questions});
    for (body, status, words) in [
        (
            json!({"model": "gpt", "state": "", "questions": {"a": tone}}),
            404,
            "no model \"gpt\" here, only \"tiny-judge\"",
        ),
        (json!({"state": "", "questions": {"a": tone}, "assets": {"<image>": {}}}), 400, "no images"),
        (of(json!({"a": {"type": "noul"}})), 400, "question \"a\": "),
        (of(json!({"a": {"type": "choice", "criteria": options}})), 413, "longer than 60000 bytes"),
        (json!({"state": "x ".repeat(700), "questions": {"a": tone}}), 400, "question \"a\": "),
    ] {
        let reply = service.post("/v1/systemone", &body);
        let json = reply.json();
        assert_eq!(reply.status, status, "{json}");
        assert!(json["detail"].as_str().unwrap().contains(words), "{json}");
    }
    // No JSON, no UTF-8, too deep.
    let deep = "[".repeat(30_000);
    let nested = format!("{{\"state\": {}{}}}", "[".repeat(200), "]".repeat(200));
    for (body, words) in [
        (&b""[..], "not JSON"),
        (b"{\"state\": ", "not JSON"),
        (b"{\"state\": NaN}", "not JSON"),
        (b"{\"state\": \"\xff\"}", "not UTF-8 from byte 11 on"),
        (deep.as_bytes(), "nested too deep"),
        (nested.as_bytes(), "nested too deep"),
    ] {
        for (path, place) in [("/v1/systemone", "/detail"), ("/v1/decisions", "/error/message")] {
            let reply = service.send(&Service::request("POST", path, "", body));
            let json = reply.json();
            assert!(reply.status == 400 && json.pointer(place).unwrap().as_str().unwrap().contains(words), "{json}");
        }
    }
    // Ten thousand options are no crash where they fit into a body.
    let service = Service::start(&["--quiet"]);
    let reply = service.post("/v1/systemone", &of(json!({"a": {"type": "choice", "criteria": options}})));
    assert!(reply.status == 400 && reply.body.contains("10000 options"), "{reply:?}");
}

#[test]
fn a_list_of_questions_is_refused_in_openais_form() {
    let service = Service::start(&["--quiet"]);
    let of = |question: Value| json!({"input": "x", "questions": [question]});
    let choice = |choices: Value| of(json!({"type": "choice", "instructions": "?", "choices": choices}));
    let about = |input: Value| json!({"input": input, "questions": [{"type": "predicate", "instructions": "?"}]});
    let user = |content: Value| about(json!([{"role": "user", "content": content}]));
    let instructed = |instructions: Value| of(json!({"type": "predicate", "instructions": instructions}));
    let leveled = |levels: Value| of(json!({"type": "score", "instructions": "?", "levels": levels}));
    let refused = |body: Value, status: u16, param: Value, words: &str| {
        let reply = service.post("/v1/decisions", &body);
        let json = reply.json();
        assert_eq!((reply.status, &json["error"]["param"]), (status, &param), "{body}: {json}");
        assert!(json["error"]["message"].as_str().unwrap().contains(words), "{body}: {json}");
        assert_eq!(json["error"]["type"], "invalid_request_error");
    };
    let output = json!([{"type": "function_call_output", "call_id": "c", "output": ""}]);
    for (body, param, words) in [
        (json!({"input": "x"}), "questions", "questions: this field is missing"),
        (about(json!([])), "input", "at least one message, found an empty list"),
        (of(json!({"type": "noul"})), "questions[0].type", "expected predicate, choice or score, found \"noul\""),
        (of(json!({"type": "predicate"})), "questions[0].instructions", "missing"),
        (of(json!({"type": "predicate", "levels": []})), "questions[0].levels", "unknown field"),
        (instructed(json!([])), "questions[0].instructions", "at least one part"),
        (instructed(json!([{"type": "output_text"}])), "questions[0].instructions[0].type", "input_text"),
        (of(json!("x")), "questions[0]", "expected a question"),
        (choice(json!([{"value": "a"}])), "questions[0].choices", "expected 2 to 255, found 1"),
        (choice(json!([{"value": "a"}, {"value": "a"}])), "questions[0].choices[1].value", "appears twice"),
        (choice(json!([{"value": "a"}, {"value": 1}])), "questions[0].choices[1].value", "found 1"),
        (choice(json!([{"value": "a"}, "b"])), "questions[0].choices[1]", "an object"),
        (leveled(json!([{"description": "d"}])), "questions[0].levels[0].label", "missing"),
        (user(json!(3)), "input[0].content", "found 3"),
        (about(json!([{"role": "tool", "content": ""}])), "input[0].role", "user"),
        (about(output), "input[0].call_id", "a call before it"),
        (about(json!([{"type": "reasoning"}])), "input[0].type", "reasoning"),
    ] {
        refused(body, 422, json!(param), words);
    }
    let image = user(json!([{"type": "input_image", "image_url": "https://x"}]));
    refused(image, 400, Value::Null, "no images");
    let mut other = instructed(json!("?"));
    refused(other.clone(), 400, Value::Null, "question \"0\"");
    other["model"] = json!("gpt");
    refused(other, 404, Value::Null, "no model");
}

#[test]
fn other_routes_keys_and_options() {
    let folder = &Desk::new();
    let file = folder.join("key");
    // With a byte-order mark, as editors of Windows write it.
    fs::write(&file, "\u{feff}s3cret\n").unwrap();
    let service = Service::start(&["--key-file", file.to_str().unwrap()]);
    let body = format!("\u{feff}{}", request(0));
    let with = |key: &str| service.send(&Service::request("POST", "/v1/systemone", key, body.as_bytes()));
    for wrong in ["", "Authorization: Bearer s3cre\r\n", "Authorization: Basic s3cret\r\n", "Authorization: s3cret\r\n"]
    {
        let reply = with(wrong);
        assert!(reply.status == 401 && reply.head.contains("www-authenticate: bearer"), "{reply:?}");
        assert!(reply.json()["detail"].as_str().unwrap().contains("Authorization"));
    }
    assert_eq!(with("Authorization: Bearer s3cret\r\n").status, 200);
    assert_eq!(service.get("/v1/models").json()["error"]["type"], "authentication_error");
    let line = service.says("POST /v1/systemone 200 ");
    assert!(line.contains("ms questions=1 tokens="), "{line}");
    // What watches a service has no key.
    assert_eq!(service.get("/health").json(), json!({"status": "ok"}));
    assert_eq!(service.metric(r#"judge_requests_total{route="/v1/systemone",status="401"}"#), 4.0);
    drop(service);

    let service = Service::start(&["--quiet"]);
    let models = service.get("/v1/models").json();
    assert_eq!((&models["object"], &models["data"][0]["id"]), (&json!("list"), &json!("tiny-judge")));
    assert!(models["data"][0]["created"].as_u64().unwrap() > 1_700_000_000);
    let reply = service.get("/v1/chat/completions");
    assert!(reply.status == 404 && reply.json()["error"]["message"].as_str().unwrap().contains("/v1/systemone"));
    let reply = service.get("/v1/systemone");
    assert!(reply.status == 405 && reply.head.contains("allow: post"), "{reply:?}");
    assert!(reply.json()["detail"].as_str().unwrap().contains("answers POST, not GET"));
    assert_eq!(service.metric(r#"judge_requests_total{route="other",status="404"}"#), 1.0);

    for (args, words) in [
        (&["--raw-prompt"][..], "--raw-prompt has no effect"),
        (&["--limit", "3"], "--limit has no effect"),
        (&["--queue", "0"], "expected a whole number from 1"),
        (&["--name", ""], "--name: expected a name"),
        (&["--key-file", "Cargo.toml"], "expected one key"),
    ] {
        refused("serve", Path::new(env!("CARGO_MANIFEST_DIR")), args, 2, &[words]);
    }
    let taken = service.address.port().to_string();
    let says = format!("cannot listen on 127.0.0.1:{taken}");
    refused("serve", folder, &["--port", &taken, "--model", "nowhere"], 1, &[&says]);
    let open = ["--host", "0.0.0.0", "--port", "0", "--model", "nowhere"];
    refused("serve", folder, &open, 1, &["without --key-file everybody is answered"]);
    refused("serve", folder, &["--host", "[127.0.0.1]", "--port", "0", "--model", "nowhere"], 1, &["nowhere"]);
}
