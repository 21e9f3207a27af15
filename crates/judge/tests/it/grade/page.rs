//! `judge grade` as a process, and requests to its page as a browser makes them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Output, Stdio};

use crate::program::judge;
use crate::service::Reply;

/// The program while its page is open.
pub struct Page {
    /// `None` once it is waited for.
    child: Option<Child>,
    stderr: BufReader<ChildStderr>,
    /// `127.0.0.1:PORT`.
    pub host: String,
    /// `/TOKEN`.
    pub path: String,
}

impl Page {
    /// Starts the command in a folder and waits for its address.
    pub fn open(folder: &Path, args: &[&str]) -> Self {
        let mut child = judge("grade")
            .args(args)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut this = Self { child: Some(child), stderr, host: String::new(), path: String::new() };
        let mut said = String::new();
        loop {
            let mut line = String::new();
            assert_ne!(this.stderr.read_line(&mut line).expect("stderr"), 0, "it ended: {said}");
            if let Some(address) = line.trim().strip_prefix("grading at http://") {
                let (host, path) = address.split_once('/').expect("a token");
                (this.host, this.path) = (host.to_owned(), format!("/{path}"));
                return this;
            }
            said += &line;
        }
    }

    /// The address.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.host, self.path)
    }

    /// Sends a request as it is, but for its length.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = TcpStream::connect(&self.host).expect("the page is open");
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).expect("a request");
        Reply::read(stream)
    }

    /// One of its pages.
    pub fn get(&self, page: &str) -> Reply {
        self.send("GET", &format!("{}/{page}", self.path), &[("Host", &self.host)], "")
    }

    /// A form of the page.
    pub fn post(&self, page: &str, form: &str) -> Reply {
        let origin = format!("http://{}", self.host);
        let headers = [
            ("Host", self.host.as_str()),
            ("Origin", &origin),
            ("Sec-Fetch-Site", "same-origin"),
            ("Content-Type", "application/x-www-form-urlencoded"),
        ];
        self.send("POST", &format!("{}/{page}", self.path), &headers, form)
    }

    /// The place of the row that a rater sees, and the page around it; `None` after the last row.
    pub fn row(&self, rater: &str) -> Option<(usize, String)> {
        let page = self.get(&format!("rate?rater={rater}")).body;
        let (_, rest) = page.split_once("name=\"row\" value=\"")?;
        let place = rest.split('"').next()?.parse().ok()?;
        Some((place, page))
    }

    /// Answers the row that a rater sees; the row.
    pub fn answer(&self, rater: &str, fields: &str) -> usize {
        let (row, _) = self.row(rater).expect("a row");
        let answer = self.post("answer", &format!("rater={rater}&row={row}&{fields}"));
        assert_eq!(answer.status, 303, "{}", answer.body);
        assert!(!answer.head.contains("said="), "{}", answer.head);
        row
    }

    /// Ends it at once, as nothing can be prepared for.
    pub fn kill(self) {
        drop(self);
    }

    /// Finishes by the page, and waits for the end.
    pub fn finish(self, rater: &str) -> Output {
        let answer = self.post("finish", &format!("rater={rater}"));
        assert!(answer.status == 200 && answer.body.contains("Finished"), "{}", answer.body);
        self.wait()
    }

    /// Waits for the end.
    pub fn wait(mut self) -> Output {
        let mut stderr = Vec::new();
        self.stderr.read_to_end(&mut stderr).expect("stderr");
        let child = self.child.take().expect("it runs");
        Output { stderr, ..child.wait_with_output().expect("it ends") }
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
