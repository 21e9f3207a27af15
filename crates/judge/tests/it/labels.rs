//! `label_with_api` as a user runs it, before a server on the loopback interface; and its labels as probes are trained on them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{Desk, Said, judge, succeed, write_rows};
use crate::server::{Reply, Seen, Server, completion};

const KEY: &str = "sk-very-secret-key";
const TWO: [&str; 2] = ["--aspects", "logicality,fluency"];

/// Labels the rows of `in.jsonl`.
fn label(folder: &Path, server: &Server, more: &[&str]) -> Said {
    let args = ["--input", "in.jsonl", "--base-url", &server.base_url, "--api-model", "test-model"];
    let output = judge("label_with_api")
        .args([&args[..], &["--key-env", "JUDGE_TEST_KEY"], more].concat())
        .env("JUDGE_TEST_KEY", KEY)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("the example starts");
    let said = Said::from(output);
    assert!(!format!("{}{}", said.stdout, said.stderr).contains("very-secret"), "{}{}", said.stdout, said.stderr);
    for file in fs::read_dir(folder).expect("folder") {
        let path = file.expect("file").path();
        let bytes = if path.is_file() { fs::read(&path).expect("file") } else { Vec::new() };
        assert!(!String::from_utf8_lossy(&bytes).contains("very-secret"), "{}", path.display());
    }
    said
}

fn write(folder: &Path, rows: impl IntoIterator<Item = Value>) {
    write_rows(folder.join("in.jsonl"), &rows.into_iter().collect::<Vec<_>>());
}

fn row(id: usize) -> Value {
    json!({"id": id, "question": format!("What is number {id}?"), "output": format!("It is {}.", id % 7), "human": [1, 5], "topic": "t", "rubric": "my own"})
}

/// The grade that the server below gives.
fn grade(id: usize, aspect: &str) -> u64 {
    if aspect == "fluency" { 1 + id as u64 % 3 } else { 5 - id as u64 % 2 }
}

fn asked(seen: &Seen) -> (usize, &'static str) {
    let prompt = seen.prompt();
    let (_, rest) = prompt.split_once("What is number ").expect("the question");
    let aspect = if prompt.contains("Does it read well?") { "fluency" } else { "logicality" };
    (rest.split_once('?').expect("its end").0.parse().expect("a number"), aspect)
}

fn answer(score: impl ToString) -> String {
    format!("{{\"reason\": \"so\", \"score\": {}}}", score.to_string())
}

fn graded(_: usize, seen: &Seen) -> Reply {
    let (id, aspect) = asked(seen);
    Reply::text(&answer(grade(id, aspect)))
}

