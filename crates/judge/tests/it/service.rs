//! `judge serve` as a process, and a client that sends exactly what a test wants sent.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::judge;

/// A service that runs. Dropped, it is killed.
pub struct Service {
    child: Child,
    pub address: SocketAddr,
    /// What it says on stderr after it listens.
    lines: Mutex<Receiver<String>>,
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// The head as it came, in lower case.
    pub head: String,
    pub body: String,
}

impl Reply {
    /// What a server has sent until it closed the connection.
    pub fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("an answer");
        let text = String::from_utf8(bytes).expect("UTF-8");
        // A client that sends no more is asked whether it is still there.
        let text = text.trim_start_matches("HTTP/1.1 100 Continue\r\n\r\n");
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no head in {text:?}"));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Self { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    /// The body, which says that it is JSON.
    pub fn json(&self) -> Value {
        assert!(self.head.contains("content-type: application/json"), "{self:?}");
        serde_json::from_str(&self.body).expect("JSON")
    }
}

impl Service {
    /// Starts one on any free port, with the embedded model unless the arguments name another.
    pub fn start(args: &[&str]) -> Self {
        Self::start_with(args, |_| {})
    }

    /// The same of a command that is changed before.
    pub fn start_with(args: &[&str], change: impl FnOnce(&mut Command)) -> Self {
        let mut command = judge("serve");
        change(&mut command);
        let mut child = command
            .args(["--port", "0"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (send, lines) = mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().expect("stderr"));
        thread::spawn(move || {
            // A test that has ended reads no more.
            stderr.lines().map_while(Result::ok).try_for_each(|line| send.send(line)).ok();
        });
        let mut said = Vec::new();
        let address = loop {
            let line = lines.recv().unwrap_or_else(|_| panic!("it ended: {said:?}"));
            if let Some(address) = line.strip_prefix("listening on http://") {
                break address.parse().expect("an address");
            }
            said.push(line);
        };
        Self { child, address, lines: Mutex::new(lines) }
    }

    /// A connection.
    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).expect("a connection")
    }

    /// A connection over which these bytes were sent.
    pub fn begin(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(bytes).expect("sent");
        stream
    }

    /// Sends these bytes, and reads until the service closes the connection.
    pub fn send(&self, bytes: &[u8]) -> Reply {
        Reply::read(self.begin(bytes))
    }

    /// The bytes of a request.
    pub fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
            body.len()
        );
        [head.as_bytes(), body].concat()
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(&Self::request("POST", path, "", body.to_string().as_bytes()))
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send(&Self::request("GET", path, "", b""))
    }

    /// The value of a metric, with its labels; 0 where there is none yet.
    pub fn metric(&self, name: &str) -> f64 {
        let reply = self.get("/metrics");
        let of = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        reply.body.lines().find_map(of).unwrap_or(0.0)
    }

    /// Waits until metrics add up to so much.
    pub fn reaches(&self, names: &[&str], least: f64) {
        let start = Instant::now();
        while names.iter().map(|name| self.metric(name)).sum::<f64>() < least {
            assert!(start.elapsed() < Duration::from_secs(60), "{names:?} stay below {least}");
        }
    }

    /// The next line on stderr that has these words.
    pub fn says(&self, words: &str) -> String {
        let lines = self.lines.lock().expect("one reader");
        let mut said = Vec::new();
        loop {
            let line = lines.recv().unwrap_or_else(|_| panic!("no {words:?} in {said:?}"));
            if line.contains(words) {
                return line;
            }
            said.push(line);
        }
    }

    /// Asks it to end, as `kill` does.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([name, &self.child.id().to_string()]).status().expect("kill starts");
        assert!(sent.success());
    }

    /// Waits until it has ended; its exit code.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().expect("a status").code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
