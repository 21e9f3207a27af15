//! A server on the loopback interface that answers as a test wants it to: well, slowly, wrongly or not at all.

#![allow(dead_code, unreachable_pub)] // shared by tests, of which not every one needs all of it

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Method and path: `POST /v1/chat/completions`.
    pub line: String,
    /// Headers in lower case, with their values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The text of the last message.
    pub fn prompt(&self) -> &str {
        let messages = self.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        messages.last().and_then(|message| message["content"].as_str()).unwrap_or_default()
    }
}

/// How a request is answered.
pub enum Reply {
    /// With a status, headers and a body.
    Full(u16, Vec<(&'static str, String)>, String),
    /// With these bytes; then the connection is closed.
    Bytes(Vec<u8>),
    /// With these bytes, and then nothing more while the connection stays open.
    Stall(Vec<u8>),
    /// Not at all, while the connection stays open.
    Hang,
}

impl Reply {
    /// A status with a JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::Full(status, Vec::new(), body.to_string())
    }

    /// An error as services write it.
    pub fn error(status: u16, message: &str) -> Self {
        Self::json(status, &json!({"error": {"message": message, "type": "some_error", "code": null}}))
    }

    /// A completion of this text, of 10 tokens read and 5 written.
    pub fn text(text: &str) -> Self {
        Self::json(200, &completion(text))
    }
}

/// The body of a completion.
pub fn completion(text: &str) -> Value {
    json!({
        "id": "c", "object": "chat.completion", "model": "test-model-1",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text, "refusal": null}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    })
}

type Handler = dyn Fn(usize, &Seen) -> Reply + Send + Sync;

struct State {
    handler: Box<Handler>,
    seen: Mutex<Vec<Seen>>,
    /// Connections that are never answered.
    held: Mutex<Vec<TcpStream>>,
    open: AtomicUsize,
    most: AtomicUsize,
}

pub struct Server {
    /// What a client takes as its base URL.
    pub base_url: String,
    state: Arc<State>,
}

impl Server {
    /// A server whose handler gets the number of each request, from 0 in the order of their arrival, and the request.
    pub fn start(handler: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base_url = format!("http://{}/v1", listener.local_addr().expect("its address"));
        let (seen, held, open, most) = Default::default();
        let state = Arc::new(State { handler: Box::new(handler), seen, held, open, most });
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = shared.clone();
                std::thread::spawn(move || state.answer(stream));
            }
        });
        Self { base_url, state }
    }

    /// All requests so far, in the order of their arrival.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.state.seen).clone()
    }

    /// Number of requests so far.
    pub fn requests(&self) -> usize {
        lock(&self.state.seen).len()
    }

    /// Most requests that were there at once.
    pub fn most_at_once(&self) -> usize {
        self.state.most.load(Ordering::SeqCst)
    }
}

impl State {
    fn answer(&self, mut stream: TcpStream) {
        let Some(seen) = read(&mut stream) else { return };
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(open, Ordering::SeqCst);
        let number = {
            let mut all = lock(&self.seen);
            all.push(seen.clone());
            all.len() - 1
        };
        let reply = (self.handler)(number, &seen);
        // Before the client can know that it may send the next one.
        self.open.fetch_sub(1, Ordering::SeqCst);
        let bytes = match reply {
            Reply::Hang => return lock(&self.held).push(stream),
            Reply::Stall(bytes) => {
                let _ = stream.write_all(&bytes);
                return lock(&self.held).push(stream);
            }
            Reply::Bytes(bytes) => bytes,
            Reply::Full(status, headers, body) => {
                let mut head = format!(
                    "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n",
                    body.len()
                );
                for (name, value) in headers {
                    head += &format!("{name}: {value}\r\n");
                }
                format!("{head}\r\n{body}").into_bytes()
            }
        };
        let _ = stream.write_all(&bytes); // a client that has gone wants no answer
    }
}

/// A whole request.
fn read(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    loop {
        let mut some = [0; 4096];
        let n = stream.read(&mut some).ok().filter(|&n| n > 0)?;
        bytes.extend_from_slice(&some[..n]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.lines();
        let line = lines.next()?.rsplit_once(' ')?.0.to_owned();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        let length =
            headers.iter().find(|(name, _)| name == "content-length").map_or(Ok(0), |(_, n)| n.parse()).ok()?;
        if bytes.len() >= end + 4 + length {
            let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or(Value::Null);
            return Some(Seen { line, headers, body });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
