//! A model behind a service, before servers that are honest, slow, broken, overloaded or lying. A binary of its own: it needs the feature
//! `api`.

mod server;

use std::collections::BTreeMap;
use std::error::Error as _;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use judge_core::testing::check_text_model;
use judge_core::{
    Outcome, Prompt, Reason, Request, Runner, TextModel, Want,
    model::BackboneError,
    prompted::{PromptFamily, WrittenJudge},
    reading::Finish,
    request::{Generation, Sampling},
};
use judge_hub::api::{ApiError, ApiKey, ApiModel, ApiProblem, ApiSettings};
use serde_json::{Value, json};
use server::{Reply, Seen, Server, completion};

const KEY: &str = "sk-very-secret-key";

fn settings(server: &Server) -> ApiSettings {
    ApiSettings {
        base_url: server.base_url.clone(),
        model: "test-model".into(),
        key: Some(ApiKey::new(KEY).unwrap()),
        backoff: Duration::from_millis(1),
        max_backoff: Duration::from_millis(2),
        max_attempts: 3,
        ..ApiSettings::default()
    }
}

fn model(server: &Server) -> ApiModel {
    ApiModel::new(settings(server)).unwrap()
}

fn asks(prompts: &[impl AsRef<str>]) -> Vec<Request> {
    let generation = Generation { max_new_tokens: 9, ..Generation::default() };
    prompts.iter().map(|prompt| ask(prompt.as_ref(), generation.clone())).collect()
}

fn ask(prompt: &str, generation: Generation) -> Request {
    Request { prompt: Prompt::user(prompt), want: Want { generate: Some(generation), ..Want::default() } }
}

/// The outcomes, by request.
fn outcomes(model: &ApiModel, requests: &[Request]) -> Result<BTreeMap<usize, Outcome>, BackboneError> {
    let mut outcomes = BTreeMap::new();
    model.run(requests, &mut |index, outcome| {
        assert!(outcomes.insert(index, outcome).is_none(), "answered twice");
        ControlFlow::Continue(())
    })?;
    Ok(outcomes)
}

/// The text of an answer, or why there is none.
fn text(outcome: Outcome) -> String {
    match outcome {
        Outcome::Read(reading) => reading.generated.map(|generated| generated.text).unwrap_or_default(),
        Outcome::Unscored(unscored) => unscored.reason.to_string(),
    }
}

/// The texts of the answers, by request.
fn texts(model: &ApiModel, requests: &[Request]) -> Result<BTreeMap<usize, String>, BackboneError> {
    Ok(outcomes(model, requests)?.into_iter().map(|(index, outcome)| (index, text(outcome))).collect())
}

/// A server that answers the first `requests` requests with what `bad` makes, and all others with their prompts.
fn bad_at_first(requests: usize, bad: impl Fn() -> Reply + Send + Sync + 'static) -> Server {
    Server::start(move |number, seen| if number < requests { bad() } else { Reply::text(seen.prompt()) })
}

/// The texts of three rows from a service that answers the second with what `odd` makes, and how many requests it got.
fn beside_an_odd_row(odd: impl Fn() -> Reply + Send + Sync + 'static) -> (Vec<String>, usize) {
    let server = Server::start(move |_, seen| if seen.prompt() == "odd" { odd() } else { Reply::text(seen.prompt()) });
    let found = texts(&model(&server), &asks(&["a", "odd", "b"])).unwrap();
    (found.into_values().collect(), server.requests())
}

/// What ended a run, and all that it says with its causes.
fn problem(model: &ApiModel) -> (ApiProblem, String) {
    let error = texts(model, &asks(&["a"])).unwrap_err();
    let shown = format!("{error} {error:?} {:?}", error.source().map(ToString::to_string));
    assert!(!shown.contains("very-secret"), "{shown}");
    let BackboneError::Failed { request: 0, source } = error else { panic!("{error}") };
    match *source.downcast::<ApiError>().unwrap() {
        ApiError::Service { url, problem } => {
            assert!(url.ends_with("/v1/chat/completions"), "{url}");
            (problem, shown)
        }
        other => panic!("{other}"),
    }
}

/// Writes the prompt's length in letters, and keeps what is asked of an honest service.
fn honest(_: usize, seen: &Seen) -> Reply {
    let full = "abcdefghijklmnopqrstuvwxyz"[..seen.prompt().len().clamp(1, 26)].to_owned();
    let stops = seen.body["stop"].as_array().cloned().unwrap_or_default();
    let cut = stops.iter().filter_map(|stop| full.find(stop.as_str()?)).min();
    Reply::text(&full[..cut.unwrap_or(full.len())])
}

