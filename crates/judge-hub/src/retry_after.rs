//! How long a server asks to be left alone: the headers `Retry-After` and `RateLimit`.
//!
//! Services (`api`) and the hub (`hub`) send them. Pure but for one look at the clock. Who asked decides whether to wait that long.

use std::time::{Duration, SystemTime};

use ureq::http::HeaderMap;
use ureq::http::header::{DATE, RETRY_AFTER};

/// What an answer asks for: its `Retry-After`, or else its `RateLimit`.
pub(crate) fn of(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let asked = text(RETRY_AFTER.as_str()).and_then(|header| retry_after(header, text(DATE.as_str())));
    asked.or_else(|| text("ratelimit").and_then(rate_limit))
}

/// What a `Retry-After` header asks for: seconds, whole or not, or a date. A date is compared with `date`, the answer's own `Date`
/// header, where that can be read, and with this machine's clock where not. A date that has passed asks for no wait.
/// [`Duration::MAX`] for more seconds than a clock holds. `None` for a header that is neither, or that names a negative number of seconds.
fn retry_after(header: &str, date: Option<&str>) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        // A number of seconds that no clock holds is too long, not none; `inf` and `NaN` are no numbers of seconds.
        let is_number = header.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        return Duration::try_from_secs_f64(seconds).ok().or(is_number.then_some(Duration::MAX));
    }
    let parse = |date: &str| httpdate::parse_http_date(date.trim()).ok();
    let now = date.and_then(parse).unwrap_or_else(SystemTime::now);
    Some(parse(header)?.duration_since(now).unwrap_or_default())
}

/// What a `RateLimit` header asks for, `"api";r=0;t=3`: the seconds `t` after which more may be asked, of limits of which nothing is left.
fn rate_limit(header: &str) -> Option<Duration> {
    let seconds = |limit: &str| {
        let number = |name: &str| {
            let mut fields = limit.split(';').filter_map(|field| field.split_once('='));
            fields.find(|(known, _)| known.trim() == name)?.1.trim().parse::<u64>().ok()
        };
        number("r").filter(|&left| left == 0).and_then(|_| number("t"))
    };
    header.split(',').filter_map(seconds).max().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use ureq::http::{HeaderName, HeaderValue};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn servers_ask_for_seconds_or_for_a_date() {
        let now = Some("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(retry_after(" 7 ", now), Some(7 * SECOND));
        assert_eq!(retry_after("0.25", None), Some(SECOND / 4));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:50:07 GMT", now), Some(30 * SECOND));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:07 GMT", now), Some(Duration::ZERO));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:49:07 GMT", None), Some(Duration::ZERO));
        assert_eq!(retry_after("99999999999999999999", None), Some(Duration::MAX));
        assert_eq!(retry_after(&"9".repeat(400), None), Some(Duration::MAX));
        for wrong in ["", "-1", "NaN", "soon", "inf", "Sun, 06 Nov 1994 25:49:37 GMT"] {
            assert_eq!(retry_after(wrong, now), None, "{wrong}");
        }
    }

    #[test]
    fn a_limit_that_is_used_up_says_when_it_is_not() {
        let asked = |pairs: &[(&'static str, &'static str)]| {
            let header = |&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value));
            of(&pairs.iter().map(header).collect::<HeaderMap>())
        };
        let limit = ("ratelimit", r#""api";r=0;t=3"#);
        assert_eq!(asked(&[limit]), Some(3 * SECOND));
        assert_eq!(asked(&[limit, ("retry-after", "7")]), Some(7 * SECOND));
        assert_eq!(
            asked(&[("ratelimit", r#""api"; r = 0; t = 3, "files";r=0;t=9, "pages";r=5;t=99"#)]),
            Some(9 * SECOND)
        );
        for none in [r#""api";r=4;t=3"#, r#""api";r=0"#, "limit=100, remaining=0, reset=30", ""] {
            assert_eq!(asked(&[("ratelimit", none)]), None, "{none}");
        }
    }
}
