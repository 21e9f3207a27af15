//! The day that templates see, and C's `strftime` for it.
//!
//! `Template::new` gives a [`Date`] to the template function `strftime_now`, which calls [`Date::format`]. The clock is never read,
//! so that a prompt is the same on any day. All arithmetic is on the proleptic Gregorian calendar, years 1 to 9999,
//! as in Python's `datetime`.

use std::fmt;
use std::str::FromStr;

use super::fault::{TemplateError, refuse};

/// The day that a template sees where it asks for today's date.
///
/// It is a setting, never the clock, so that the same input gives the same prompt on any day. It is
/// written `YYYY-MM-DD`, and the default is 2025-01-01. Every value is a real day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Date {
    /// 1 to 9999.
    year: i32,
    /// 1 to 12.
    month: u32,
    /// 1 to the last day of the month.
    day: u32,
}

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

/// Names in C's own locale, January first. The first three letters are the short names.
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Names in C's own locale, by [`Date::weekday`]. The first three letters are the short names.
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

impl Date {
    /// Upper bound on the bytes that [`format`](Self::format) writes for each byte of its format.
    /// The longest directives, such as `%c`, write one full date. `strftime_now` charges the budget
    /// with it before it formats.
    pub(crate) const LONGEST: usize = "Wednesday September 31 00:00:00 9999".len();

    /// A day of the Gregorian calendar, years 1 to 9999; `None` if there is no such day.
    pub fn new(year: i32, month: u32, day: u32) -> Option<Self> {
        let valid = (1..=9999).contains(&year) && (1..=12).contains(&month) && day >= 1 && day <= days(year, month);
        valid.then_some(Self { year, month, day })
    }

    /// Days since 1 January of the same year: 0 to 365.
    fn day_of_year(self) -> u32 {
        (1..self.month).map(|month| days(self.year, month)).sum::<u32>() + self.day - 1
    }

    /// Day of the week: 0 is Sunday, 6 is Saturday.
    fn weekday(self) -> u32 {
        let before = self.year - 1;
        let days_before = before * 365 + before / 4 - before / 100 + before / 400;
        // 1 January of year 1 was a Monday.
        (days_before as u32 + self.day_of_year() + 1) % 7
    }

    /// The year and the week of ISO 8601: weeks begin on Monday, and 1 is the first that has a
    /// Thursday in the year. Around New Year the year may be the one before or after.
    fn iso_week(self) -> (i32, u32) {
        let monday_first = (self.weekday() + 6) % 7;
        // The week belongs to the year that its Thursday is in.
        let thursday = self.day_of_year() as i32 + 3 - monday_first as i32;
        if thursday < 0 {
            let year = self.year - 1;
            (year, ((thursday + year_days(year)) / 7 + 1) as u32)
        } else if thursday >= year_days(self.year) {
            (self.year + 1, 1)
        } else {
            (self.year, (thursday / 7 + 1) as u32)
        }
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
        let number = |value: i64, width: usize, pad: char| match flag {
            Some('-') => value.to_string(),
            Some('_') => format!("{value:>width$}"),
            Some('0') => format!("{value:0>width$}"),
            _ if pad == ' ' => format!("{value:>width$}"),
            _ => format!("{value:0>width$}"),
        };
        let name = |text: &str| if matches!(flag, Some('^' | '#')) { text.to_uppercase() } else { text.to_owned() };
        let day_of_year = self.day_of_year() as i64;
        let weekday = self.weekday() as i64;
        let weekday_name = WEEKDAYS[weekday as usize];
        let month_name = MONTHS[self.month as usize - 1];
        Some(match code {
            'Y' => number(self.year.into(), if cfg!(target_os = "linux") { 1 } else { 4 }, '0'),
            'C' => number((self.year / 100).into(), 2, '0'),
            'y' => number((self.year % 100).into(), 2, '0'),
            'm' => number(self.month.into(), 2, '0'),
            'd' => number(self.day.into(), 2, '0'),
            'e' => number(self.day.into(), 2, ' '),
            'j' => number(day_of_year + 1, 3, '0'),
            'H' | 'M' | 'S' => number(0, 2, '0'),
            'k' => number(0, 2, ' '),
            'I' => number(12, 2, '0'),
            'l' => number(12, 2, ' '),
            'f' if flag.is_none() => "000000".to_owned(),
            'p' => if flag == Some('#') { "am" } else { "AM" }.to_owned(),
            'P' => "am".to_owned(),
            'A' => name(weekday_name),
            'a' => name(&weekday_name[..3]),
            'B' => name(month_name),
            'b' | 'h' => name(&month_name[..3]),
            'w' => number(weekday, 1, '0'),
            'u' => number(if weekday == 0 { 7 } else { weekday }, 1, '0'),
            'U' => number((day_of_year + 7 - weekday) / 7, 2, '0'),
            'W' => number((day_of_year + 7 - (weekday + 6) % 7) / 7, 2, '0'),
            'V' => number(self.iso_week().1.into(), 2, '0'),
            'G' => number(self.iso_week().0.into(), 1, '0'),
            'g' => number((self.iso_week().0 % 100).into(), 2, '0'),
            'F' => self.format("%Y-%m-%d").ok()?,
            'D' | 'x' => self.format("%m/%d/%y").ok()?,
            'T' | 'X' => "00:00:00".to_owned(),
            'R' => "00:00".to_owned(),
            'r' => "12:00:00 AM".to_owned(),
            'c' => {
                let text = self.format("%a %b %e %H:%M:%S %Y").ok()?;
                if flag == Some('^') { text.to_uppercase() } else { text }
            }
            'z' | 'Z' => String::new(),
            'n' => "\n".to_owned(),
            't' => "\t".to_owned(),
            '%' => "%".to_owned(),
            _ => return None,
        })
    }
}

impl Default for Date {
    /// 1 January 2025.
    fn default() -> Self {
        Self { year: 2025, month: 1, day: 1 }
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl FromStr for Date {
    type Err = DateError;

    /// Reads `YYYY-MM-DD`, with exactly four, two and two ASCII digits.
    ///
    /// # Errors
    /// [`DateError`] for any other form, and for a day that does not exist.
    fn from_str(text: &str) -> Result<Self, DateError> {
        let mut parts = text.split('-');
        let mut part = |width: usize| {
            parts
                .next()
                .filter(|p| p.len() == width && p.bytes().all(|b| b.is_ascii_digit()))
                .and_then(|p| p.parse::<u32>().ok())
        };
        match (part(4), part(2), part(2), parts.next()) {
            (Some(year), Some(month), Some(day), None) => Self::new(year as i32, month, day),
            _ => None,
        }
        .ok_or_else(|| DateError { found: text.to_owned() })
    }
}

/// Whether a year of the Gregorian calendar has a 29 February.
fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days of a year: 365 or 366.
fn year_days(year: i32) -> i32 {
    if is_leap(year) { 366 } else { 365 }
}

/// Days of a month, 1 to 12, of a year.
fn days(year: i32, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
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
