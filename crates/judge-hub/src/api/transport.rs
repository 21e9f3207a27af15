//! One request over the network, and the bytes that come back.
//!
//! `model` calls `post` from many threads; connections are kept open and shared. This file does not
//! look at bodies and knows no retries: `answer` reads statuses and bodies, `model` decides.
//!
//! Bodies are asked for without compression (`identity`), so the limit on bytes holds for what is
//! read.

use std::io::{ErrorKind, Read};
use std::time::Duration;

use ureq::Proxy;
use ureq::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use ureq::http::{HeaderValue, Uri};
use ureq::tls::RootCerts;

use super::problem::ApiError;
use super::{ApiProblem, ApiSettings};
use crate::agent::{self, BROKEN, VariableProblem};
use crate::proxy;
use crate::retry_after;

/// What sends requests to one address and nowhere else: redirects are not followed. The proxy that the environment names for it is used.
pub(super) struct Transport {
    /// The client, with its pool of idle connections: as many as requests may be in flight.
    agent: ureq::Agent,
    /// Where requests go, `…/chat/completions`.
    url: Uri,
    /// The header with the key, marked as sensitive; `None` without a key.
    authorization: Option<HeaderValue>,
    /// Longest time of one attempt, here for the error's text. The agent holds to it.
    timeout: Duration,
    /// Longest body that is read.
    max_response_bytes: usize,
}

/// A complete answer, whatever its status.
pub(super) struct Response {
    /// The status of HTTP.
    pub(super) status: u16,
    /// The wait that the service asks for, where it asks for one that can be read.
    pub(super) retry_after: Option<Duration>,
    /// Where a redirect leads; empty without a `Location` header.
    pub(super) location: String,
    /// The body as it came.
    pub(super) body: Vec<u8>,
}

impl Transport {
    /// A client for `url` with the settings' key, timeout and limits. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ApiProblem::Variable`].
    pub(super) fn new(url: Uri, settings: &ApiSettings) -> Result<Self, ApiError> {
        // A file of certificates that cannot be read is no matter of a service without any.
        let is_secure = url.scheme_str() == Some("https");
        let authorities = if is_secure { agent::authorities() } else { Ok(RootCerts::WebPki) };
        match proxy::of_environment(&url).and_then(|proxy| Ok((proxy, authorities?))) {
            Ok((proxy, authorities)) => Ok(Self::by_way_of(proxy, authorities, url, settings)),
            Err(VariableProblem { variable, problem }) => {
                Err(ApiError::Service { url: url.to_string(), problem: ApiProblem::Variable { variable, problem } })
            }
        }
    }

    fn by_way_of(proxy: Option<Proxy>, authorities: RootCerts, url: Uri, settings: &ApiSettings) -> Self {
        let config = agent::config(authorities)
            .proxy(proxy)
            .timeout_global(Some(settings.timeout))
            .max_idle_connections_per_host(settings.concurrency)
            .max_idle_connections(settings.concurrency);
        // A key is visible ASCII, which every header can carry.
        let authorization = settings.key.as_ref().and_then(|key| agent::sensitive(&key.authorization()));
        let (timeout, max_response_bytes) = (settings.timeout, settings.max_response_bytes);
        Self { agent: config.build().into(), url, authorization, timeout, max_response_bytes }
    }

    /// Where requests go.
    pub(super) fn url(&self) -> String {
        self.url.to_string()
    }

    /// Sends a body and reads the whole answer, whatever its status. Blocks, at most for the
    /// timeout.
    ///
    /// # Errors
    /// [`ApiProblem::Connection`], [`ApiProblem::Broken`], [`ApiProblem::Timeout`] or
    /// [`ApiProblem::ResponseTooLong`], all of which are transient.
    pub(super) fn post(&self, body: &[u8]) -> Result<Response, ApiProblem> {
        let mut request = self.agent.post(&self.url).header(CONTENT_TYPE, "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        let mut response = request.send(body).map_err(|error| self.failed(error))?;
        let (status, headers) = (response.status().as_u16(), response.headers());
        let retry_after = retry_after::of(headers);
        let location = headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let limit = self.max_response_bytes;
        let mut body = Vec::new();
        // One byte more than is taken, to tell an answer that is as long as the limit from a longer one.
        let mut reader = response.body_mut().with_config().limit(u64::MAX).reader().take(limit as u64 + 1);
        reader.read_to_end(&mut body).map_err(|error| self.failed(error.into()))?;
        if body.len() > limit {
            return Err(ApiProblem::ResponseTooLong { limit });
        }
        Ok(Response { status, retry_after, location, body })
    }

    /// An error of the network client as a problem; both ways in which it reports a timeout are
    /// one.
    fn failed(&self, error: ureq::Error) -> ApiProblem {
        let timeout = ApiProblem::Timeout { after: self.timeout };
        match error {
            ureq::Error::Timeout(_) => timeout,
            ureq::Error::Io(error) if error.kind() == ErrorKind::TimedOut => timeout,
            // Whoever accepted the connection closed it, or does not speak HTTP as it should; another row may fare better.
            ureq::Error::Io(error) if BROKEN.contains(&error.kind()) => ApiProblem::Broken { source: error.into() },
            ureq::Error::Protocol(error) => ApiProblem::Broken { source: error.into() },
            error @ ureq::Error::LargeResponseHeader(..) => ApiProblem::Broken { source: error.into() },
            other => ApiProblem::Connection { source: other.into() },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn requests_go_by_way_of_the_proxy() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://me:pass@{}", listener.local_addr().unwrap());
        let served = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut seen = String::new();
            for (end, answer) in [
                ("\r\n\r\n", "HTTP/1.1 200 Connected\r\n\r\n"),
                ("{}", "HTTP/1.1 200 Said\r\nContent-Length: 4\r\n\r\ntrue"),
            ] {
                while !seen.ends_with(end) {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    seen.push(char::from(byte[0]));
                }
                stream.write_all(answer.as_bytes()).unwrap();
            }
            seen
        });
        let url: Uri = "http://service.invalid/v1/chat/completions".parse().unwrap();
        let proxy = proxy::find(&url, |name| (name == "HTTP_PROXY").then(|| address.clone())).unwrap();
        let transport = Transport::by_way_of(proxy, RootCerts::WebPki, url, &ApiSettings::default());
        let response = transport.post(b"{}").unwrap();
        assert_eq!((response.status, &response.body[..]), (200, &b"true"[..]));
        let seen = served.join().unwrap();
        assert!(
            seen.starts_with("CONNECT service.invalid:80 ") && seen.contains("POST /v1/chat/completions"),
            "{seen}"
        );
        assert!(seen.to_lowercase().contains("proxy-authorization: basic bwu6cgfzcw=="), "{seen}");
    }
}
