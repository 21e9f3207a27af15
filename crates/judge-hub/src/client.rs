//! Requests to the hub, over the network client `ureq`.
//!
//! `snapshot` asks three things here: what a revision is ([`Client::info`]), what the hub states of a file ([`Client::stated`]), and the
//! file's bytes ([`Client::download`]). This file knows addresses, headers, redirects, and how long to go on asking.
//!
//! ```text
//! GET  ENDPOINT/api/models/ORG/NAME/revision/REVISION   the commit and the names of its files
//! HEAD ENDPOINT/ORG/NAME/resolve/COMMIT/FILE            X-Repo-Commit; X-Linked-ETag or ETag; X-Linked-Size or Content-Length
//! GET  ENDPOINT/ORG/NAME/resolve/COMMIT/FILE            the bytes, with Range where some are there already
//! ```
//!
//! Redirects are followed one at a time. What a hub states of a large file is in the headers of the very answer that leads to the
//! store of its bytes, so `HEAD` follows only those that stay on a hub, as Hugging Face's `huggingface_hub` does; `GET` follows all.
//!
//! What stands between may answer in the hub's place with a page of its own, with status 200. So an answer is a file's only if it states
//! the file's length, or if all of that comes; no other becomes the beginning of a file.
//!
//! Invariant: the token goes to the scheme, host and port of the endpoint, and nowhere else.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::time::Duration;

use serde::Deserialize;
use ureq::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, LOCATION, RANGE};
use ureq::http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};

use crate::agent::{self, BROKEN, VariableProblem, quoted};
use crate::options::HubOptions;
use crate::{proxy, retry_after};

/// The public hub.
const HUB: &str = "https://huggingface.co";

/// How many redirects one request may take.
const MOST_REDIRECTS: usize = 10;

/// How long to wait before a request is made again that may succeed later, where the hub does not say how long itself.
const WAITS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(25)];

/// The longest wait that a hub may ask for: the public one counts requests in windows of five minutes.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// The longest time without a byte.
const SILENCE: Duration = Duration::from_secs(60);

/// The longest list of a model's files that is read, in bytes.
const LONGEST_LIST: u64 = 100_000_000;

/// How many bytes of a file are read at a time, at most.
const PIECE: usize = 1 << 16;

/// The longest message of a hub that is shown, in characters.
const LONGEST_MESSAGE: usize = 300;

/// Why a request brought nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HubProblem {
    /// The endpoint is no address.
    #[error("{found:?} is no address of a hub: {problem} (HF_ENDPOINT is the hub's)")]
    Address { found: String, problem: &'static str },
    /// An answer leads to what is no address.
    #[error("{address}: the answer leads to {found:?}, which is no address: {problem}")]
    Leads { address: String, found: String, problem: &'static str },
    /// A variable of the environment names a proxy or certificates that are none.
    #[error(transparent)]
    Variable(VariableProblem),
    /// The token is none that a header can carry.
    #[error("the token (HF_TOKEN) has characters that no token has")]
    Token,
    /// No answer, or one that broke off.
    #[error("{address}: {source}{}", agent::advice(.source))]
    Connection { address: String, source: Box<ureq::Error> },
    /// The hub answered with a status that is none of success.
    #[error("{address}: status {status}{}{}", said(.message), advice(*.status, *.wait))]
    Status {
        address: String,
        status: u16,
        /// Its header `X-Error-Message`, without a full stop at its end; empty without one.
        message: String,
        /// How long it asks to be left alone.
        wait: Option<Duration>,
    },
    /// What should be a file is not.
    #[error(
        "{address}: expected a file of {size} bytes, found {found}: did something between here and the hub answer in its place?"
    )]
    OtherFile {
        address: String,
        /// The length of the file, in bytes.
        size: u64,
        /// What came.
        found: String,
    },
    /// What should be the list of a model's files is not.
    #[error(
        "{address}: expected the list of a model's files, found {found}: is this a hub? HF_ENDPOINT names the one to ask"
    )]
    NoList { address: String, found: String },
    /// Redirects without an end.
    #[error("{address}: redirected more than {MOST_REDIRECTS} times")]
    Redirects { address: String },
    /// An answer lacks a header that a hub sends, or it cannot be read.
    #[error("{address}: the answer has no usable header {header}{}: is this a hub? HF_ENDPOINT names the one to ask", to(.leads))]
    Header {
        address: String,
        header: &'static str,
        /// Where the answer redirects to; empty if it does not.
        leads: String,
    },
    /// What came cannot be written.
    #[error("cannot write: {0}")]
    Write(io::Error),
}

