//! The proxy that the environment names for an address.
//!
//! | variable | which addresses |
//! |---|---|
//! | `HTTPS_PROXY`, `HTTP_PROXY` | those of `https`, those of `http` |
//! | `ALL_PROXY` | those whose own variable is not set |
//! | `NO_PROXY` | none of these, separated by commas |
//!
//! An entry of `NO_PROXY` is a host, with those below it, or a network, such as `10.0.0.0/8`; each alone or with the one port that it is
//! of (`:PORT`). A `*` at the end of a name is any rest.
//!
//! A name in lower case counts where the one in capitals is not set. The network client has a rule of its own, one proxy for every
//! address, with exceptions by names alone. It is not used: a service at `http://localhost` would be asked through the proxy for the
//! world outside.

use core::net::IpAddr;

use ureq::Proxy;
use ureq::http::Uri;

use crate::agent::{self, VariableProblem};

/// The proxy for an address; `None` if none is named.
pub(crate) fn of_environment(address: &Uri) -> Result<Option<Proxy>, VariableProblem> {
    find(address, |variable| std::env::var(variable).ok())
}

/// The same of any variables.
pub(crate) fn find(address: &Uri, value: impl Fn(&str) -> Option<String>) -> Result<Option<Proxy>, VariableProblem> {
    let value = |variable: &'static str| {
        let text = value(variable)?.trim().to_owned();
        (!text.is_empty()).then_some((variable, text))
    };
    let is_https = address.scheme_str() == Some("https");
    let own = if is_https { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
    let named = own.into_iter().chain(["ALL_PROXY", "all_proxy"]).find_map(value);
    let Some((variable, text)) = named else { return Ok(None) };
    let proxy = Proxy::new(&text).ok().filter(|proxy| proxy.uri().authority().is_some_and(agent::has_port));
    let proxy = proxy.ok_or_else(|| VariableProblem {
        variable,
        problem: "is no address of a proxy: expected http://HOST:PORT or socks5://HOST:PORT".to_owned(),
    })?;
    let Some((variable, except)) = ["NO_PROXY", "no_proxy"].into_iter().find_map(value) else { return Ok(Some(proxy)) };
    let host = address.host().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase();
    let mut is_direct = false;
    for entry in except.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        is_direct |= covers(entry, &host, agent::port(address)).ok_or_else(|| VariableProblem {
            variable,
            problem: format!(
                "has {entry:?}, expected a host or a network such as 10.0.0.0/8, each alone or with :PORT"
            ),
        })?;
    }
    Ok((!is_direct).then_some(proxy))
}

/// Whether an entry of `NO_PROXY` is of a host and port; `None` for a network or a port that is none.
fn covers(entry: &str, host: &str, port: u16) -> Option<bool> {
    let (name, is_port) = match entry.rsplit_once(':') {
        // An address of IPv6 has colons of its own.
        Some((name, digits)) if !name.contains(':') || name.ends_with(']') => {
            (name, digits.parse::<u16>().ok()? == port)
        }
        _ => (entry, true),
    };
    let name = name.trim_matches(['[', ']']).to_ascii_lowercase();
    let address = host.parse::<IpAddr>().ok();
    let is_host = if let Some((network, bits)) = name.split_once('/') {
        is_in(network.parse().ok()?, bits.parse().ok()?, address)?
    } else if let Some(begin) = name.strip_suffix('*') {
        host.starts_with(begin)
    } else if let Ok(of) = name.parse::<IpAddr>() {
        address == Some(of)
    } else {
        let name = name.trim_start_matches('*').trim_start_matches('.');
        host.strip_suffix(name).is_some_and(|below| below.is_empty() || below.ends_with('.'))
    };
    Some(is_port && is_host)
}

