//! `judge serve` and clients that are many, slow or gone, and how it ends.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::thread;
#[cfg(unix)]
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::program::Desk;
use crate::service::{Reply, Service};

/// So many questions by name, each with these words so many times.
fn questions(number: usize, words: usize) -> Map<String, Value> {
    let question = |place: usize| {
        let instructions = format!("Question {place}: {}", "which of them is it? ".repeat(words));
        json!({"type": "choice", "instructions": instructions, "criteria": {"a": null, "b": null}})
    };
    (0..number).map(|place| (place.to_string(), question(place))).collect()
}

/// A request that keeps the model for a while.
fn long(number: usize) -> Value {
    json!({"state": format!("State {number}"), "questions": questions(32, 8)})
}

fn short() -> Value {
    json!({"state": "x", "questions": {"a": {"type": "choice", "criteria": {"a": null, "b": null}}}})
}

fn post(body: &Value) -> Vec<u8> {
    Service::request("POST", "/v1/systemone", "", body.to_string().as_bytes())
}

#[test]
fn more_than_fit_into_the_queue_are_told_when_to_come_back() {
    let service = Service::start(&["--quiet", "--queue", "2", "--client-share", "100"]);
    let start = Barrier::new(16);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let sent: Vec<_> = (0..16)
            .map(|number| {
                let (service, start) = (&service, &start);
                scope.spawn(move || {
                    start.wait();
                    let reply = service.post("/v1/systemone", &long(number));
                    if reply.status == 429 {
                        assert!(reply.head.contains("retry-after: 1"), "{reply:?}");
                        assert!(reply.json()["detail"].as_str().unwrap().contains("all 2 places"), "{reply:?}");
                    }
                    reply.status
                })
            })
            .collect();
        sent.into_iter().map(|sent| sent.join().unwrap()).collect()
    });
    assert!(statuses.contains(&200) && statuses.contains(&429), "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
    assert_eq!(service.post("/v1/systemone", &short()).status, 200);
}

#[test]
fn a_client_that_goes_away_gives_up_its_place() {
    let service = Service::start(&["--queue", "4"]);
    for number in 0..12 {
        let stream = service.begin(&post(&long(number)));
        stream.shutdown(Shutdown::Both).unwrap();
        drop(stream);
        let line = service.says("POST /v1/systemone ");
        assert!(line.contains(" 499 "), "{line}");
    }
    // Were the places still taken, this were 429.
    assert_eq!(service.post("/v1/systemone", &short()).status, 200);
    assert_eq!(service.metric("judge_requests_waiting"), 0.0);
    assert_eq!(service.metric(r#"judge_requests_total{route="/v1/systemone",status="499"}"#), 12.0);
}

#[test]
fn slow_clients_are_ended_and_keep_nobody_waiting() {
    let service = Service::start(&["--quiet", "--read-timeout", "1", "--connections", "3", "--client-share", "100"]);
    let body = short().to_string();
    // Half a head, half a body, and nothing at all.
    let head = service.begin(b"POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
    let sent = format!(
        "POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{}",
        body.len(),
        &body[..9]
    );
    let half = service.begin(sent.as_bytes());
    let idle = service.connect();
    // They have all connections, and lose them.
    assert_eq!(service.post("/v1/systemone", &short()).status, 200);
    let reply = Reply::read(half);
    assert!(reply.status == 408 && reply.json()["detail"].as_str().unwrap().contains("within 1 seconds"), "{reply:?}");
    for mut stream in [head, idle] {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty(), "{:?}", String::from_utf8_lossy(&rest));
    }
}

#[test]
fn a_body_that_is_too_long_is_read_no_further_than_it_must() {
    let service = Service::start(&["--quiet", "--max-body", "1000"]);
    // In one piece, in chunks, and only announced.
    let chunk = |length: usize| format!("{length:x}\r\n{}\r\n", "x".repeat(length));
    let head = "POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{}{}0\r\n\r\n", chunk(900), chunk(101));
    let announced = format!("{head}Content-Length: 1000000000000\r\n\r\n{}", "x".repeat(9000));
    for request in
        [Service::request("POST", "/v1/systemone", "", &[b'x'; 1001]), chunked.into_bytes(), announced.into_bytes()]
    {
        let reply = service.send(&request);
        assert!(reply.status == 413 && reply.json()["detail"].as_str().unwrap().contains("1000 bytes"), "{reply:?}");
    }
    let fits = service.send(&Service::request("POST", "/v1/systemone", "", &[b' '; 1000]));
    assert_eq!(fits.status, 400);
}

/// Sends a request over a connection that stays open, and reads its answer, which has no more than the bytes announced.
#[cfg(unix)]
fn keep(stream: &mut TcpStream) {
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"{\"status\":\"ok\"}") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.push(byte[0]);
    }
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_when_all_that_was_accepted_is_answered() {
    for signal in ["-TERM", "-INT"] {
        let mut service = Service::start(&["--quiet"]);
        let mut kept = service.connect();
        keep(&mut kept);
        let sent: Vec<TcpStream> = (0..8).map(|number| service.begin(&post(&long(number)))).collect();
        let done = r#"judge_requests_total{route="/v1/systemone",status="200"}"#;
        service.reaches(&["judge_requests_waiting", done], 8.0);
        service.signal(signal);
        for stream in sent {
            let reply = Reply::read(stream);
            assert_eq!(reply.status, 200, "{reply:?}");
            assert_eq!(reply.json()["answers"].as_object().unwrap().len(), 32);
        }
        // A connection that nobody uses does not keep it.
        assert_eq!(kept.read(&mut [0]).unwrap(), 0);
        assert_eq!(service.wait(), Some(0), "{signal}");
        assert!(TcpStream::connect(service.address).is_err());
    }
}