/// The hub's message, as a part of an error's text.
fn said(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// What to do about a status, as a part of an error's text.
fn advice(status: u16, wait: Option<Duration>) -> String {
    match (status, wait) {
        (401 | 403, _) => {
            ": the model is gated or private, or there is none of this name: accept its licence on its page, and set \
                           HF_TOKEN to a token that may read it"
                .to_owned()
        }
        (_, Some(wait)) => format!(": the hub asks to be left alone for {} s", wait.as_secs()),
        (_, None) => String::new(),
    }
}

/// Where an answer leads, as a part of an error's text.
fn to(address: &str) -> String {
    if address.is_empty() { String::new() } else { format!(" and leads to {address}") }
}

impl HubProblem {
    /// Whether the hub has no time (status 429), or it or what stands before it is not up (500, 502 to 504).
    fn is_busy(&self) -> bool {
        matches!(self, Self::Status { status: 429 | 500 | 502..=504, .. })
    }

    /// Whether the hub may answer the next time: it is busy, or a connection that was there broke off.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Connection { source, .. } => {
                matches!(&**source, ureq::Error::Io(error) if BROKEN.contains(&error.kind()))
            }
            other => other.is_busy(),
        }
    }

    /// Whether no complete answer of the hub came.
    fn is_broken(&self) -> bool {
        matches!(self, Self::Connection { .. } | Self::OtherFile { .. })
    }

    /// Whether the hub gave no answer, or said that it cannot give one now. A status from 400 to 499 is an answer, unless it is 429.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.is_broken() || matches!(self, Self::NoList { .. } | Self::Status { status: 429 | 500.., .. })
    }
}

/// Asks, and again while the problem is one of which `passes` is true: after the wait that the hub asks for, or else after each of
/// [`WAITS`]. `wait` waits. A hub that asks for more than [`LONGEST_WAIT`] is not waited for.
pub(crate) fn patiently<T>(
    mut ask: impl FnMut() -> Result<T, HubProblem>,
    passes: impl Fn(&HubProblem) -> bool,
    wait: &dyn Fn(Duration),
) -> Result<T, HubProblem> {
    for pause in WAITS {
        let problem = match ask() {
            Err(problem) if passes(&problem) => problem,
            answer => return answer,
        };
        let asked = match &problem {
            HubProblem::Status { wait, .. } => *wait,
            _ => None,
        };
        let pause = asked.unwrap_or(pause);
        if pause > LONGEST_WAIT {
            return Err(problem);
        }
        tracing::warn!(error = %problem, seconds = pause.as_secs_f64(), "asking the hub again");
        wait(pause);
    }
    ask()
}

/// What a revision is.
#[derive(Deserialize)]
pub(crate) struct RepoInfo {
    /// The commit, as the hub names it.
    pub(crate) sha: String,
    /// Its files.
    pub(crate) siblings: Vec<Sibling>,
}

/// A file of a revision.
#[derive(Deserialize)]
pub(crate) struct Sibling {
    /// Its name in the repository.
    pub(crate) rfilename: String,
}

/// What the hub states of a file, unchecked.
pub(crate) struct Stated {
    /// The commit that it is of.
    pub(crate) commit: String,
    /// The name of its content, without quotes and without the mark of a weak tag.
    pub(crate) etag: String,
    /// Its length in bytes.
    pub(crate) size: u64,
}

/// What asks a hub about one repository.
pub(crate) struct Client {
    agent: ureq::Agent,
    /// The hub's address without a slash at its end, and its parts.
    endpoint: String,
    origin: Uri,
    /// `ORG/NAME`.
    repo: String,
    /// The header with the token, marked as sensitive.
    authorization: Option<HeaderValue>,
}

