//! The page answers what it is asked, and says what is wrong with what it is not.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;

/// The status and the body of a reply.
fn post(address: &str, body: &str) -> (u16, serde_json::Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(stream, "POST /grade HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
        .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
}

#[test]
fn answers_are_graded_alone_and_together() {
    let mut page =
        Command::new(env!("CARGO_BIN_EXE_service")).arg("127.0.0.1:0").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(page.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on http://").unwrap();
    let asked = |answer: &str| {
        let question = "Ana has 3 hats and gets 2 more. How many hats does Ana have?";
        post(address, &serde_json::json!({"question": question, "answer": answer}).to_string())
    };
    // The embedded model's grades.
    let expected = [
        ("There are 3 and 2. 3 + 2 = 5. Ana has 5 hats.", 4.44),
        ("Ana has 9 hats.", 1.25),
        ("There are 3 and 2.", 3.0),
    ];
    let alone = expected.map(|(answer, grade)| {
        let (status, reply) = asked(answer);
        let found = reply["grade"].as_f64().unwrap();
        assert!(status == 200 && (found - grade).abs() < 0.02, "{answer}: {reply}");
        found
    });
    thread::scope(|scope| {
        for (at, (answer, _)) in expected.iter().cycle().take(12).enumerate() {
            let asked = &asked;
            scope.spawn(move || assert_eq!(asked(answer).1["grade"].as_f64(), Some(alone[at % 3])));
        }
    });
    let (status, reply) = post(address, r#"{"question": "2 + 2?"}"#);
    assert!(status == 422 && reply["error"].as_str().unwrap().contains("answer"), "{reply}");
    assert_eq!(post(address, "no JSON").0, 400);
    page.kill().unwrap();
    page.wait().unwrap();
}
