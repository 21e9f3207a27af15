//! The day that templates see, and C's `strftime` for it.
//!
//! `Template::new` gives a [`Date`] to the template function `strftime_now`, which calls [`Date::format`]. The clock is never read,
//! so that a prompt is the same on any day. The calendar is that of the crate `chrono`, the proleptic Gregorian one, in the years
//! 1 to 9999 of Python's `datetime`.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike as _, NaiveDate, NaiveTime};

use super::fault::{TemplateError, refuse};

/// The day that a template sees where it asks for today's date.
///
/// It is a setting, never the clock, so that the same input gives the same prompt on any day. It is
/// written `YYYY-MM-DD`, and the default is 2025-01-01. Every value is a real day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Date(NaiveDate);

/// A text is not a day of the calendar in the form `YYYY-MM-DD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DateError {
    /// The text.
    pub found: String,
}

impl fmt::Display for DateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no date, expected YYYY-MM-DD", self.found)
    }
}

impl std::error::Error for DateError {}

impl Date {
    /// Upper bound on the bytes that [`format`](Self::format) writes for each byte of its format.
    /// The longest directives, such as `%c`, write one full date. `strftime_now` charges the budget
    /// with it before it formats.
    pub(crate) const LONGEST: usize = "Wednesday September 31 00:00:00 9999".len();

    /// A day of the Gregorian calendar, years 1 to 9999; `None` if there is no such day.
    pub fn new(year: i32, month: u32, day: u32) -> Option<Self> {
        NaiveDate::from_ymd_opt(year, month, day).filter(|_| (1..=9999).contains(&year)).map(Self)
    }

    /// What `strftime` of the C library writes in its own locale (`C`), at midnight and without a
    /// time zone, as Python's naive `datetime` is formatted on the same platform.
    ///
    /// A directive is `%`, at most one of glibc's flags, and a letter.
    ///
    /// | flag | effect |
    /// |---|---|
    /// | `-` | a number without padding |
    /// | `_` | a number padded with spaces |
    /// | `0` | a number padded with zeros |
    /// | `^`, `#` | a name in upper case; `%#p` is `am` |
    ///
    /// Other directives ignore the flag. Time directives show midnight, `%f` (Python's
    /// microseconds, without a flag) is `000000`, and `%z` and `%Z` are empty.
    ///
    /// # Errors
    /// Any other directive: widths, two flags, `%s` (which depends on the time zone), the modifiers `E` and `O`, and what C does not have;
    /// and U+0000, where C ends a text.
    pub(crate) fn format(self, format: &str) -> Result<String, TemplateError> {
        if format.contains('\0') {
            return refuse("a date format with the character U+0000");
        }
        let mut text = String::new();
        let mut rest = format.chars();
        while let Some(c) = rest.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            let directive = rest.as_str();
            let flag = directive.chars().next().filter(|c| "-_0^#".contains(*c));
            let code = directive.chars().nth(usize::from(flag.is_some()));
            let Some(value) = code.and_then(|code| self.directive(code, flag)) else {
                let shown: String = directive.chars().take(1 + usize::from(flag.is_some())).collect();
                return refuse(format!("the date format %{shown}"));
            };
            text.push_str(&value);
            rest.nth(usize::from(flag.is_some()));
        }
        Ok(text)
    }

    /// The text of one directive, given by its letter and flag; `None` if there is no such
    /// directive.
    fn directive(self, code: char, flag: Option<char>) -> Option<String> {
        let shown = |directive: &str| self.0.and_time(NaiveTime::MIN).format(directive).to_string();
        Some(match (code, flag) {
            // Not padded on Linux.
            ('Y', _) if cfg!(target_os = "linux") => self.0.year().to_string(),
            ('G', _) => self.0.iso_week().year().to_string(),
            (
                'Y' | 'C' | 'y' | 'm' | 'd' | 'e' | 'j' | 'H' | 'M' | 'S' | 'k' | 'I' | 'l' | 'w' | 'u' | 'U' | 'W'
                | 'V' | 'g',
                Some(flag @ ('-' | '_' | '0')),
            ) => shown(&format!("%{flag}{code}")),
            ('A' | 'a' | 'B' | 'b' | 'h', Some('^' | '#')) => shown(&format!("%{code}")).to_uppercase(),
            ('f', None) => "000000".to_owned(),
            ('p', Some('#')) => "am".to_owned(),
            ('F', _) => self.format("%Y-%m-%d").ok()?,
            ('c', Some('^')) => self.directive(code, None)?.to_uppercase(),
            ('c', _) => self.format("%a %b %e %H:%M:%S %Y").ok()?,
            ('z' | 'Z', _) => String::new(),
            (code, _) if "YCymdejHMSkIlwuUWVgAaBbhpPDxTXRrnt%".contains(code) => shown(&format!("%{code}")),
            _ => return None,
        })
    }
}

impl Default for Date {
    /// 1 January 2025.
    fn default() -> Self {
        Self(NaiveDate::from_ymd_opt(2025, 1, 1).unwrap_or_default())
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for Date {
    type Err = DateError;

    /// Reads `YYYY-MM-DD`, with exactly four, two and two ASCII digits.
    ///
    /// # Errors
    /// [`DateError`] for any other form, and for a day that does not exist.
    fn from_str(text: &str) -> Result<Self, DateError> {
        let found = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
        let date = found.and_then(|date| Self::new(date.year(), date.month(), date.day()));
        // A day that is written otherwise, such as `2024-1-1`, is none.
        date.filter(|date| date.to_string() == text).ok_or_else(|| DateError { found: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_real_days_are_read() {
        assert_eq!("2024-02-29".parse::<Date>().unwrap().to_string(), "2024-02-29");
        for text in ["", "2023-02-29", "2024-13-01", "2024-00-10", "24-01-01", "2024-1-1", "2024-01-01-", "+024-01-01"]
        {
            assert!(text.parse::<Date>().is_err_and(|error| error.found == text), "{text}");
        }
    }

    /// Expected texts: Python's `datetime(2024, 7, 26).strftime` on Linux.
    #[test]
    fn a_directive_is_written_as_in_python_or_refused() {
        let date = Date::new(2024, 7, 26).unwrap();
        let format = "%A %-d %_m %^c %#p %f %%";
        assert_eq!(date.format(format).unwrap(), "Friday 26  7 FRI JUL 26 00:00:00 2024 am 000000 %");
        for refused in ["%Q", "%s", "a\0%Y", "%Ey", "%Od", "%10d", "%-_d", "%^^a", "%-f", "%+", "100%", "%5%", "%é"] {
            let error = date.format(refused).unwrap_err().to_string();
            assert!(error.contains("date format") && error.contains("not supported"), "{refused}: {error}");
        }
    }
}