impl Client {
    /// A client for a repository of the options' hub. Nothing is sent yet.
    pub(crate) fn new(repo: &str, options: &HubOptions) -> Result<Self, HubProblem> {
        let endpoint = options.endpoint.as_deref().unwrap_or(HUB).trim_end_matches('/').to_owned();
        let wrong = |problem| HubProblem::Address { found: agent::shown(&endpoint), problem };
        let origin = agent::address(&endpoint).map_err(wrong)?;
        let header = |token: &String| agent::sensitive(&format!("Bearer {token}")).ok_or(HubProblem::Token);
        let authorization = options.token.as_ref().map(header).transpose()?;
        let config = agent::config(agent::authorities().map_err(HubProblem::Variable)?)
            .timeout_connect(Some(SILENCE))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE));
        Ok(Self { agent: config.build().into(), endpoint, origin, repo: repo.to_owned(), authorization })
    }

    /// The commit that a revision is at, and its files.
    pub(crate) fn info(&self, revision: &str) -> Result<RepoInfo, HubProblem> {
        let path = format!("api/models/{}/revision/{}", self.repo, encoded(revision, is_plain));
        let (from, answer) = self.send(&Method::GET, &path, 0, |_| true)?;
        let no_list = |found| HubProblem::NoList { address: shown(&from), found };
        let body =
            answer.into_body().into_with_config().limit(LONGEST_LIST).read_to_vec().map_err(|error| match error {
                ureq::Error::BodyExceedsLimit(_) => no_list(format!("more than {} MB", LONGEST_LIST / 1_000_000)),
                error => HubProblem::Connection { address: shown(&from), source: Box::new(error) },
            })?;
        serde_json::from_slice(&body).map_err(|error| {
            let begins: String = quoted(&body).chars().filter(|c| !c.is_control()).take(LONGEST_MESSAGE).collect();
            no_list(format!("{begins:?} ({error})"))
        })
    }

    /// What the hub states of a file of a commit.
    pub(crate) fn stated(&self, commit: &str, name: &str) -> Result<Stated, HubProblem> {
        let (from, answer) = self.send(&Method::HEAD, &self.file(commit, name), 0, |next| self.is_hub(next))?;
        let headers = answer.headers();
        let first = |names: [&str; 2]| names.into_iter().find_map(|name| text(headers, name)).filter(|t| !t.is_empty());
        let leads = || target(&from, headers).map(|next| shown(&next)).unwrap_or_default();
        let lacks = |header| HubProblem::Header { address: shown(&from), header, leads: leads() };
        let etag = first(["x-linked-etag", ETAG.as_str()]).ok_or_else(|| lacks("ETag"))?;
        // The length of an answer that leads elsewhere is not the file's.
        let length = if answer.status().is_success() { CONTENT_LENGTH.as_str() } else { "x-linked-size" };
        let size = first(["x-linked-size", length]).and_then(|size| size.parse().ok());
        Ok(Stated {
            commit: text(headers, "x-repo-commit").ok_or_else(|| lacks("X-Repo-Commit"))?,
            etag: etag.strip_prefix("W/").unwrap_or(&etag).replace('"', ""),
            size: size.ok_or_else(|| lacks("Content-Length"))?,
        })
    }

    /// Appends to `partial` the bytes that it lacks of a file of `size` bytes. A connection that breaks off is taken up again where it
    /// broke, as often as that brings more than there was; what brings nothing is tried again as [`patiently`] does. A server that
    /// sends no parts sends the file from its beginning. `told` is given the number of bytes that are there.
    ///
    /// An answer that ends before `size` bytes are there has broken off, whether or not the connection says so. What it brought is kept
    /// if it stated the file's length.
    pub(crate) fn download(
        &self,
        (commit, name): (&str, &str),
        size: u64,
        partial: &mut File,
        told: &mut dyn FnMut(u64),
        wait: &dyn Fn(Duration),
    ) -> Result<(), HubProblem> {
        let mut most = partial.seek(SeekFrom::End(0)).map_err(HubProblem::Write)?;
        if most > size {
            partial.set_len(0).map_err(HubProblem::Write)?;
            most = 0;
        }
        let passes = |problem: &HubProblem| problem.is_busy() || problem.is_broken();
        let mut ended = most == size;
        while !ended {
            let attempt = || match self.append((commit, name), size, partial, told) {
                Err(HubProblem::Connection { .. }) if partial.stream_position().is_ok_and(|there| there > most) => {
                    Ok(false)
                }
                answer => answer.map(|()| true),
            };
            ended = patiently(attempt, passes, wait)?;
            most = partial.stream_position().map_err(HubProblem::Write)?;
        }
        Ok(())
    }

    /// One attempt of [`download`](Self::download): one request, until its answer ends.
    fn append(
        &self,
        (commit, name): (&str, &str),
        size: u64,
        partial: &mut File,
        told: &mut dyn FnMut(u64),
    ) -> Result<(), HubProblem> {
        let mut start = partial.seek(SeekFrom::End(0)).map_err(HubProblem::Write)?;
        let address = self.file(commit, name);
        let (from, answer) = match self.send(&Method::GET, &address, start, |_| true) {
            // What is there is all that the hub has, and too little: from the start again.
            Err(HubProblem::Status { status: 416, .. }) if start > 0 => {
                start = 0;
                self.send(&Method::GET, &address, start, |_| true)?
            }
            sent => sent?,
        };
        let headers = answer.headers();
        // How long the answer says that the file is, in bytes.
        let stated: Option<u64> = if answer.status() == 206 {
            let range = text(headers, CONTENT_RANGE.as_str()).unwrap_or_default();
            let length = range.strip_prefix(&format!("bytes {start}-")).and_then(|rest| rest.split_once('/'));
            let lacks = || HubProblem::Header { address: shown(&from), header: "Content-Range", leads: String::new() };
            length.ok_or_else(lacks)?.1.parse().ok()
        } else {
            start = 0;
            text(headers, CONTENT_LENGTH.as_str()).and_then(|length| length.parse().ok())
        };
        let encoding = text(headers, CONTENT_ENCODING.as_str()).filter(|name| !name.eq_ignore_ascii_case("identity"));
        if stated.map_or(encoding.is_some(), |stated| stated != size) {
            let length = stated.map(|stated| format!(" of {stated} bytes")).unwrap_or_default();
            let encoding = encoding.map(|name| format!(" in the encoding {name:?}")).unwrap_or_default();
            let found = format!("an answer{length}{encoding}");
            return Err(HubProblem::OtherFile { address: shown(&from), size, found });
        }
        let begin = |partial: &mut File| {
            partial.set_len(start).and_then(|()| partial.seek(SeekFrom::Start(start))).map_err(HubProblem::Write)
        };
        let mut there = begin(partial)?;
        told(there);
        // One byte more than the file has shows that it is another.
        let mut body = answer.into_body().into_reader().take((size - there).saturating_add(1));
        let mut piece = vec![0; PIECE];
        let broken = loop {
            match body.read(&mut piece) {
                Ok(0) if there < size => {
                    let came = format!("{there} of {size} bytes came");
                    break io::Error::new(io::ErrorKind::UnexpectedEof, came);
                }
                Ok(0) => return Ok(()),
                Ok(count) => {
                    partial.write_all(&piece[..count]).map_err(HubProblem::Write)?;
                    there += count as u64;
                    told(there);
                }
                Err(error) => break error,
            }
        };
        if stated.is_none() {
            begin(partial)?;
        }
        Err(HubProblem::Connection { address: shown(&from), source: Box::new(broken.into()) })
    }

    /// The path of a file's address.
    fn file(&self, commit: &str, name: &str) -> String {
        format!("{}/resolve/{commit}/{}", self.repo, encoded(name, |byte| is_plain(byte) || byte == b'/'))
    }

    /// Sends a request, without the first `start` bytes of what it asks for, and follows the redirects of which `follows` is true.
    /// Gives the last address, and its answer: a success, or a redirect that was not followed.
    fn send(
        &self,
        method: &Method,
        path: &str,
        start: u64,
        follows: impl Fn(&Uri) -> bool,
    ) -> Result<(Uri, Response<ureq::Body>), HubProblem> {
        let whole = format!("{}/{path}", self.endpoint);
        let wrong = |problem| HubProblem::Address { found: agent::shown(&whole), problem };
        let mut at = agent::address(&whole).map_err(wrong)?;
        for _ in 0..=MOST_REDIRECTS {
            let mut request = Request::builder().method(method).uri(&at);
            if start > 0 {
                request = request.header(RANGE, format!("bytes={start}-"));
            }
            if let Some(token) = self.authorization.as_ref().filter(|_| origin(&at) == origin(&self.origin)) {
                request = request.header(AUTHORIZATION, token);
            }
            let broken = |error| HubProblem::Connection { address: shown(&at), source: Box::new(error) };
            let request = request.body(()).map_err(|error| broken(error.into()))?;
            let proxy = proxy::of_environment(&at).map_err(HubProblem::Variable)?;
            let request = self.agent.configure_request(request).proxy(proxy).build();
            let answer = self.agent.run(request).map_err(broken)?;
            let headers = answer.headers();
            match answer.status().as_u16() {
                200..=299 => return Ok((at, answer)),
                301 | 302 | 303 | 307 | 308 => {
                    let next = target(&at, headers)?;
                    if !follows(&next) {
                        return Ok((at, answer));
                    }
                    at = next;
                }
                status => {
                    let message = text(headers, "x-error-message").unwrap_or_default();
                    let message = message.trim_end_matches('.').chars().filter(|c| !c.is_control());
                    let message = message.take(LONGEST_MESSAGE).collect();
                    let wait = retry_after::of(headers);
                    return Err(HubProblem::Status { address: shown(&at), status, message, wait });
                }
            }
        }
        Err(HubProblem::Redirects { address: shown(&at) })
    }

    /// Whether an address is on a host that states what its files are: the endpoint's, or the public hub's, to which mirrors lead.
    fn is_hub(&self, address: &Uri) -> bool {
        let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
        host(address) == host(&self.origin) || host(address) == host(&Uri::from_static(HUB))
    }
}