/// Whether an address is in the network whose addresses begin with the same `bits`; `None` for more bits than an address has.
fn is_in(network: IpAddr, bits: u32, address: Option<IpAddr>) -> Option<bool> {
    let is_in = match (network, address) {
        (IpAddr::V4(network), Some(IpAddr::V4(at))) => (network.to_bits() ^ at.to_bits()).leading_zeros() >= bits,
        (IpAddr::V6(network), Some(IpAddr::V6(at))) => (network.to_bits() ^ at.to_bits()).leading_zeros() >= bits,
        _ => false,
    };
    (bits <= if network.is_ipv4() { 32 } else { 128 }).then_some(is_in)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(address: &str, variables: &[(&str, &str)]) -> Result<Option<Proxy>, String> {
        let value =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        find(&address.parse().unwrap(), value).map_err(|problem| problem.to_string())
    }

    #[test]
    fn each_kind_of_address_has_its_variable() {
        let all = [("HTTPS_PROXY", "http://s:1"), ("HTTP_PROXY", "http://h:2"), ("ALL_PROXY", "socks5://a:3")];
        let (http, https) = ("http://x", "https://x");
        let host = |address, variables: &[(&str, &str)]| {
            found(address, variables).unwrap().map(|proxy| format!("{}:{}", proxy.host(), proxy.port()))
        };
        assert_eq!(host(https, &all), Some("s:1".to_owned()));
        assert_eq!(host(http, &all), Some("h:2".to_owned()));
        assert_eq!(host(http, &[all[0], all[2]]), Some("a:3".to_owned()));
        assert_eq!(host(http, &all[..1]), None);
        assert_eq!(host(http, &[("HTTP_PROXY", " "), ("http_proxy", "http://l:4")]), Some("l:4".to_owned()));
        assert_eq!(host(https, &[]), None);
        let with_user = found(https, &[("HTTPS_PROXY", "http://me:p%40ss@s:1")]).unwrap().unwrap();
        assert_eq!((with_user.username(), with_user.password()), (Some("me"), Some("p@ss")));
        for wrong in ["ftp://me:hidden@s", "http://me:hidden@s:80000", "me:hidden@s:PORT"] {
            let said = found(https, &[("ALL_PROXY", wrong)]).unwrap_err();
            assert!(said.starts_with("ALL_PROXY is no address of a proxy") && !said.contains("hidden"), "{said}");
        }
    }

    #[test]
    fn hosts_are_excepted_with_those_below_them() {
        let is_direct = |except: &str, address: &str| {
            found(address, &[("HTTP_PROXY", "http://h:2"), ("NO_PROXY", except)]).unwrap().is_none()
        };
        for except in ["a.example", ".A.example", "*.a.example", "localhost, a.example ,", "*", "a.example:80"] {
            let below = "http://b.a.example:80";
            assert!(is_direct(except, "http://a.example/v1") && is_direct(except, below), "{except}");
        }
        for except in ["", ",", "a.example", "b.example", "ba.example:8000", "10.0.0.0/8"] {
            assert!(!is_direct(except, "http://ba.example/v1"), "{except}");
        }
        let here = "http://127.0.0.1:8000/v1";
        let of_here =
            ["127.0.0.1", "127.0.0.1:8000", "127.0.0.0/8", "127.0.0.0/8:8000", "0.0.0.0/0", "127.0.0.1/32", "127.*"];
        for except in of_here {
            assert!(is_direct(&format!("localhost, {except}"), here), "{except}");
        }
        for except in ["127.0.0.1:80", "126.0.0.0/8", "127.0.0.0/32", "::/0", "7.0.0.1", "127.0.0.0/8:80"] {
            assert!(!is_direct(except, here), "{except}");
        }
        for except in ["::1", "[::1]", "[::1]:8000", "::/64"] {
            assert!(is_direct(except, "http://[::1]:8000"), "{except}");
        }
        for except in ["[::1]:80", "fd00::/8", "0.0.0.0/0"] {
            assert!(!is_direct(except, "http://[::1]:8000"), "{except}");
        }
    }

    #[test]
    fn an_exception_in_no_known_form_is_refused() {
        for wrong in ["10.0.0.0/33", "fd00::/129", "10.0/8", "http://a", "a:http", "a:80000"] {
            let except = format!("localhost,{wrong}");
            let said = found("http://localhost", &[("HTTP_PROXY", "http://h:2"), ("NO_PROXY", &except)]).unwrap_err();
            assert!(said.starts_with(&format!("NO_PROXY has {wrong:?}, expected a host or a network")), "{said}");
        }
    }
}
