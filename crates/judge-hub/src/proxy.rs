//! The proxy that the environment names for an address.
//!
//! | variable | which addresses |
//! |---|---|
//! | `HTTPS_PROXY`, `HTTP_PROXY` | those of `https`, those of `http` |
//! | `ALL_PROXY` | those whose own variable is not set |
//! | `NO_PROXY` | none of these hosts, separated by commas, and of the hosts below them; `*` is all |
//!
//! A name in lower case counts where the one in capitals is not set. The network client has a rule of its own, one proxy for every
//! address. It is not used: a service at `http://localhost` would be asked through the proxy for the world outside.

use ureq::Proxy;

/// A variable holds no proxy's address. It is not shown, since it may have a password in it.
#[derive(Debug, thiserror::Error)]
#[error("{variable} is no address of a proxy: expected http://HOST:PORT or socks5://HOST:PORT")]
pub(crate) struct ProxyProblem {
    /// The variable.
    pub(crate) variable: &'static str,
}

/// The proxy for addresses of `https`, or of `http`; `None` if none is named.
pub(crate) fn of_environment(is_https: bool) -> Result<Option<Proxy>, ProxyProblem> {
    find(is_https, |variable| std::env::var(variable).ok())
}

/// The same of any variables.
pub(crate) fn find(is_https: bool, value: impl Fn(&str) -> Option<String>) -> Result<Option<Proxy>, ProxyProblem> {
    let value = |variable: &'static str| {
        let text = value(variable)?.trim().to_owned();
        (!text.is_empty()).then_some((variable, text))
    };
    let own = if is_https { ["HTTPS_PROXY", "https_proxy"] } else { ["HTTP_PROXY", "http_proxy"] };
    let named = own.into_iter().chain(["ALL_PROXY", "all_proxy"]).find_map(value);
    let Some((variable, address)) = named else { return Ok(None) };
    let problem = |_| ProxyProblem { variable };
    let named = Proxy::new(&address).map_err(problem)?;
    let mut proxy = Proxy::builder(named.protocol()).host(named.host()).port(named.port());
    proxy = proxy.resolve_target(named.resolve_target());
    if let Some(name) = named.username() {
        proxy = proxy.username(name);
    }
    if let Some(password) = named.password() {
        proxy = proxy.password(password);
    }
    let (_, except) = ["NO_PROXY", "no_proxy"].into_iter().find_map(value).unwrap_or_default();
    for host in except.split(',').map(str::trim) {
        let host = host.strip_prefix('*').filter(|rest| !rest.is_empty()).unwrap_or(host);
        let host = host.strip_prefix('.').unwrap_or(host);
        if !host.is_empty() {
            proxy = proxy.no_proxy(host).no_proxy(&format!(".{host}"));
        }
    }
    proxy.build().map(Some).map_err(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(is_https: bool, variables: &[(&str, &str)]) -> Result<Option<Proxy>, String> {
        let value =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        find(is_https, value).map_err(|problem| problem.to_string())
    }

    #[test]
    fn each_kind_of_address_has_its_variable() {
        let all = [("HTTPS_PROXY", "http://s:1"), ("HTTP_PROXY", "http://h:2"), ("ALL_PROXY", "socks5://a:3")];
        let host = |is_https, variables: &[(&str, &str)]| {
            found(is_https, variables).unwrap().map(|proxy| format!("{}:{}", proxy.host(), proxy.port()))
        };
        assert_eq!(host(true, &all), Some("s:1".to_owned()));
        assert_eq!(host(false, &all), Some("h:2".to_owned()));
        assert_eq!(host(false, &[all[0], all[2]]), Some("a:3".to_owned()));
        assert_eq!(host(false, &all[..1]), None);
        assert_eq!(host(false, &[("HTTP_PROXY", " "), ("http_proxy", "http://l:4")]), Some("l:4".to_owned()));
        assert_eq!(host(true, &[]), None);
        let with_user = found(true, &[("HTTPS_PROXY", "http://me:p%40ss@s:1")]).unwrap().unwrap();
        assert_eq!((with_user.username(), with_user.password()), (Some("me"), Some("p@ss")));
        let wrong = found(true, &[("ALL_PROXY", "ftp://me:hidden@s")]).unwrap_err();
        assert!(wrong.starts_with("ALL_PROXY is no address of a proxy") && !wrong.contains("hidden"), "{wrong}");
    }

    #[test]
    fn hosts_are_excepted_with_those_below_them() {
        let is_direct = |except: &str, address: &str| {
            let proxy = found(false, &[("HTTP_PROXY", "http://h:2"), ("NO_PROXY", except)]).unwrap().unwrap();
            proxy.is_no_proxy(&address.parse().unwrap())
        };
        for except in ["a.example", ".a.example", "*.a.example", "localhost, a.example ,", "*"] {
            assert!(is_direct(except, "http://a.example/v1") && is_direct(except, "http://b.a.example:80"), "{except}");
        }
        assert!(is_direct("localhost, 127.0.0.1", "http://127.0.0.1:8000/v1"));
        for except in ["", ",", "a.example", "b.example"] {
            assert!(!is_direct(except, "http://ba.example/v1"), "{except}");
        }
    }
}