/// Where an answer from an address leads: to its `Location`, which is a reference from there (RFC 3986). What no address has in it, such
/// as spaces and quotes, is written as `%` and two digits.
fn target(from: &Uri, headers: &HeaderMap) -> Result<Uri, HubProblem> {
    let lacks = || HubProblem::Header { address: shown(from), header: "Location", leads: String::new() };
    let location = text(headers, LOCATION.as_str()).ok_or_else(lacks)?;
    let location = encoded(&location, |byte| byte.is_ascii_graphic() && !b"\"<>\\^`".contains(&byte));
    let (scheme, host) = (from.scheme_str().unwrap_or_default(), from.authority().map_or("", |a| a.as_str()));
    let path = location.split(['?', '#']).next().unwrap_or_default();
    let whole = if path.starts_with("//") {
        format!("{scheme}:{location}")
    } else if path.starts_with('/') {
        format!("{scheme}://{host}{location}")
    } else if path.split('/').next().is_some_and(|first| first.contains(':')) {
        location
    } else {
        let mut parts: Vec<&str> = from.path().split('/').collect();
        parts.pop();
        for part in path.split('/').filter(|part| *part != ".") {
            match part {
                ".." => parts.truncate(parts.len().saturating_sub(1).max(1)),
                part => parts.push(part),
            }
        }
        format!("{scheme}://{host}{}{}", parts.join("/"), &location[path.len()..])
    };
    let leads = |problem| HubProblem::Leads { address: shown(from), found: agent::shown(&whole), problem };
    agent::address(&whole).map_err(leads)
}