#[test]
fn an_honest_service_keeps_the_contract() {
    let server = Server::start(honest);
    let model = model(&server);
    check_text_model(&model, &[Prompt::user("one"), Prompt::user("three"), Prompt::user("a")]).unwrap();
    let seen = server.seen();
    assert!(seen.iter().all(|seen| seen.line == "POST /v1/chat/completions"));
    assert!(seen.iter().all(|seen| seen.header("authorization") == Some(&format!("Bearer {KEY}"))));
    assert!(seen.iter().all(|seen| seen.header("content-type") == Some("application/json")));
    assert!(!format!("{:?}", settings(&server)).contains("secret"));
    assert_eq!(
        (model.identity().name.as_str(), model.identity().revision.as_deref()),
        ("test-model", Some("test-model-1"))
    );
}

#[test]
fn without_a_key_none_is_sent() {
    let server = Server::start(honest);
    let model = ApiModel::new(ApiSettings { key: None, ..settings(&server) }).unwrap();
    let found = texts(&model, &asks(&["abc", ""])).unwrap();
    assert_eq!(found.into_values().collect::<Vec<_>>(), ["abc", Reason::EmptyPrompt.as_str()]);
    assert_eq!(server.seen()[0].header("authorization"), None);
    let usage = model.usage();
    assert_eq!((usage.requests, usage.retries, usage.prompt_tokens, usage.completion_tokens), (1, 0, 10, 5));
}

#[test]
fn requests_are_sent_together_up_to_the_bound() {
    // Nobody is answered until the bound is reached, or for a while.
    let (waiting, changed) = (Mutex::new(0), Condvar::new());
    let server = Server::start(move |_, seen| {
        let mut here = waiting.lock().unwrap();
        *here += 1;
        changed.notify_all();
        let until = Instant::now() + Duration::from_secs(5);
        // From the ninth on there are not always three of them left.
        while *here < 3 && Instant::now() < until {
            here = changed.wait_timeout(here, Duration::from_millis(50)).unwrap().0;
        }
        Reply::text(seen.prompt())
    });
    let model = ApiModel::new(ApiSettings { concurrency: 3, ..settings(&server) }).unwrap();
    let prompts: Vec<String> = (0..12).map(|i| format!("p{i}")).collect();
    let found = texts(&model, &asks(&prompts)).unwrap();
    assert!(found.iter().all(|(&index, text)| *text == prompts[index]), "{found:?}");
    assert_eq!((server.most_at_once(), server.requests()), (3, 12));
}

