//! What both clients set alike.

use std::io::ErrorKind;

use ureq::Proxy;
use ureq::config::ConfigBuilder;
use ureq::http::HeaderValue;
use ureq::typestate::AgentScope;

/// Errors of a connection that was there.
pub(crate) const BROKEN: [ErrorKind; 4] =
    [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::ConnectionAborted, ErrorKind::BrokenPipe];

/// The network client, by way of a proxy: it follows no redirect, has no errors of statuses, and asks for bytes as they are, since limits
/// and parts of files count those.
pub(crate) fn config(proxy: Option<Proxy>) -> ConfigBuilder<AgentScope> {
    ureq::Agent::config_builder()
        .proxy(proxy)
        .http_status_as_error(false)
        .max_redirects(0)
        .accept_encoding("identity")
        .user_agent(concat!("judge-models/", env!("CARGO_PKG_VERSION")))
}

/// The value of a header that is not shown; `None` for a text that no header can carry.
pub(crate) fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// What is quoted of a body: its text; of one that is compressed although nobody asked for it, that it is.
pub(crate) fn quoted(body: &[u8]) -> String {
    match body {
        [0x1f, 0x8b, ..] => "a body compressed with gzip, where an uncompressed one was asked for".to_owned(),
        _ => String::from_utf8_lossy(body).trim().to_owned(),
    }
}
