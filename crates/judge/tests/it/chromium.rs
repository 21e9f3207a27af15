//! A Chromium without a window, driven by its DevTools protocol over two pipes: no port, no network, no library.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// What it is called where it is installed; the environment variable `JUDGE_CHROMIUM` names another.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// A message that does not come in this time never comes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser with one page.
pub struct Chromium {
    child: Child,
    commands: ChildStdin,
    messages: Receiver<Value>,
    next: u64,
    session: String,
    /// Methods of events that nobody has waited for yet.
    events: Vec<String>,
    _profile: TempDir,
}

/// The browser; says so where there is none.
pub fn browser() -> Option<Chromium> {
    let found = program();
    if found.is_none() {
        eprintln!("skipped: no Chromium is installed (Debian: apt-get install chromium), so no browser opens a page");
    }
    found.map(|program| Chromium::start(&program))
}

/// The program; `None` where there is none.
fn program() -> Option<String> {
    let named = std::env::var("JUDGE_CHROMIUM").ok();
    let names = named.into_iter().chain(NAMES.map(str::to_owned));
    let runs = |name: &String| {
        Command::new(name).arg("--version").stderr(Stdio::null()).output().is_ok_and(|out| out.status.success())
    };
    names.into_iter().find(runs)
}

impl Chromium {
    /// Starts it.
    fn start(program: &str) -> Self {
        let profile = tempfile::tempdir().expect("a folder");
        // Chromium reads commands from descriptor 3 and writes to 4: the shell puts the pipes there.
        let mut child = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null", program])
            .args(["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .args([
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .args([
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
                "--window-size=1280,900",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let (commands, read) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let (send, messages) = channel();
        thread::spawn(move || {
            for message in BufReader::new(read).split(0) {
                let Ok(message) = message else { break };
                if send.send(serde_json::from_slice(&message).unwrap_or_default()).is_err() {
                    break;
                }
            }
        });
        let mut this =
            Self { child, commands, messages, next: 0, session: String::new(), events: Vec::new(), _profile: profile };
        this.new_page();
        this
    }

    /// Another page, which all that follows is about.
    pub fn new_page(&mut self) -> String {
        self.session.clear();
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached = self.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        self.go_to_page(attached["sessionId"].as_str().expect("a session"));
        self.call("Page.enable", json!({}));
        self.session.clone()
    }

    /// All that follows is about this page.
    pub fn go_to_page(&mut self, session: &str) {
        session.clone_into(&mut self.session);
        self.events.clear();
    }

    /// Calls a method of the protocol.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).expect("a command");
        loop {
            let message = self.message();
            if message["id"] == json!(self.next) {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
        }
    }

    fn message(&mut self) -> Value {
        let message = self.messages.recv_timeout(PATIENCE).expect("Chromium answers");
        if message["sessionId"] == json!(self.session) {
            self.events.extend(message["method"].as_str().map(str::to_owned));
        }
        message
    }

    /// Does something that loads a page, and waits until it is loaded.
    pub fn loads(&mut self, does: impl FnOnce(&mut Self)) {
        self.events.clear();
        does(self);
        while !self.events.iter().any(|event| event == "Page.loadEventFired") {
            self.message();
        }
    }

    /// Opens an address.
    pub fn open(&mut self, url: &str) {
        self.loads(|page| {
            page.call("Page.navigate", json!({ "url": url }));
        });
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        let text = if key.chars().count() == 1 {
            key
        } else if key == "Enter" {
            "\r"
        } else {
            ""
        };
        let kind = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        self.call("Input.dispatchKeyEvent", json!({"type": kind, "key": key, "text": text}));
        self.call("Input.dispatchKeyEvent", json!({"type": "keyUp", "key": key}));
    }

    /// Presses a key that answers, and waits for the next page.
    pub fn answer(&mut self, key: &str) {
        self.loads(|page| page.press(key));
    }

    /// Writes into what has the focus.
    pub fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// The value of an expression, or of what it promises.
    pub fn value(&mut self, expression: &str) -> Value {
        let found = self
            .call("Runtime.evaluate", json!({"expression": expression, "awaitPromise": true, "returnByValue": true}));
        assert!(found["exceptionDetails"].is_null(), "{expression}: {found}");
        found["result"]["value"].clone()
    }

    /// Clicks on an element, and waits until its page has another one.
    pub fn click_until(&mut self, clicked: &str, appears: &str) {
        self.value(&format!(
            "new Promise((done) => {{ const look = () => document.querySelector({appears:?}) && done(); \
             new MutationObserver(look).observe(document, {{childList: true, subtree: true, attributes: true}}); \
             document.querySelector({clicked:?}).click(); look() }})"
        ));
    }

    /// What the page says.
    pub fn text(&mut self) -> String {
        self.value("document.body.innerText").as_str().unwrap_or_default().to_owned()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