/// Scheme, host and port of an address.
fn origin(uri: &Uri) -> (Option<&str>, Option<String>, u16) {
    (uri.scheme_str(), uri.host().map(str::to_ascii_lowercase), agent::port(uri))
}

/// An address without what may be secret in it: names before the host, and the query.
fn shown(uri: &Uri) -> String {
    let port = uri.port_u16().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{}://{}{port}{}", uri.scheme_str().unwrap_or_default(), uri.host().unwrap_or_default(), uri.path())
}

/// A header as text; `None` if it is absent. Bytes that are no UTF-8 are replaced.
fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// A text as a part of an address: every byte but those that are `plain` as `%` and two digits.
fn encoded(text: &str, plain: impl Fn(u8) -> bool) -> String {
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Whether a byte of a name stands for itself in every part of an address.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(location: &str) -> Result<String, String> {
        let from = Uri::from_static("http://hub/org/name/resolve/c/f?x=1");
        let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_str(location).unwrap())]);
        target(&from, &headers).map(|to| to.to_string()).map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_redirect_is_a_reference_from_where_it_is() {
        for (location, to) in [
            ("https://cdn/a?b=c", "https://cdn/a?b=c"),
            ("//cdn/a", "http://cdn/a"),
            ("/a/b", "http://hub/a/b"),
            ("./g?q=../x", "http://hub/org/name/resolve/c/g?q=../x"),
            ("../../../../../cdn/f", "http://hub/cdn/f"),
            ("/f?as=inline; filename=\"a b\"", "http://hub/f?as=inline;%20filename=%22a%20b%22"),
        ] {
            assert_eq!(leads(location).unwrap(), to, "{location}");
        }
    }

    #[test]
    fn a_redirect_that_is_no_address_shows_no_secret() {
        for location in ["ftp://me:hidden@cdn/f?sign=hidden", "https://me:hidden@cdn:99999/f?sign=hidden"] {
            let said = leads(location).unwrap_err();
            assert!(said.starts_with("http://hub/org/name/resolve/c/f: the answer leads to "), "{said}");
            assert!(said.contains("/f\", which is no address: ") && !said.contains("hidden"), "{said}");
        }
    }
}
