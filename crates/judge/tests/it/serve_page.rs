//! The page of `judge serve`: what its head says, and a browser that asks by it.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::chromium::{Chromium, browser};
use crate::program::Desk;
use crate::service::Service;

#[test]
fn the_page_is_this_services_alone_and_can_be_left_out() {
    let service = Service::start(&["--quiet"]);
    for (path, kind) in [("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript")] {
        let reply = service.get(path);
        assert_eq!(reply.status, 200, "{reply:?}");
        for header in [
            format!("content-type: {kind}; charset=utf-8").as_str(),
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'",
            "x-frame-options: deny",
            "x-content-type-options: nosniff",
        ] {
            assert!(reply.head.contains(header), "{header}: {reply:?}");
        }
        assert!(!reply.body.contains("//") || path == "/page.js", "nothing is loaded from elsewhere: {reply:?}");
    }
    let page = service.get("/").body;
    assert!(page.matches("<script").count() == 1 && !page.contains("style=") && !page.contains("onclick"), "{page}");
    assert!(!page.contains("id=\"key\""), "this service has no key: {page}");
    assert_eq!(service.metric(r#"judge_requests_total{route="/",status="200"}"#), 2.0);
    let foreign = "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(service.send(foreign.as_bytes()).status, 403);
    assert_eq!(service.post("/", &json!({})).status, 405);

    let without = Service::start(&["--quiet", "--no-page"]);
    for path in ["/", "/page.css", "/page.js"] {
        assert_eq!(without.get(path).status, 404, "{path}");
    }
}

#[test]
fn a_request_may_ask_for_the_label_mass() {
    let service = Service::start(&["--quiet"]);
    let body = json!({"state": "x", "questions": {"a": {"type": "choice", "criteria": {"b": null, "c": null}}}});
    let ask = |query: &str| service.post(&format!("/v1/systemone{query}"), &body);
    for (query, has_mass) in [
        ("", false),
        ("?label_mass=false", false),
        ("?label_mass=0", false),
        ("?label_mass=true", true),
        ("?label_mass=True", true),
        ("?label_mass=1", true),
    ] {
        let reply = ask(query);
        assert_eq!((reply.status, reply.json()["label_mass"]["a"].is_f64()), (200, has_mass), "{query}");
    }
    for (query, name, words) in [
        ("?label_mass=maybe", "label_mass", "expected true or false, found \"maybe\""),
        ("?label_mass", "label_mass", "found \"\""),
        ("?labelmass=true", "labelmass", "unknown name `labelmass` in the query; the only one is label_mass"),
    ] {
        let (reply, loc) = (ask(query), json!(["query", name]));
        let detail = reply.json()["detail"][0].clone();
        assert_eq!((reply.status, &detail["loc"]), (422, &loc), "{detail}");
        assert!(detail["msg"].as_str().is_some_and(|msg| msg.contains(words)), "{detail}");
    }
    let questions = json!([{"type": "predicate", "instructions": "Is it?"}]);
    let reply = service.post("/v1/decisions?label_mass=2", &json!({"input": "x", "questions": questions}));
    assert_eq!((reply.status, &reply.json()["error"]["param"]), (422, &json!("label_mass")));
}

/// Puts a text into a field as its reader does.
fn fill(page: &mut Chromium, field: &str, text: &str) {
    let field = json!(field);
    page.value(&format!("document.querySelector({field}).select()"));
    page.write(text);
}

/// What the command on the page sends: its last word, as a shell has it.
fn sent_by_curl(page: &mut Chromium) -> String {
    let command = page.value("document.querySelector('#curl').textContent");
    let last_word = "curl() { for last; do :; done; printf %s \"$last\"; }\n";
    let line = format!("{last_word}{}", command.as_str().expect("a command"));
    let output = Command::new("sh").args(["-c", &line]).output().expect("a shell");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a_browser_asks_and_the_command_does_the_same() {
    let Some(mut page) = browser() else { return };
    let service = Service::start(&["--quiet"]);
    page.open(&format!("http://{}/", service.address));
    let state = "It's \"late\" \\ $HOME `id`\n<img src=x onerror=\"document.title='run'\">";
    fill(&mut page, "#state", state);
    let option = "<b>ang'ry</b>";
    fill(&mut page, ".options", &format!("calm: no heat\n{option}"));
    page.click_until("#submit", ".answered");
    let sent = sent_by_curl(&mut page);
    let asked: Value = serde_json::from_str(&sent).expect("JSON");
    assert_eq!((&asked["state"], &asked["questions"]["tone"]["criteria"]["calm"]), (&json!(state), &json!("no heat")));
    let answer = service.post("/v1/systemone?label_mass=true", &asked).json();
    // The page shows what the command is answered: each share as a bar, and the label mass.
    let bars = page.value("[...document.querySelectorAll('.answered:first-child progress')].map((bar) => bar.value)");
    let tone = &answer["answers"]["tone"]["probabilities"];
    assert_eq!(bars, json!([tone["calm"], tone[option], answer["label_mass"]["tone"]]), "{answer}");
    let named = page.value("document.querySelectorAll('.answered:first-child dt')[1].textContent");
    assert_eq!(named, json!(option), "markup in an option stays text");
    assert_ne!(page.value("document.title"), json!("run"));
    assert!(page.text().contains("(0 to 2)"), "the level: {}", page.text());

    // A state of JSON goes as it is written: no digit of a whole number is lost.
    fill(&mut page, "#state", "{\"number\": 12345678901234567890123}");
    assert!(sent_by_curl(&mut page).contains("\"state\": {\"number\": 12345678901234567890123}"));
    // What the service refuses is shown with its place.
    fill(&mut page, ".options", "calm\ncalm");
    page.click_until("#submit", "[role=alert]");
    let said = page.text();
    assert!(said.contains("422: questions › tone › criteria › calm: this name appears twice"), "{said}");
    // Narrow as a phone, nothing is beside the page.
    let phone = json!({"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": true});
    page.call("Emulation.setDeviceMetricsOverride", phone);
    assert_eq!(page.value("document.documentElement.scrollWidth"), json!(390));
}

#[test]
fn a_browser_gives_the_key_and_asks_a_judge_by_name() {
    let Some(mut page) = browser() else { return };
    let folder = &Desk::new();
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    fs::write(path("key"), "s3cret").unwrap();
    fs::write(path("judges.json"), json!({"quality": {"score": []}}).to_string()).unwrap();
    let service = Service::start(&["--quiet", "--key-file", &path("key"), "--judges", &path("judges.json")]);
    assert!(!service.get("/").body.contains("quality"), "what the key is for is not told without it");
    page.open(&format!("http://{}/", service.address));
    page.click_until("#submit", "[role=alert]");
    assert!(page.text().contains("401: expected the header"), "{}", page.text());
    assert_eq!(page.value("document.activeElement.id"), json!("key"));
    page.write("s3cret");
    // Its judges appear once the key is known.
    page.click_until("#submit", ".answered");
    page.value("document.querySelector('#key').blur()");
    page.click_until("#add", "#judges:not([hidden])");
    page.value(
        "document.querySelector('#model').value = 'quality'; \
         document.querySelector('#model').dispatchEvent(new Event('change', {bubbles: true}))",
    );
    let sent: Value = serde_json::from_str(&sent_by_curl(&mut page)).expect("JSON");
    assert_eq!((&sent["model"], &sent["state"]["response"]), (&json!("quality"), &json!("")), "{sent}");
    assert_eq!(sent["questions"]["grade"]["criteria"], json!(["1", "2", "3", "4", "5"]));
    fill(&mut page, "#state", "{\"instruction\": \"2 + 4?\", \"response\": \"6\"}");
    page.click_until("#submit", "#answers:not([aria-busy]) .answered");
    assert!(page.text().contains("(0 to 4)") && page.text().contains("by quality"), "{}", page.text());
    // The key is in no command and in nothing that is kept.
    let kept = page
        .value("document.querySelector('#curl').textContent + JSON.stringify({...localStorage, ...sessionStorage})");
    assert!(kept.as_str().is_some_and(|kept| kept.contains("Bearer $KEY") && !kept.contains("s3cret")), "{kept}");
}
