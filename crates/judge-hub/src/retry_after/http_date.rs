//! The dates of HTTP headers, as `retry_after` reads them in `Retry-After` and `Date`.
//!
//! ```text
//! Sun, 06 Nov 1994 08:49:37 GMT      day, month and year; hour, minute and second; always GMT
//! ```
//!
//! RFC 9110 (5.6.7) has two obsolete forms besides, which servers must not write. They are not read
//! here: a header in such a form counts as absent.

use std::time::{Duration, SystemTime};

/// Names of the months as HTTP writes them.
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A date such as `Sun, 06 Nov 1994 08:49:37 GMT`, the only form that RFC 9110 lets servers write,
/// from 1970 on. `None` for another form or a field out of range; a leap second is accepted.
///
/// The day of the week is not checked, nor is the day against the length of its month: 31 February
/// is some day in March.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let (_, rest) = text.trim().split_once(", ")?;
    let mut parts = rest.split(' ');
    let mut part = || parts.next();
    let (day, month, year, time, zone) = (part()?, part()?, part()?, part()?, part()?);
    if part().is_some() || zone != "GMT" || year.len() != 4 {
        return None;
    }
    let number = |text: &str, most: u64| text.parse::<u64>().ok().filter(|number| text.len() == 2 && *number <= most);
    let mut clock = time.split(':');
    let mut unit = |most| number(clock.next()?, most);
    let (hour, minute, second) = (unit(23)?, unit(59)?, unit(60)?);
    let month = MONTHS.iter().position(|&name| name == month)?;
    let day = number(day, 31).filter(|&day| day > 0)?;
    let days = days_before(year.parse().ok()?, month)?.checked_add(day - 1)?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(((days * 24 + hour) * 60 + minute) * 60 + second))
}

/// Days from 1 January 1970 to the first day of a month (from 0) in the Gregorian calendar; `None`
/// before 1970.
fn days_before(year: u64, month: usize) -> Option<u64> {
    const DAYS: [u64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = year.checked_sub(1)?;
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let is_leap = leap_days(year) > leap_days(before);
    let whole_years = year.checked_sub(1970)? * 365 + leap_days(before) - leap_days(1969);
    Some(whole_years + DAYS[..month].iter().sum::<u64>() + u64::from(is_leap && month > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_seconds() {
        // `date -u -d '…' +%s` of GNU coreutils
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799),
            ("Thu, 01 Mar 2096 00:00:00 GMT", 3_981_398_400),
            ("Fri, 31 Dec 2100 12:00:00 GMT", 4_133_937_600),
        ] {
            assert_eq!(parse(text), Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)), "{text}");
        }
        for wrong in [
            "",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "x, 06 Nov 1969 08:49:37 GMT",
            "Sun, 06 Nov 1994 25:49:37 GMT",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
