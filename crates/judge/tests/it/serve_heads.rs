//! Requests as browsers, proxies and careless clients send them to `judge serve`.

use std::fs;
use std::io::Read;
use std::net::Shutdown;

use serde_json::{Value, json};

use crate::program::Desk;
use crate::service::{Reply, Service};

fn body() -> String {
    json!({"state": "x", "questions": {"a": {"type": "choice", "criteria": {"a": null, "b": null}}}}).to_string()
}

/// A request of exactly these headers.
fn of(headers: &str) -> Vec<u8> {
    let body = body();
    format!("POST /v1/systemone HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

// https://github.com/NousResearch/hermes-agent/pull/21939, https://github.com/gptme/gptme/pull/3322,
// https://github.com/Canonry/canonry/issues/1177
#[test]
fn pages_of_other_sites_reach_no_service_of_this_machine() {
    let open = Service::start(&["--quiet"]);
    let folder = &Desk::new();
    let file = folder.join("key");
    fs::write(&file, "s3cret").unwrap();
    let with_key = Service::start(&["--quiet", "--key-file", file.to_str().unwrap()]);
    let local = "Host: 127.0.0.1:8080\r\n";
    for (headers, status) in [
        (local.to_owned(), 200),
        // DNS rebinding: a name of another site that leads here.
        ("Host: evil.example:8080\r\n".to_owned(), 403),
        (format!("{local}Origin: http://evil.example\r\nContent-Type: text/plain\r\n"), 403),
        (format!("{local}Content-Type: text/plain\r\n"), 415),
    ] {
        let reply = open.send(&of(&headers));
        assert_eq!(reply.status, status, "{headers}: {reply:?}");
        assert!(status == 200 || reply.json()["detail"].is_string(), "{reply:?}");
        // No page knows the key.
        let reply = with_key.send(&of(&format!("{headers}Authorization: Bearer s3cret\r\n")));
        assert_eq!(reply.status, 200, "{headers}: {reply:?}");
    }
    // Nor does it read what there is.
    for path in ["/v1/models", "/metrics", "/health"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
        assert_eq!(open.send(request.as_bytes()).status, 403, "{path}");
    }
}

// https://github.com/enghitalo/vanilla/issues/103, https://github.com/MDA2AV/ioxide/issues/164
#[test]
fn a_client_that_sends_no_more_gets_its_answer() {
    let service = Service::start(&["--quiet"]);
    for version in ["HTTP/1.1", "HTTP/1.0"] {
        let request = String::from_utf8(of("Host: localhost\r\n")).unwrap().replace("HTTP/1.1", version);
        let stream = service.begin(request.as_bytes());
        stream.shutdown(Shutdown::Write).unwrap();
        let reply = Reply::read(stream);
        assert_eq!((reply.status, reply.json()["answers"].is_object()), (200, true), "{version}: {reply:?}");
    }
}

// https://github.com/FlashML-org/FreeToken/pull/108, https://github.com/Wei-Shaw/sub2api/issues/6931
#[test]
fn a_model_is_had_by_its_name() {
    let service = Service::start(&["--quiet", "--name", "ours/tiny"]);
    let listed = service.get("/v1/models").json();
    let one = service.get("/v1/models/ours/tiny");
    assert_eq!((one.status, one.json()), (200, listed["data"][0].clone()));
    let unread = service.get("/v1/models/%ff");
    assert_eq!((unread.status, &unread.json()["error"]["code"]), (400, &json!("invalid_path")), "{unread:?}");
    let other = service.get("/v1/models/gpt");
    assert_eq!((other.status, &other.json()["error"]["code"]), (404, &json!("model_not_found")), "{other:?}");
    assert_eq!(service.metric(r#"judge_requests_total{route="/v1/models",status="404"}"#), 1.0);
}

// https://github.com/brimdata/super/issues/2523, https://github.com/facet-rs/facet-json/issues/8
#[test]
fn a_name_that_appears_twice_is_refused_with_its_place() {
    let service = Service::start(&["--quiet"]);
    let post = |path: &str, body: &str| service.send(&Service::request("POST", path, "", body.as_bytes()));
    let question = r#"{"type": "choice", "criteria": {"x": null, "y": null}}"#;
    for (body, loc) in [
        (
            r#"{"state": "s", "questions": {"q": {"type": "choice", "criteria": {"x": "one", "x": "two"}}}}"#
                .to_owned(),
            json!(["body", "questions", "q", "criteria", "x"]),
        ),
        (
            format!(r#"{{"state": "s", "questions": {{"q": {question}, "q": {question}}}}}"#),
            json!(["body", "questions", "q"]),
        ),
        (format!(r#"{{"state": "s", "state": "t", "questions": {{"q": {question}}}}}"#), json!(["body", "state"])),
        (
            format!(r#"{{"state": [{{"a": 1, "a": 2}}], "questions": {{"q": {question}}}}}"#),
            json!(["body", "state", 0, "a"]),
        ),
    ] {
        let reply = post("/v1/systemone", &body);
        let json = reply.json();
        assert_eq!((reply.status, &json["detail"][0]["loc"]), (422, &loc), "{json}");
        assert!(json["detail"][0]["msg"].as_str().unwrap().contains("appears twice"), "{json}");
    }
    let reply = post("/v1/decisions", r#"{"input": "x", "questions": [{"type": "predicate", "type": "score"}]}"#);
    assert_eq!((reply.status, &reply.json()["error"]["param"]), (422, &json!("questions[0].type")));
}

#[test]
fn a_field_that_is_null_is_absent() {
    let service = Service::start(&["--quiet"]);
    let choice = json!({"type": "choice", "instructions": null, "criteria": {"a": null, "b": null}});
    let state = json!({"model": null, "state": "x", "questions": {"a": choice}, "assets": null});
    assert_eq!(service.post("/v1/systemone", &state).status, 200);
    let listed = json!({"model": null, "input": "x", "safety_identifier": null, "prompt_cache_key": null, "questions": [
        {"type": "choice", "name": null, "instructions": "?", "choices": [{"value": "a", "description": null}, {"value": "b"}]},
        {"type": "score", "instructions": "?", "levels": [{"label": "a", "description": null}, {"label": "b"}]}]});
    let reply = service.post("/v1/decisions", &listed);
    assert_eq!(reply.status, 200, "{reply:?}");
    // One that must be there is not.
    let reply = service.post("/v1/systemone", &json!({"state": null, "questions": {"a": choice}}));
    assert_eq!(reply.status, 422, "{reply:?}");
}

// https://github.com/K0M15/webserv/issues/41, https://github.com/encode/httpcore/issues/723
#[test]
fn a_body_that_is_announced_as_too_long_is_refused_at_once() {
    let service = Service::start(&["--quiet"]);
    for expect in ["Expect: 100-continue\r\n", ""] {
        let head = format!("POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\n{expect}Content-Length: 2000000\r\n\r\n");
        let mut stream = service.begin(head.as_bytes());
        // The answer comes, and the connection ends, before any of the body is sent.
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("HTTP/1.1 413 "), "{text}");
    }
    // One that is not waited for is answered nevertheless, whole.
    let reply = service.send(&Service::request("POST", "/v1/systemone", "", &vec![b' '; 4_000_000]));
    assert_eq!(reply.status, 413);
}

// https://github.com/btrask/stronglink/issues/69
#[test]
fn a_request_has_one_host_and_a_body_that_can_be_read() {
    let service = Service::start(&["--quiet"]);
    let chunked = |codings: &str| {
        let body = body();
        let head = "POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
        format!("{head}Transfer-Encoding: {codings}\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()).into_bytes()
    };
    for (request, status) in [
        (of(""), 400),
        (of("Host: localhost\r\nHost: localhost\r\n"), 400),
        (chunked("chunked"), 200),
        (chunked("gzip, chunked"), 501),
    ] {
        let reply: Reply = service.send(&request);
        assert_eq!(reply.status, status, "{}: {reply:?}", String::from_utf8_lossy(&request));
        let _: Value = reply.json();
    }
}

/// What a connection keeps of a head that does not end has a bound.
#[test]
fn a_head_of_more_than_64_kib_is_refused() {
    let service = Service::start(&["--quiet"]);
    for (bytes, status) in [(60_000, "200"), (66_000, "431")] {
        let long = "y".repeat(bytes);
        let head = format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: {long}\r\nConnection: close\r\n\r\n");
        let mut stream = service.begin(head.as_bytes());
        // Of a head that is not read to its end, the connection is closed before all of it was taken.
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).unwrap();
        assert_eq!(std::str::from_utf8(&begin).unwrap(), format!("HTTP/1.1 {status}"));
    }
}

/// The page has a table of them.
#[test]
fn refusals_of_heads_are_on_the_page() {
    let page = include_str!("../../../../docs/serve.md");
    let statuses = [403, 413, 415, 431, 501].map(|status| format!("| {status} |"));
    let options = ["queue-bytes", "max-prompt-bytes", "client-share"].map(|option| format!("`--{option}`"));
    for words in statuses.iter().chain(&options) {
        assert!(page.contains(words.as_str()), "{words}");
    }
}
