//! How long a server asks to be left alone: the header `Retry-After`.
//!
//! Services (`api`) and the hub (`hub`) send it. Pure but for one look at the clock. Who asked decides whether to wait that long.

mod http_date;

use std::time::{Duration, SystemTime};

/// What a `Retry-After` header asks for: seconds, whole or not, or a date. A date is compared with `date`, the answer's own `Date`
/// header, where that can be read, and with this machine's clock where not. A date that has passed asks for no wait.
/// [`Duration::MAX`] for more seconds than a clock holds. `None` for a header that is neither, or that names a negative number of seconds.
pub(crate) fn retry_after(header: &str, date: Option<&str>) -> Option<Duration> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<f64>() {
        // A number of seconds that no clock holds is too long, not none; `inf` and `NaN` are no numbers of seconds.
        let is_number = header.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        return Duration::try_from_secs_f64(seconds).ok().or(is_number.then_some(Duration::MAX));
    }
    let until = http_date::parse(header)?;
    let now = date.and_then(http_date::parse).unwrap_or_else(SystemTime::now);
    Some(until.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
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
        for wrong in ["", "-1", "NaN", "soon", "inf"] {
            assert_eq!(retry_after(wrong, now), None, "{wrong}");
        }
    }
}