#[test]
fn labels_are_rows_that_probes_are_trained_on() {
    let folder = &Desk::new();
    write(folder, (0..40).map(row));
    let server = Server::start(|number, seen| {
        assert!(!seen.prompt().contains("my own"), "it is graded by the aspect, not by the row's rubric");
        // One in ten is throttled the first time, and one fails.
        match number {
            n if n % 10 == 3 => Reply::Full(429, vec![("Retry-After", "0".into())], "{}".into()),
            5 => Reply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_vec()),
            n => graded(n, seen),
        }
    });
    let args = [&TWO[..], &["--output", "out.jsonl", "--json", "report.json", "--price-in", "2", "--price-out", "10"]]
        .concat();
    let said = label(folder, &server, &args);
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    let rows = folder.rows("out.jsonl");
    assert_eq!(rows.len(), 80);
    for (place, row) in rows.iter().enumerate() {
        let (id, aspect) = (place / 2, ["logicality", "fluency"][place % 2]);
        assert_eq!((&row["id"], &row["aspect"]), (&json!(id), &json!(aspect)));
        assert_eq!(row["score"].as_f64(), Some(grade(id, aspect) as f64), "{row}");
        assert_eq!((&row["people"], &row["topic"], row.get("human")), (&json!([1.0, 5.0]), &json!("t"), None));
    }
    let report = folder.json("report.json");
    let requests = server.requests();
    assert_eq!(
        (&report["labels"], &report["requests"], &report["retries"]),
        (&json!(80), &json!(requests), &json!(requests - 80))
    );
    assert_eq!(report["tokens"], json!({"prompt": 800, "completion": 400, "uncounted_answers": 0}));
    assert!((report["cost"].as_f64().unwrap() - 0.0056).abs() < 1e-12, "{report}");
    assert_eq!(report["aspects"]["logicality"]["counts"], json!({"4": 20, "5": 20}));
    let ends = format!(
        "this start: {requests} requests, {} of them repeated; 800 tokens read, 400 written; cost 0.0056",
        requests - 80
    );
    assert!(said.stdout.contains(&ends) && said.stdout.contains("answered with test-model-1"), "{}", said.stdout);

    // Finished: nothing is sent, and no key is needed.
    let service = ["--base-url", &server.base_url, "--api-model", "test-model", "--key-env", "JUDGE_NOT_SET"];
    let again = [&["--input", "in.jsonl"][..], &service, &args].concat();
    let stdout = succeed("label_with_api", folder, &again);
    assert!(stdout.contains("is complete: 80 of 80 labels"), "{stdout}");
    assert_eq!(server.requests(), requests);

    let quick = ["--layers", "0", "--pooling", "mean", "--folds", "2", "--c", "0.01", "--top-k", "1", "--quiet"];
    let train = [&["--input", "out.jsonl", "--output", "probes"], &quick[..]].concat();
    succeed("inspector_train", folder, &train);
    let report = folder.json("probes/report.json");
    let aspects: Vec<&str> = report["aspects"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!((&aspects[..], &report["ungraded"]), (&["fluency", "logicality"][..], &json!(0)));
}