#[cfg(unix)]
#[test]
fn a_second_signal_ends_it_at_once() {
    let mut service = Service::start(&[]);
    // Half a request, which would have fifteen seconds.
    let _half = service.begin(b"POST /v1/systemone HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{");
    // A later connection is answered, so this one was accepted.
    assert_eq!(service.get("/health").status, 200);
    service.signal("-TERM");
    service.says("stopping");
    service.signal("-TERM");
    service.says("stopped before all requests were answered");
    assert_eq!(service.wait(), Some(1));
}

/// As `timeout` sends them: to the program, and to its group.
#[cfg(unix)]
#[test]
fn two_signals_at_once_are_no_error_where_nothing_waits() {
    for _ in 0..5 {
        let mut service = Service::start(&["--quiet"]);
        let mut kept = service.connect();
        keep(&mut kept);
        service.signal("-TERM");
        service.signal("-INT");
        assert_eq!(service.wait(), Some(0));
    }
}

/// Questions that keep the model for a while, in OpenAI's form, of which a request may have many.
fn very_long(number: usize) -> Vec<u8> {
    let question = |place: usize| {
        let instructions = format!("Question {place}: {}", "which of them is it? ".repeat(12));
        json!({"type": "choice", "instructions": instructions, "choices": [{"value": "a"}, {"value": "b"}]})
    };
    let questions: Vec<Value> = (0..400).map(question).collect();
    let body = json!({"input": format!("State {number}"), "questions": questions});
    Service::request("POST", "/v1/decisions", "", body.to_string().as_bytes())
}

#[cfg(unix)]
#[test]
fn a_second_signal_ends_it_at_once_while_the_model_is_busy() {
    let folder = &Desk::new();
    let mut service = Service::start_with(&[], |command| {
        command.env("TMPDIR", folder.as_os_str());
    });
    let unpacked = || std::fs::read_dir(folder).unwrap().count();
    assert_eq!(unpacked(), 1, "the embedded model");
    // Some minutes of work.
    let sent: Vec<TcpStream> = (0..20).map(|number| service.begin(&very_long(number))).collect();
    service.reaches(&["judge_requests_in_model"], 20.0);
    service.signal("-TERM");
    service.says("stopping");
    let second = Instant::now();
    service.signal("-TERM");
    service.says("stopped before all requests were answered");
    assert_eq!(service.wait(), Some(1));
    let took = second.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(unpacked(), 0);
    for mut stream in sent {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty(), "the model was not busy: {}", String::from_utf8_lossy(&rest));
    }
}

#[test]
fn a_client_that_hangs_up_on_a_long_request_keeps_nobody_waiting() {
    let service = Service::start(&[]);
    let stream = service.begin(&very_long(0));
    service.reaches(&["judge_requests_in_model"], 1.0);
    drop(stream);
    let line = service.says("POST /v1/decisions ");
    assert!(line.contains(" 499 "), "{line}");
    assert_eq!(service.post("/v1/systemone", &short()).status, 200);
    assert_eq!(service.metric("judge_questions_total"), 1.0);
}

