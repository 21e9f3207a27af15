//! What the head of a request must be, before any of its body is read.

use axum::http::request::Parts;
use hyper::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, TRANSFER_ENCODING,
};
use hyper::{StatusCode, Version};
use judge_cli::args::service::{is_loopback, is_loopback_host};

use super::refusal::Refusal;

/// What a browser says of where a request comes from.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What curl says of a body, unless told otherwise.
const CURL: &str = "application/x-www-form-urlencoded";

/// Refuses a head that is no right one: RFC 9112, 3.2 and 6.1; a body that is announced as longer than `longest`.
pub(super) fn check(parts: &Parts, longest: usize) -> Result<(), Refusal> {
    let refused = |status, kind, msg: String| Err(Refusal::new(status, kind, msg));
    let hosts = parts.headers.get_all(HOST).iter().count();
    if hosts > 1 || (hosts == 0 && parts.version == Version::HTTP_11) {
        let msg = format!("expected one Host header, found {hosts}");
        return refused(StatusCode::BAD_REQUEST, "host", msg);
    }
    let codings = all(&parts.headers, &TRANSFER_ENCODING).to_ascii_lowercase();
    if !["", "chunked"].contains(&codings.as_str()) {
        let msg = format!("expected a body that is chunked or has its length, found the transfer coding {codings:?}");
        return refused(StatusCode::NOT_IMPLEMENTED, "transfer_encoding", msg);
    }
    let codings = all(&parts.headers, &CONTENT_ENCODING).to_ascii_lowercase();
    if !["", "identity"].contains(&codings.as_str()) {
        let msg = format!("expected a body as it is, found the content coding {codings:?}; send it without");
        return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_encoding", msg);
    }
    let length = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    match length {
        Some(length) if length > longest as u64 => Err(too_long(longest)),
        _ => Ok(()),
    }
}

/// A body that is longer than it may be.
pub(super) fn too_long(longest: usize) -> Refusal {
    let msg = format!("the body is longer than {longest} bytes, which is the limit here");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_long", msg)
}

/// Refuses what a page of another site has a browser send: for a service on the loopback address that asks for no key.
pub(super) fn check_site(parts: &Parts) -> Result<(), Refusal> {
    let forbidden = |kind, msg: String| Err(Refusal::new(StatusCode::FORBIDDEN, kind, msg));
    let host = parts.headers.get(HOST).map(text);
    // A request's target may name the host too, and then that counts.
    let host = parts.uri.authority().map(|authority| authority.as_str().to_owned()).or(host);
    if let Some(host) = host.filter(|host| !is_of_this_machine(host)) {
        let msg = format!("expected a Host of this machine, such as localhost or 127.0.0.1, found {host:?}");
        return forbidden("host", msg);
    }
    let origins: Vec<String> = parts.headers.get_all(ORIGIN).iter().map(text).collect();
    if let Some(origin) = origins.iter().find(|origin| !is_loopback(origin)) {
        return forbidden("origin", format!("pages of {origin:?} are not answered, only those of this machine"));
    }
    if all(&parts.headers, &SEC_FETCH_SITE).eq_ignore_ascii_case("cross-site") {
        return forbidden("cross_site", "pages of other sites are not answered".to_owned());
    }
    let kind = parts.headers.get(CONTENT_TYPE).map(text);
    match kind {
        Some(kind) if !is_json(&kind) => {
            let msg = format!("expected a body of the type application/json, found {kind:?}");
            Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type", msg))
        }
        _ => Ok(()),
    }
}

/// The values of a header, as one list.
fn all(headers: &HeaderMap, name: &HeaderName) -> String {
    headers.get_all(name).iter().map(text).collect::<Vec<_>>().join(", ")
}

fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).trim().to_owned()
}

/// Whether a host, with or without a port, is a name of this machine.
fn is_of_this_machine(host: &str) -> bool {
    host.parse::<hyper::http::uri::Authority>().is_ok_and(|host| is_loopback_host(host.host()))
}

/// Whether a body is said to be JSON, or to be what a client says that was told nothing.
fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    [CURL, "application/json", "text/json", ""].contains(&kind.as_str())
        || (kind.starts_with("application/") && kind.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(headers: &[(&'static str, &str)]) -> Parts {
        let mut request = hyper::Request::builder().uri("/v1/systemone");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).expect("a request").into_parts().0
    }

    #[test]
    fn pages_of_other_sites_are_told_from_programs_of_this_machine() {
        for (headers, status) in [
            (&[("host", "localhost")][..], 200),
            (&[("host", "LOCALHOST:8080")], 200),
            (&[("host", "127.0.0.1:8080")], 200),
            (&[("host", "127.8.9.1")], 200),
            (&[("host", "[::1]:8080")], 200),
            (&[("host", "localhost"), ("origin", "http://localhost:3000"), ("sec-fetch-site", "same-site")], 200),
            (&[("host", "localhost"), ("content-type", "application/json; charset=utf-8")], 200),
            (&[("host", "localhost"), ("content-type", "application/vnd.api+json")], 200),
            (&[("host", "localhost"), ("content-type", CURL)], 200),
            (&[("host", "evil.example")], 403),
            (&[("host", "localhost.evil.example")], 403),
            (&[("host", "127.evil.example")], 403),
            (&[("host", "127.0.0.1@evil.example")], 403),
            (&[("host", "0.0.0.0")], 403),
            (&[("host", "")], 403),
            (&[("host", "localhost"), ("origin", "http://evil.example")], 403),
            (&[("host", "localhost"), ("origin", "null")], 403),
            (&[("host", "localhost"), ("origin", "http://localhost.evil.example")], 403),
            (&[("host", "localhost"), ("sec-fetch-site", "cross-site")], 403),
            (&[("host", "localhost"), ("content-type", "text/plain")], 415),
            (&[("host", "localhost"), ("content-type", "multipart/form-data; boundary=x")], 415),
        ] {
            let found = check_site(&parts(headers)).map_or_else(|refused| refused.status.as_u16(), |()| 200);
            assert_eq!(found, status, "{headers:?}");
        }
    }

    #[test]
    fn a_head_is_a_right_one() {
        for (headers, status) in [
            (&[("host", "x")][..], 200),
            (&[("host", "x"), ("transfer-encoding", "Chunked")], 200),
            (&[("host", "x"), ("content-length", "10")], 200),
            (&[], 400),
            (&[("host", "x"), ("host", "x")], 400),
            (&[("host", "x"), ("transfer-encoding", "gzip, chunked")], 501),
            (&[("host", "x"), ("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")], 501),
            (&[("host", "x"), ("content-encoding", "Identity")], 200),
            (&[("host", "x"), ("content-encoding", "gzip")], 415),
            (&[("host", "x"), ("content-length", "11")], 413),
        ] {
            let found = check(&parts(headers), 10).map_or_else(|refused| refused.status.as_u16(), |()| 200);
            assert_eq!(found, status, "{headers:?}");
        }
        let mut old = parts(&[]);
        old.version = Version::HTTP_10;
        assert!(check(&old, 10).is_ok());
    }
}