#[test]
fn a_killed_run_sends_only_what_is_missing() {
    let folder = &Desk::new();
    write(folder, (0..10).map(row));
    let stuck = Arc::new(AtomicBool::new(true));
    let shared = stuck.clone();
    let server = Server::start(move |number, seen| match shared.load(Ordering::SeqCst) && number >= 8 {
        true => Reply::Hang,
        false => graded(number, seen),
    });
    let url = server.base_url.clone();
    let args =
        ["--input", "in.jsonl", "--output", "cut.jsonl", "--base-url", &url, "--api-model", "m", "--concurrency", "3"];
    let args = [&args[..], &TWO, &["--key-env", "JUDGE_TEST_KEY", "--quiet"]].concat();
    let command = |key: &str| {
        let mut command = judge("label_with_api");
        command.args(&args).env("JUDGE_TEST_KEY", key).current_dir(folder).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut child = command(KEY).spawn().expect("the example starts");
    let partial = folder.join("cut.jsonl.partial");
    let lines = || fs::read(&partial).unwrap_or_default().iter().filter(|&&byte| byte == b'\n').count();
    // A first line says what the rows are; eight rows follow.
    while lines() < 9 {
        assert!(child.try_wait().expect("status").is_none(), "it ended before it could be killed");
        std::thread::yield_now();
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
    let journalled = fs::read_to_string(&partial).expect("journal");
    assert!(!journalled.contains("very-secret") && !folder.join("cut.jsonl").exists());
    stuck.store(false, Ordering::SeqCst);
    let answered: BTreeSet<(usize, &str)> = server.seen()[..8].iter().map(asked).collect();

    // With a key of its own, by which its requests are known: some of the killed program's may come in only now.
    assert!(command("another").status().expect("ends").success());
    let is_own = |seen: &Seen| seen.header("authorization") == Some("Bearer another");
    let after: Vec<Seen> = server.seen().into_iter().filter(is_own).collect();
    let sent: BTreeSet<(usize, &str)> = after.iter().map(asked).collect();
    assert_eq!((after.len(), sent.len()), (12, 12));
    assert!(sent.is_disjoint(&answered), "{sent:?} {answered:?}");
    // The same bytes as an unbroken run.
    let said = label(folder, &server, &[&["--output", "whole.jsonl", "--api-model", "m"][..2], &TWO].concat());
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let bytes = |name: &str| folder.read(name);
    assert_eq!(bytes("cut.jsonl"), bytes("whole.jsonl"));
}

#[test]
fn a_wait_that_a_service_asks_for_ends_at_a_signal() {
    let folder = &Desk::new();
    write(folder, (0..10).map(row));
    let server = Server::start(|number, seen| match number < 3 {
        true => graded(number, seen),
        false => Reply::Full(429, vec![("Retry-After", "60".into())], "{}".into()),
    });
    let args = ["--input", "in.jsonl", "--output", "cut.jsonl", "--base-url", &server.base_url, "--api-model", "m"];
    let mut command = judge("label");
    command.args(args).args(["--no-key", "--concurrency", "1", "--quiet"]).args(TWO).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    while server.requests() < 4 {
        assert!(child.try_wait().expect("status").is_none(), "it ended before it could be asked to");
        std::thread::yield_now();
    }
    let before = Instant::now();
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill starts");
    assert!(sent.success());
    let said = Said::from(child.wait_with_output().expect("ends"));
    assert_eq!(said.code, Some(130), "{}{}", said.stdout, said.stderr);
    assert!(said.stderr.contains("stopped after 3 of 20 labels; the same command resumes"), "{}", said.stderr);
    assert!(before.elapsed() < Duration::from_secs(30), "{:?}", before.elapsed());
}

#[test]
fn a_run_that_its_service_failed_keeps_what_is_paid_for() {
    let folder = &Desk::new();
    write(folder, (0..10).map(row));
    let broken = Arc::new(AtomicBool::new(true));
    let shared = broken.clone();
    let server = Server::start(move |number, seen| match shared.load(Ordering::SeqCst) && number >= 6 {
        true => Reply::error(503, "down"),
        false => graded(number, seen),
    });
    let args = [&TWO[..], &["--output", "out.jsonl", "--concurrency", "1", "--max-attempts", "1"]].concat();
    let said = label(folder, &server, &args);
    // Six labels, and ten requests in a row that the service fails.
    assert_eq!((said.code, server.requests()), (Some(1), 16), "{}", said.stderr);
    assert!(said.stderr.contains("status 503: \"down\"") && said.stdout.contains("60 tokens read"), "{}", said.stderr);
    broken.store(false, Ordering::SeqCst);
    let said = label(folder, &server, &[&args[..], &["--max-new-tokens", "99"]].concat());
    assert!(said.code == Some(1) && said.stderr.contains("max_new_tokens was 512, is 99"), "{}", said.stderr);
    let said = label(folder, &server, &args);
    assert_eq!((said.code, server.requests()), (Some(0), 16 + 14), "{}", said.stderr);
    assert!(said.stdout.contains("20 of 20 labels") && said.stderr.contains("resuming: 6 of 20"), "{}", said.stdout);
}

#[test]
fn an_aspect_without_a_grade_leaves_the_others() {
    let folder = &Desk::new();
    write(folder, (0..4).map(row));
    let server = Server::start(|_, seen| match asked(seen) {
        (0, "fluency") => Reply::text(&answer(7)),
        (1, "fluency") => Reply::text("a four, I think"),
        (2, "fluency") => {
            let mut refusal = completion("");
            refusal["choices"][0]["message"] = json!({"content": null, "refusal": "no"});
            Reply::json(200, &refusal)
        }
        (3, "fluency") => Reply::json(400, &json!({"error": {"message": "long", "code": "context_length_exceeded"}})),
        (id, aspect) => Reply::text(&format!("```json\n{}\n```", answer(grade(id, aspect)))),
    });
    let said = label(folder, &server, &[&TWO[..], &["--output", "out.jsonl", "--carry", "none"]].concat());
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    let rows = folder.rows("out.jsonl");
    let reasons: Vec<&str> = rows.iter().filter_map(|row| row["unscored"]["reason"].as_str()).collect();
    assert_eq!(reasons, ["off_scale", "unparsed", "refused", "too_long"]);
    assert!(rows.iter().step_by(2).all(|row| row["score"].is_f64() && row.get("topic").is_none()));
    assert_eq!(rows[1]["text"], answer(7));
    assert_eq!(server.requests(), 8, "nothing is asked again");
    for reason in reasons {
        assert!(said.stdout.contains(&format!("unscored, {reason}: 1")), "{}", said.stdout);
    }
}

#[test]
fn probabilities_are_kept_where_the_service_shows_them() {
    let folder = &Desk::new();
    write(folder, (0..2).map(row));
    let server = Server::start(|_, seen| {
        assert_eq!((&seen.body["logprobs"], &seen.body["top_logprobs"]), (&json!(true), &json!(20)));
        let (id, _) = asked(seen);
        let mut body = completion(&answer(4));
        if id == 0 {
            let token = |text: &str, p: f64, top: Value| json!({"token": text, "logprob": p.ln(), "top_logprobs": top});
            let top = json!([{"token": "4", "logprob": 0.6_f64.ln()}, {"token": "5", "logprob": 0.2_f64.ln()}, {"token": "9", "logprob": 0.1_f64.ln()}]);
            body["choices"][0]["logprobs"] = json!({"content": [token("{\"reason\": \"so\", \"score\": ", 1.0, json!([])), token("4", 0.6, top), token("}", 1.0, json!([]))]});
        }
        Reply::json(200, &body)
    });
    let said = label(folder, &server, &["--aspects", "fluency", "--output", "out.jsonl"]);
    assert!(
        said.code == Some(0) && said.stdout.contains("1 of 2 labels have the probabilities"),
        "{}{}",
        said.stdout,
        said.stderr
    );
    let rows = folder.rows("out.jsonl");
    let p: Vec<f64> = rows[0]["probabilities"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    assert!((p[3] - 0.75).abs() < 1e-6 && (p[4] - 0.25).abs() < 1e-6 && p[..3] == [0.0; 3], "{p:?}");
    assert!((rows[0]["label_mass"].as_f64().unwrap() - 0.8).abs() < 1e-6);
    assert_eq!((&rows[0]["labels"], &rows[0]["score"]), (&json!(["1", "2", "3", "4", "5"]), &json!(4.0)));
    assert_eq!((rows[1].get("probabilities"), &rows[1]["score"]), (None, &json!(4.0)));
}

#[test]
fn what_cannot_be_labelled_ends_with_a_reason() {
    let folder = &Desk::new();
    write(folder, (0..4).map(row));
    let refuse = Server::start(|_, seen| {
        Reply::error(401, &format!("wrong: {}", seen.header("authorization").unwrap_or_default()))
    });
    let said = label(folder, &refuse, &["--output", "out.jsonl"]);
    assert_eq!(said.code, Some(1), "{}", said.stderr);
    assert!(
        said.stderr.contains("status 401: \"wrong: Bearer [key]\"") && said.stderr.contains(&refuse.base_url),
        "{}",
        said.stderr
    );
    assert!(said.stdout.contains("this start: "), "{}", said.stdout);

    for (said, option) in [
        ("logprobs are not supported with this model", "--top-log-probs 0"),
        ("'max_tokens' is not supported, use 'max_completion_tokens'", "--max-tokens-field max_completion_tokens"),
    ] {
        let refuse = Server::start(move |_, _| Reply::error(400, said));
        let told = label(folder, &refuse, &["--output", "refused.jsonl", "--aspects", "fluency", "--overwrite"]);
        assert!(told.code == Some(1) && told.stderr.contains(said) && told.stderr.contains(option), "{}", told.stderr);
    }

    let server = Server::start(|_, _| Reply::text("no idea"));
    let said = label(folder, &server, &["--output", "none.jsonl", "--aspects", "fluency"]);
    assert!(said.code == Some(1) && said.stderr.contains("no row was scored: 4 unparsed"), "{}", said.stderr);

    let requests = server.requests();
    folder.put("mine.json", r#"{"charm": "Is it charming?"}"#);
    folder.put("bad.json", r#"{"charm": 5}"#);
    folder.put("twice.json", r#"{"charm": "Is it charming?", "charm": "Is it?"}"#);
    for (args, code, expected) in [
        (&["--aspects", "charm"][..], 2, "no aspect is called \"charm\""),
        (&["--aspects", "fluency,fluency"], 2, "twice"),
        (&["--aspects", "bad.json"], 1, "no file of aspects"),
        (&["--aspects", "none.json"], 1, "none.json"),
        (&["--aspects", "twice.json"], 1, "expected each name of an object once, found \"charm\" twice"),
        (&["--points", "7"], 2, "built-in aspects have grades from 1 to 5"),
        (&["--price-in", "1"], 2, "belong together"),
        (&["--temperature=-1"], 2, "at least 0"),
        (&["--requests-per-minute", "0"], 2, "above 0"),
        (&["--json", "in.jsonl"], 2, "in.jsonl"),
        (&["--columns", "response=nothing"], 1, "nothing"),
    ] {
        let said = label(folder, &server, &[&["--output", "x.jsonl"], args].concat());
        assert!(said.code == Some(code) && said.stderr.contains(expected), "{args:?}: {:?} {}", said.code, said.stderr);
    }
    let proxy = [("HTTP_PROXY", "ftp://me:hidden@somewhere")];
    let except = [("HTTP_PROXY", "http://127.0.0.1:9"), ("NO_PROXY", "localhost,10.0.0.0/33")];
    let certificates = [("SSL_CERT_FILE", "none.pem")];
    for (url, key, environment, expected) in [
        ("http://user:pass@127.0.0.1:9/v1", "JUDGE_TEST_KEY", &[][..], "a key belongs in the key"),
        ("127.0.0.1:9", "JUDGE_TEST_KEY", &[], "expected it to begin with http"),
        ("http://127.0.0.1:80000/v1", "JUDGE_TEST_KEY", &[], "its port is no number from 1 to 65535"),
        ("http://127.0.0.1:9/v1", "JUDGE_NOT_SET", &[], "JUDGE_NOT_SET is not set"),
        ("http://127.0.0.1:9/v1", "JUDGE_TEST_KEY", &proxy, "HTTP_PROXY is no address of a proxy"),
        ("http://127.0.0.1:9/v1", "JUDGE_TEST_KEY", &except, "NO_PROXY has \"10.0.0.0/33\", expected a host"),
        ("https://127.0.0.1:9/v1", "JUDGE_TEST_KEY", &certificates, "SSL_CERT_FILE names none.pem, expected a file"),
    ] {
        let args =
            ["--input", "in.jsonl", "--output", "x.jsonl", "--base-url", url, "--api-model", "m", "--key-env", key];
        let mut command = judge("label_with_api");
        command.args(args).env("JUDGE_TEST_KEY", KEY).envs(environment.iter().copied());
        let output = command.current_dir(folder).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(2) && stderr.contains(expected) && !stderr.contains("pass@"),
            "{url}: {stderr}"
        );
        assert!(!stderr.contains("hidden"), "{stderr}");
    }
    assert_eq!(server.requests(), requests, "nothing was sent");
    assert!(!folder.join("x.jsonl").exists() && !folder.join("x.jsonl.run.json").exists());
}

#[test]
fn a_dry_run_sends_nothing_and_own_aspects_are_asked_about() {
    let folder = &Desk::new();
    write(folder, (0..3).map(row));
    folder.put("mine.json", r#"{"charm": "Is it {charming}?", "wit": "Is it witty?"}"#);
    let server = Server::start(|_, seen| {
        assert!(seen.prompt().contains("from 1 for the worst to 9 for the best"), "{}", seen.prompt());
        Reply::text(&answer(if seen.prompt().ends_with("Is it {charming}?") { 9 } else { 2 }))
    });
    let args = ["--output", "out.jsonl", "--aspects", "mine.json", "--points", "9", "--limit", "2"];
    // Of a row without a response nobody is asked.
    folder.write("some.jsonl", &[row(0), json!({"id": 1, "question": "What is number 1?"}), row(2)]);
    let service = ["--input", "some.jsonl", "--base-url", &server.base_url, "--api-model", "test-model", "--no-key"];
    let dry = ["--output", "some.out.jsonl", "--aspects", "mine.json", "--points", "9", "--dry-run"];
    let dry = succeed("label", folder, &[&service[..], &dry].concat());
    assert!(dry.starts_with("4 requests of about") && server.requests() == 0, "{dry}");
    let said = label(
        folder,
        &server,
        &[&args[..], &["--dry-run", "--price-in", "1", "--price-out", "2", "--json", "dry.json"]].concat(),
    );
    assert_eq!((said.code, server.requests()), (Some(0), 0), "{}", said.stderr);
    let dry = folder.json("dry.json");
    assert_eq!((&dry["requests"], &dry["tokens"]["completion_most"]), (&json!(4), &json!(2048)));
    assert!(said.stdout.contains("4 requests") && !folder.join("out.jsonl").exists(), "{}", said.stdout);
    let said = label(folder, &server, &args);
    assert_eq!((said.code, server.requests()), (Some(0), 4), "{}", said.stderr);
    let scores: Vec<Value> =
        folder.rows("out.jsonl").iter().map(|row| json!([row["id"], row["aspect"], row["score"]])).collect();
    assert_eq!(
        scores,
        [json!([0, "charm", 9.0]), json!([0, "wit", 2.0]), json!([1, "charm", 9.0]), json!([1, "wit", 2.0])]
    );
}

/// https://github.com/QuantumNous/new-api/issues/802, https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1602,
/// https://github.com/microsoft/PyRIT/pull/2133, https://github.com/vectorize-io/hindsight/pull/1355: answers as models that think write
/// them, and a connection that is closed on one row.
#[test]
fn answers_of_models_that_think_are_read_and_a_closed_connection_costs_its_row() {
    let folder = &Desk::new();
    write(folder, (0..8).map(row));
    let server = Server::start(|_, seen| match asked(seen).0 {
        0 => Reply::text("<think>\nMaybe 2, maybe 5.\n</think>\n\n{\"reason\": \"so\", \"score\": 4}"),
        1 => Reply::text("Maybe 2.\n</think>\n\n{\"reason\": \"so\", \"score\": 4}"),
        2 => Reply::text(
            "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>{\"reason\": \"so\", \"score\": 4}",
        ),
        3 => Reply::text("{\"reason\": \"one\ntwo\", \"score\": 4.0}"),
        4 => Reply::text("<think>It is {\"reason\": \"so\", \"score\": 4}"),
        5 => Reply::text("{\"score\": 4}"),
        6 => Reply::Bytes(Vec::new()),
        _ => Reply::text("{\"reason\": \"so\", \"score\": 4}"),
    });
    let args = ["--aspects", "fluency", "--output", "out.jsonl", "--max-attempts", "2", "--quiet"];
    let said = label(folder, &server, &args);
    assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
    let rows = folder.rows("out.jsonl");
    let found: Vec<Value> =
        rows.iter().map(|row| row.get("score").unwrap_or(&row["unscored"]["reason"]).clone()).collect();
    assert_eq!(
        found,
        [
            json!(4.0),
            json!(4.0),
            json!(4.0),
            json!(4.0),
            json!("unparsed"),
            json!("unparsed"),
            json!("no_answer"),
            json!(4.0)
        ]
    );
    let detail = rows[5]["unscored"]["detail"].as_str().expect("why");
    assert!(detail.contains("\"reason\"") && detail.contains("the score a number"), "{detail}");
    assert_eq!(server.requests(), 9);
}