#[test]
fn results_do_not_depend_on_the_order_of_the_answers() {
    // The first request is answered once the client has given the others' outcomes.
    let given = Arc::new((Mutex::new(0), Condvar::new()));
    let shared = given.clone();
    let server = Server::start(move |_, seen| {
        let (given, changed) = &*shared;
        let mut count = given.lock().unwrap();
        while seen.prompt() == "first" && *count < 3 {
            count = changed.wait(count).unwrap();
        }
        Reply::text(&seen.prompt().to_uppercase())
    });
    let mut order = Vec::new();
    model(&server)
        .run(&asks(&["first", "b", "c", "d"]), &mut |index, outcome| {
            order.push((index, outcome.reading().unwrap().text().unwrap().to_owned()));
            *given.0.lock().unwrap() += 1;
            given.1.notify_all();
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(order.last(), Some(&(0, "FIRST".to_owned())));
    order.sort();
    let expected = ["FIRST", "B", "C", "D"].map(str::to_owned);
    assert_eq!(order, expected.into_iter().enumerate().collect::<Vec<_>>());
}

#[test]
fn what_fails_is_sent_again() {
    let cases: [fn() -> Reply; 6] = [
        || Reply::error(500, "oh"),
        || Reply::error(408, "slow"),
        || Reply::error(409, "busy"),
        || Reply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"choices\": [{".to_vec()),
        || Reply::Bytes(Vec::new()),
        || Reply::Full(200, Vec::new(), "<html>busy</html>".into()),
    ];
    for (case, bad) in cases.into_iter().enumerate() {
        let server = bad_at_first(2, bad);
        let model = model(&server);
        assert_eq!(texts(&model, &asks(&["good"])).unwrap()[&0], "good", "case {case}");
        assert_eq!((model.usage().requests, model.usage().retries), (3, 2), "case {case}");
        // The same body each time: nothing is asked otherwise because it failed.
        let bodies: Vec<Value> = server.seen().into_iter().map(|seen| seen.body).collect();
        assert!(bodies.iter().all(|body| *body == bodies[0]), "case {case}");
    }
}

#[test]
fn a_slow_service_is_asked_again() {
    let server = bad_at_first(1, || Reply::Hang);
    let slow = ApiSettings { timeout: Duration::from_millis(1500), ..settings(&server) };
    assert_eq!(texts(&ApiModel::new(slow.clone()).unwrap(), &asks(&["good"])).unwrap()[&0], "good");
    let begun = b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"choices\": [{";
    let never: [fn(&[u8]) -> Reply; 2] = [|_| Reply::Hang, |begun| Reply::Stall(begun.to_vec())];
    for reply in never {
        let server = Server::start(move |_, _| reply(begun));
        let (base_url, timeout) = (server.base_url.clone(), Duration::from_millis(200));
        let impatient = ApiSettings { base_url, timeout, max_attempts: 2, ..slow.clone() };
        let shown = unanswered(&ApiModel::new(impatient).unwrap());
        assert_eq!(shown, "2 attempts failed, the last one with: no answer within 0.2 s");
    }
}

#[test]
fn a_throttled_client_waits_as_long_as_it_is_asked_to() {
    let server = bad_at_first(1, || Reply::Full(429, vec![("Retry-After", "0.4".into())], "{}".into()));
    let before = Instant::now();
    let model = model(&server);
    let found = texts(&model, &asks(&["a", "b"])).unwrap();
    assert!(before.elapsed() >= Duration::from_millis(400), "{:?}", before.elapsed());
    assert_eq!((found[&0].as_str(), found[&1].as_str(), model.usage().retries), ("a", "b", 1));

    let server = Server::start(|_, _| {
        Reply::Full(429, vec![("Retry-After", "86400".into())], "{\"error\": \"tomorrow\"}".into())
    });
    let (problem, shown) = problem(&self::model(&server));
    assert!(matches!(problem, ApiProblem::RetryAfter { .. }), "{problem}");
    assert!(shown.contains("asks to wait 86400 s, more than the 600 s") && shown.contains("tomorrow"), "{shown}");
    assert_eq!(server.requests(), 1);
}

/// Why a service gave the one row of a run no answer.
fn unanswered(model: &ApiModel) -> String {
    let found = outcomes(model, &asks(&["a"])).unwrap().remove(&0);
    let Some(Outcome::Unscored(unscored)) = found else { panic!("answered") };
    assert_eq!(unscored.reason, Reason::NoAnswer);
    unscored.detail
}

#[test]
fn an_answer_that_never_ends_is_not_read_to_its_end() {
    let server = Server::start(|_, _| Reply::text(&"x".repeat(100_000)));
    let small = ApiSettings { max_response_bytes: 10_000, max_attempts: 1, ..settings(&server) };
    let shown = unanswered(&ApiModel::new(small).unwrap());
    assert_eq!(shown, "the only attempt failed with: the answer is longer than 10000 bytes");
}

/// The second of two rows is refused for a reason that is not its own; the first one's answer does not come before.
#[test]
fn an_error_that_ends_a_run_names_its_row() {
    let server = Server::start(|_, seen| match seen.prompt().contains("odd") {
        true => Reply::error(401, "who are you"),
        false => Reply::Hang,
    });
    let model = model(&server);
    let judge = WrittenJudge::new(PromptFamily::built_in_on("single-json", Some(5)).unwrap());
    let items = ["even", "odd"].map(|name| (name.into(), [("instruction", "?"), ("response", name)]));
    let error = Runner::new(&model, vec![&judge]).collect(items).unwrap_err();
    let judge_core::Error::Item { id, source, .. } = &error else { panic!("{error}") };
    assert_eq!(*id, judge_core::ItemId::from("odd"), "{error}");
    let Some(BackboneError::Failed { request: 1, source }) = source.downcast_ref() else { panic!("{error}") };
    assert!(source.is::<ApiError>() && error.to_string().contains("status 401: \"who are you\""), "{error}");
}

/// An odd answer to one row, and good ones to the others.
#[test]
fn one_odd_answer_costs_its_row_alone() {
    let message = |message: Value, finish: &str| {
        let mut body = completion("");
        body["choices"][0]["message"] = message;
        body["choices"][0]["finish_reason"] = json!(finish);
        body.to_string()
    };
    let parts = json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "o"}, {"type": "text", "text": "k"}]});
    let (null, unscored) = (json!({"content": null, "reasoning_content": "hm"}), Reason::NoAnswer.as_str());
    for (status, body, expected, requests) in [
        (200, message(null.clone(), "length"), "", 3),
        (200, message(json!({"reasoning": "hm"}), "length"), "", 3),
        (200, message(null, "stop"), "", 3),
        (200, message(json!({"content": null}), "stop"), unscored, 5),
        (200, message(json!({"content": "half"}), "error"), unscored, 5),
        (
            403,
            json!({"error": {"message": "flagged", "metadata": {"reasons": ["violence"]}}}).to_string(),
            Reason::Refused.as_str(),
            3,
        ),
        (200, message(json!({"content": null, "tool_calls": []}), "tool_calls"), unscored, 3),
        (200, message(Value::Null, "content_filter"), Reason::Refused.as_str(), 3),
        (200, message(json!({"content": "ok", "refusal": ""}), "stop"), "ok", 3),
        (200, message(parts, "stop"), "ok", 3),
        (200, json!({"choices": null}).to_string(), unscored, 5),
        (200, json!({"error": {"message": "upstream timed out", "code": 504}}).to_string(), unscored, 5),
        (200, completion("half").to_string().replace("half", "\\ud83d \\ud83d\\ude00 NaN"), "\u{fffd} 😀 NaN", 3),
        (200, completion("ok").to_string().replacen('{', "{\"took\": NaN, \"left\": [-Infinity], ", 1), "ok", 3),
        (400, json!({"error": {"message": "string contains null character"}}).to_string(), unscored, 3),
        (422, json!({"detail": "no"}).to_string(), unscored, 3),
        (500, json!({"error": {"message": "CUDA error"}}).to_string(), unscored, 5),
    ] {
        let odd = body.clone();
        let (found, asked) = beside_an_odd_row(move || Reply::Full(status, Vec::new(), odd.clone()));
        assert_eq!(found, ["a", expected, "b"], "{status} {body}");
        assert_eq!(asked, requests, "{status} {body}");
    }
}

