//! What both clients set alike: the network client, the authorities that it trusts, and which texts are addresses.

use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::num::NonZeroU16;
use std::path::Path;

use ureq::config::ConfigBuilder;
use ureq::http::uri::Authority;
use ureq::http::{HeaderValue, Uri};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::AgentScope;

/// Errors of a connection that was there.
pub(crate) const BROKEN: [ErrorKind; 4] =
    [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::ConnectionAborted, ErrorKind::BrokenPipe];

/// A variable of the environment cannot be used. An address in it is not shown, since it may have a password in it.
#[derive(Debug, thiserror::Error)]
#[error("{variable} {problem}")]
pub(crate) struct VariableProblem {
    /// The variable.
    pub(crate) variable: &'static str,
    /// What is wrong with it, and what was expected.
    pub(crate) problem: String,
}

/// The network client that trusts these authorities: it has no proxy yet, follows no redirect, has no errors of statuses, and asks for
/// bytes as they are, since limits and parts of files count those.
pub(crate) fn config(authorities: RootCerts) -> ConfigBuilder<AgentScope> {
    ureq::Agent::config_builder()
        .proxy(None)
        .tls_config(TlsConfig::builder().root_certs(authorities).build())
        .http_status_as_error(false)
        .max_redirects(0)
        .accept_encoding("identity")
        .user_agent(concat!("judge-models/", env!("CARGO_PKG_VERSION")))
}

/// The authorities whose certificates count: those of the file that `SSL_CERT_FILE` names, in the place of the built-in ones, which are
/// Mozilla's.
pub(crate) fn authorities() -> Result<RootCerts, VariableProblem> {
    match std::env::var_os("SSL_CERT_FILE").filter(|path| !path.is_empty()) {
        Some(path) => authorities_of(Path::new(&path)),
        None => Ok(RootCerts::WebPki),
    }
}

/// The authorities of a file of certificates.
fn authorities_of(path: &Path) -> Result<RootCerts, VariableProblem> {
    let problem = || {
        let problem = format!("names {}, expected a file of certificates (PEM) that can be read", path.display());
        VariableProblem { variable: "SSL_CERT_FILE", problem }
    };
    let items = parse_pem(&fs::read(path).map_err(|_| problem())?).collect::<Result<Vec<_>, _>>();
    let certificate = |item| if let PemItem::Certificate(found) = item { Some(found) } else { None };
    let found: Vec<_> = items.map_err(|_| problem())?.into_iter().filter_map(certificate).collect();
    if found.is_empty() { Err(problem()) } else { Ok(RootCerts::new_with_certs(&found)) }
}

/// What to do about a certificate that nobody vouches for, as the end of a message of the network client.
pub(crate) fn advice(error: &impl Display) -> &'static str {
    match error.to_string().contains("invalid peer certificate") {
        true => ": SSL_CERT_FILE can name a file with the certificates of the authorities to trust",
        false => "",
    }
}

/// The parts of an address of the web, or what was expected of it.
///
/// A port that is no number is refused here: `Uri` keeps any text, and whoever asks it for the port is then told of none, so that a
/// request would go to port 80 or 443 of the host.
pub(crate) fn address(text: &str) -> Result<Uri, &'static str> {
    let form = "expected the form https://HOST or http://HOST";
    let uri: Uri = text.parse().map_err(|_| form)?;
    let is_web = matches!(uri.scheme_str(), Some("https" | "http"));
    let authority = uri.authority().filter(|authority| is_web && !authority.host().is_empty());
    let has_port = has_port(authority.ok_or(form)?);
    if has_port { Ok(uri) } else { Err("its port is no number from 1 to 65535") }
}

/// Whether the port of an authority is a number from 1 to 65535, if it names one.
pub(crate) fn has_port(authority: &Authority) -> bool {
    let named = authority.as_str().rsplit('@').next().unwrap_or_default();
    let port = named.strip_prefix(authority.host()).unwrap_or_default();
    let is_number = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit()) && digits.parse::<NonZeroU16>().is_ok();
    port.is_empty() || port.strip_prefix(':').is_some_and(is_number)
}

/// The port that a request to an address goes to.
pub(crate) fn port(address: &Uri) -> u16 {
    address.port_u16().unwrap_or(if address.scheme_str() == Some("https") { 443 } else { 80 })
}

/// A text that should be an address, as errors show it. User, password, query and fragment are left out, since any of them may be a
/// secret.
pub(crate) fn shown(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    match (text.split_once("://"), text.rfind('@')) {
        (Some((scheme, _)), Some(at)) => format!("{scheme}://{}", &text[at + 1..]),
        (None, Some(at)) => text[at + 1..].to_owned(),
        (_, None) => text.to_owned(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_a_number_or_there_is_none() {
        for right in ["http://a", "https://a:1/v1", "http://[::1]:65535", "http://me:pw@a:80", "http://[::1]/a:b"] {
            assert!(address(right).is_ok(), "{right}");
        }
        for port in ["80000", "65536", "0", "-1", "93051x", "PORT", "", "+80"] {
            for host in ["127.0.0.1", "[::1]", "me:pw@a"] {
                let wrong = format!("http://{host}:{port}/v1");
                assert_eq!(address(&wrong).unwrap_err(), "its port is no number from 1 to 65535", "{wrong}");
            }
        }
        for wrong in ["a", "a/v1", "ftp://a", "http://", "http:///v1", "http://:80", "/v1"] {
            assert!(address(wrong).unwrap_err().starts_with("expected the form"), "{wrong}");
        }
    }

    #[test]
    fn a_file_of_certificates_takes_the_place_of_the_built_in_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.pem");
        let found = |text: &str| {
            fs::write(&path, text).unwrap();
            authorities_of(&path).map_err(|problem| problem.to_string())
        };
        let one = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        let RootCerts::Specific(two) = found(&format!("# of the house\n{one}{one}")).unwrap() else { panic!() };
        assert_eq!(two.len(), 2);
        for wrong in ["", "no certificate", &one[..40]] {
            let said = found(wrong).unwrap_err();
            assert!(said.starts_with("SSL_CERT_FILE names ") && said.contains("expected a file"), "{said}");
        }
        assert!(authorities_of(&folder.path().join("none")).is_err());
    }
}