#[test]
fn one_client_gets_its_share_of_connections_and_of_bytes() {
    let service = Service::start(&["--quiet", "--connections", "8", "--queue-bytes", "4000", "--max-body", "2000"]);
    // Half a body of 1,500 bytes, of the 2,000 that one client may have waiting.
    let body = short().to_string() + &" ".repeat(1900);
    let bytes = Service::request("POST", "/v1/systemone", "", &body.as_bytes()[..1900]);
    let (first, rest) = bytes.split_at(bytes.len() - 400);
    let mut half = service.begin(first);
    service.reaches(&["judge_queue_bytes"], 1500.0);
    let reply = service.send(&Service::request("POST", "/v1/systemone", "", &body.as_bytes()[..501]));
    assert!(reply.status == 429 && reply.head.contains("retry-after: 1"), "{reply:?}");
    assert!(reply.body.contains("all 2000 bytes of waiting requests that one client may have"), "{reply:?}");
    half.write_all(rest).unwrap();
    assert_eq!(Reply::read(half).status, 200);
    assert_eq!(service.metric("judge_queue_bytes"), 0.0);
    // Four of eight connections.
    let mut kept: Vec<TcpStream> = (0..4).map(|_| service.connect()).collect();
    let reply = Reply::read(service.connect());
    assert!(reply.status == 429 && reply.head.contains("retry-after: 1"), "{reply:?}");
    let error = &reply.json()["error"];
    assert_eq!((&error["type"], &error["code"]), (&json!("rate_limit_error"), &json!("too_many_connections")));
    assert!(error["message"].as_str().unwrap().contains("has all 4 connections"), "{error}");
    // A client that still sends sees it too.
    for size in [900_000; 10] {
        let reply = service.send(&Service::request("POST", "/v1/systemone", "", &vec![b' '; size]));
        assert_eq!(reply.status, 429, "{reply:?}");
    }
    for stream in &mut kept {
        stream.write_all(&post(&short())).unwrap();
    }
    assert!(kept.into_iter().all(|stream| Reply::read(stream).status == 200));
}

#[test]
fn a_state_that_is_read_too_often_is_413() {
    let service = Service::start(&["--quiet"]);
    let body = |bytes: usize| json!({"state": "x".repeat(bytes), "questions": questions(64, 0)});
    let reply = service.post("/v1/systemone", &body(1_000_000));
    assert!(reply.status == 413 && reply.body.contains("is read 64 times"), "{reply:?}");
    // Below the limit it is too long for the model, which is known without reading it.
    let reply = service.post("/v1/systemone", &body(130_000));
    assert!(
        reply.status == 400 && reply.body.contains("at least ") && reply.body.contains("prompt tokens"),
        "{reply:?}"
    );
}

/// Equal but for numbers, which differ in their last printed digits from kernel to kernel, and times.
fn assert_alike(found: &Value, printed: &Value) {
    match (found, printed) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!((a - b).abs() < 0.03 || b > 1e9, "{a}, and the page prints {b}");
        }
        (Value::Object(a), Value::Object(b)) => {
            assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
            a.iter().for_each(|(key, value)| assert_alike(value, &b[key]));
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).for_each(|(a, b)| assert_alike(a, b))
        }
        _ => assert_eq!(found, printed),
    }
}

#[cfg(unix)]
#[test]
fn the_curl_examples_of_the_page_give_what_it_prints() {
    if Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: curl is not installed");
        return;
    }
    let service = Service::start(&["--quiet"]);
    let page = include_str!("../../../../docs/serve.md");
    let mut compared = 0;
    // The blocks of curl, each with what is after it.
    for (block, rest) in page.split("```sh\n").filter_map(|from| from.split_once("```\n")) {
        if !block.starts_with("curl ") {
            continue;
        }
        let command = block.replace("127.0.0.1:8080", &service.address.to_string());
        let output = Command::new("sh").args(["-c", &command]).output().expect("sh");
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{block}: {}", String::from_utf8_lossy(&output.stderr));
        let (language, printed) = rest.trim_start().trim_start_matches("```").split_once('\n').unwrap();
        let printed = printed.split_once("```").expect("what it prints").0;
        compared += 1;
        if language == "json" {
            let json =
                |text: &str| serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_alike(&json(&stdout), &json(printed));
        } else {
            // Metrics: each printed line's name is there.
            for line in printed.lines() {
                let name = line.rsplit_once(' ').map_or(line, |(name, _)| name);
                assert!(stdout.contains(name), "{name} is not in {stdout}");
            }
        }
    }
    assert!(compared >= 5, "{compared}");
}