/// https://github.com/vectorize-io/hindsight/pull/1355, https://github.com/reactor/reactor-netty/issues/1764: a connection that is closed on
/// one prompt ended the run at each try. https://github.com/openclaw/openclaw/pull/111353: so did an answer of 150 headers, and one with a
/// header of 70,000 bytes.
#[test]
fn an_answer_that_breaks_off_costs_its_row_alone() {
    let body = completion("ok").to_string();
    let head = |headers: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    let many: String = (0..150).map(|i| format!("X-H{i}: y\r\n")).collect();
    let long = format!("X-Long: {}\r\n", "y".repeat(70_000));
    for (bytes, expected) in [
        (String::new(), "no complete answer"),
        (head("")[..20].to_owned(), "no complete answer"),
        (head("") + &body[..40], "no complete answer"),
        (head(&many) + &body, "too many headers"),
        (head(&long) + &body, "response header is too big"),
    ] {
        let odd = bytes.clone();
        let odd = move || Reply::Bytes(odd.clone().into_bytes());
        let (found, asked) = beside_an_odd_row(odd.clone());
        assert_eq!(found, ["a", Reason::NoAnswer.as_str(), "b"], "{bytes}");
        assert_eq!(asked, 5, "{bytes}");
        let server = Server::start(move |_, _| odd());
        assert!(unanswered(&model(&server)).contains(expected), "{bytes}");
    }
}

/// A service that fails at every row ends the run before it was asked about all of them.
#[test]
fn ten_rows_in_a_row_without_an_answer_end_the_run() {
    let prompts: Vec<String> = (0..50).map(|i| i.to_string()).collect();
    for (said, last) in [(true, "status 400: \"no\""), (false, "the only attempt failed with: no complete answer")] {
        let server = Server::start(move |_, _| if said { Reply::error(400, "no") } else { Reply::Bytes(Vec::new()) });
        let one = ApiSettings { concurrency: 1, max_attempts: 1, ..settings(&server) };
        let error = texts(&ApiModel::new(one).unwrap(), &asks(&prompts)).unwrap_err();
        let shown = error.source().unwrap().to_string();
        assert!(shown.contains(&format!("10 requests in a row got no answer, the last one with: {last}")), "{shown}");
        assert_eq!(server.requests(), 10);
    }
    // An answer between them starts the count again.
    let server = Server::start(
        |number, seen| if number % 5 == 0 { Reply::text(seen.prompt()) } else { Reply::error(400, "no") },
    );
    let one = ApiSettings { concurrency: 1, ..settings(&server) };
    assert_eq!(texts(&ApiModel::new(one).unwrap(), &asks(&prompts)).unwrap().len(), 50);
}

#[test]
fn a_redirect_is_not_followed() {
    let elsewhere = Server::start(honest);
    let target = elsewhere.base_url.clone();
    for status in [301, 302, 303, 307, 308] {
        let to = format!("{target}/chat/completions");
        let server = Server::start(move |_, _| Reply::Full(status, vec![("Location", to.clone())], String::new()));
        let (problem, shown) = problem(&model(&server));
        assert!(matches!(problem, ApiProblem::Redirect { status: found, .. } if found == status), "{problem}");
        assert!(shown.contains(&target), "{shown}");
    }
    assert_eq!(elsewhere.requests(), 0);
}

#[test]
fn an_answer_that_a_judge_cannot_use_is_kept_and_not_asked_for_again() {
    let server = Server::start(|_, seen| {
        let score = if seen.prompt().contains("RIGHT") { "4" } else { "7" };
        Reply::text(&format!("{{\"reason\": \"so\", \"score\": {score}}}"))
    });
    let model = model(&server);
    let judge = WrittenJudge::new(PromptFamily::built_in_on("single-json", Some(5)).unwrap());
    let items = ["RIGHT", "wrong"].map(|response| (response.into(), [("instruction", "?"), ("response", response)]));
    let results = Runner::new(&model, vec![&judge]).collect(items).unwrap();
    assert_eq!(results[0].verdicts[0].value(), Some(4.0));
    let unscored = results[1].verdicts[0].unscored().unwrap();
    assert!(unscored.reason == Reason::OffScale && unscored.detail.contains("\\\"score\\\": 7"), "{unscored}");
    assert_eq!((server.requests(), model.usage().retries), (2, 0));
}

#[test]
fn a_run_that_is_cancelled_or_fails_does_not_wait_for_the_slow() {
    let server = Server::start(|_, seen| match seen.prompt() {
        "slow" => Reply::Hang,
        "wrong" => Reply::error(401, "no"),
        other => Reply::text(other),
    });
    let model = model(&server);
    let before = Instant::now();
    let mut calls = 0;
    model
        .run(&asks(&["slow", "good", "slow"]), &mut |index, _| {
            calls += 1;
            assert_eq!(index, 1);
            ControlFlow::Break(())
        })
        .unwrap();
    assert_eq!(calls, 1);
    assert!(texts(&model, &asks(&["slow", "wrong"])).is_err());
    assert!(before.elapsed() < Duration::from_secs(60), "the timeout is twice as long");
}

#[test]
fn requests_per_minute_space_requests() {
    let server = Server::start(honest);
    let model = ApiModel::new(ApiSettings { requests_per_minute: Some(600.0), ..settings(&server) }).unwrap();
    let before = Instant::now();
    texts(&model, &asks(&["a", "b", "c", "d"])).unwrap();
    assert!(before.elapsed() >= Duration::from_millis(300), "{:?}", before.elapsed());
}

#[test]
fn a_generation_is_sent_as_it_is_and_its_end_comes_back() {
    let server = Server::start(|_, seen| {
        let mut body = completion("abc");
        let reason = if seen.prompt() == "long" { "length" } else { "stop" };
        body["choices"][0]["finish_reason"] = json!(reason);
        Reply::json(200, &body)
    });
    let sampling = Sampling::Random { temperature: 0.7, top_k: None, top_p: None, seed: 5, stream: 0 };
    let drawn = Generation { sampling, stop: vec!["b".into()], ..Generation::default() };
    let requests = [ask("long", drawn.clone()), ask("short", drawn), asks(&["long"]).remove(0)];
    let found = outcomes(&model(&server), &requests).unwrap();
    let generated = found.values().map(|outcome| outcome.reading().unwrap().generated.clone().unwrap());
    let ends: Vec<_> = generated.map(|generated| (generated.text, generated.finish)).collect();
    let (cut, whole) = (("a".to_owned(), Finish::StopText), ("abc".to_owned(), Finish::Length));
    assert_eq!(ends, [cut.clone(), cut, whole]);
    let body = server.seen().into_iter().map(|seen| seen.body).find(|body| body.get("seed").is_some()).unwrap();
    assert_eq!((&body["seed"], &body["temperature"], &body["stop"]), (&json!(5), &json!(0.7), &json!(["b"])));
}
