//! Whether a text that was written has the right answer.

/// The right answer of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Right {
    Number(f64),
    Text(String),
}

impl Right {
    /// The last `\boxed{…}` of a reference, else what follows its last `####` (as in GSM8K's solutions), else all of it; `None` where that is
    /// empty.
    pub(super) fn of(reference: &str) -> Option<Self> {
        let after_mark = || reference.rsplit_once("####").map_or(reference, |(_, answer)| answer);
        let answer = last_boxed(reference).unwrap_or_else(after_mark).trim();
        match whole_number(answer) {
            Some(number) => Some(Self::Number(number)),
            None => (!answer.is_empty()).then(|| Self::Text(answer.to_owned())),
        }
    }

    /// Whether a text has it: in its last `\boxed{…}`, or in all of it where there is none; or why that cannot be said.
    pub(super) fn is_found_in(&self, text: &str) -> Result<bool, &'static str> {
        let answer = last_boxed(text).unwrap_or(text).trim();
        match self {
            _ if answer.is_empty() => Err("nothing was written"),
            Self::Text(right) => Ok(answer == right),
            Self::Number(right) => match last_number(answer) {
                Some(number) => Ok(number == *right),
                None => Err("no number was written"),
            },
        }
    }
}

/// What is in the last `\boxed{…}` that is closed; braces within it are its own.
fn last_boxed(text: &str) -> Option<&str> {
    const OPEN: &str = "\\boxed{";
    text.rmatch_indices(OPEN).find_map(|(at, _)| {
        let rest = &text[at + OPEN.len()..];
        let mut depth = 1;
        let end = rest.find(|c| {
            depth += match c {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            depth == 0
        })?;
        Some(&rest[..end])
    })
}

/// The number that a text begins with, without a sign, and its length in bytes: digits with a decimal point, with commas where exactly
/// three digits stand behind each and one to three before the first, and with an exponent, as JSON may have it (`1e-05`).
fn number_at_start(text: &str) -> Option<(f64, usize)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(0);
    if (1..=3).contains(&end) {
        while bytes.get(end) == Some(&b',') && digits(end + 1) == 3 {
            end += 4;
        }
    }
    let fraction = if bytes.get(end) == Some(&b'.') { digits(end + 1) } else { 0 };
    if fraction > 0 {
        end += 1 + fraction;
    }
    if end > 0 && matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let number = text.get(..end).filter(|number| !number.is_empty())?;
    Some((number.replace(',', "").parse().ok()?, end))
}

/// A text that is nothing but a number, with a sign, a currency's or a percent sign, and a full stop.
fn whole_number(text: &str) -> Option<f64> {
    let text = text.trim_end_matches(['.', '%']).trim();
    let unsigned = text.strip_prefix(['-', '−', '+']);
    let digits = unsigned.unwrap_or(text).trim_start_matches(['\\', '$']);
    let (number, length) = number_at_start(digits)?;
    let is_negative = text.starts_with(['-', '−']);
    (length == digits.len()).then_some(if is_negative { -number } else { number })
}

/// The last number of a text, negative where a minus that is no hyphen is right before it or before its dollar sign. A full stop before a
/// number is a decimal point where neither a word nor another full stop ends there.
fn last_number(text: &str) -> Option<f64> {
    let (mut last, mut at) = (None, 0);
    while let Some(c) = text.get(at..).and_then(|rest| rest.chars().next()) {
        let before = &text[..at];
        let begins = c.is_ascii_digit() || c == '.' && !before.ends_with(|c: char| c.is_alphanumeric() || c == '.');
        match number_at_start(&text[at..]).filter(|_| begins) {
            Some((number, length)) => {
                let sign = before.trim_end_matches('$').trim_end_matches('\\').strip_suffix(['-', '−']);
                let is_negative = sign.is_some_and(|rest| !rest.ends_with(char::is_alphanumeric));
                last = Some(if is_negative { -number } else { number });
                at += length;
            }
            None => at += c.len_utf8(),
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_name_their_answer() {
        for (reference, right) in [
            ("42", Right::Number(42.0)),
            ("6 * 7 = 42\n#### 1,042", Right::Number(1042.0)),
            ("So \\boxed{-3.5}, no: \\boxed{ \\frac{1}{2} } and \\boxed{", Right::Text("\\frac{1}{2}".to_owned())),
            ("$12.", Right::Number(12.0)),
            ("-$3", Right::Number(-3.0)),
            ("−3", Right::Number(-3.0)),
            ("\\$12", Right::Number(12.0)),
            ("1,5", Right::Text("1,5".to_owned())),
            ("12,345,678.5%", Right::Number(12_345_678.5)),
            ("1e3", Right::Number(1000.0)),
            ("-1.5E-05", Right::Number(-0.000_015)),
            ("1e", Right::Text("1e".to_owned())),
            (" Paris ", Right::Text("Paris".to_owned())),
            ("B", Right::Text("B".to_owned())),
            ("3 apples", Right::Text("3 apples".to_owned())),
        ] {
            assert_eq!(Right::of(reference), Some(right), "{reference}");
        }
        for nothing in ["", "6 * 7 ####", "\\boxed{ }"] {
            assert_eq!(Right::of(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn the_last_number_is_compared_or_the_whole_text() {
        let number = |right: f64, text: &str| Right::Number(right).is_found_in(text);
        assert_eq!(number(42.0, "6 * 7 is 42."), Ok(true));
        assert_eq!(number(42.0, "42, or 43"), Ok(false));
        assert_eq!(number(1042.0, "It is 1,042"), Ok(true));
        assert_eq!(number(-3.0, "x = -3"), Ok(true));
        assert_eq!(number(3.0, "pages 2-3"), Ok(true));
        assert_eq!(number(0.5, "half:0.5"), Ok(true));
        assert_eq!(number(0.5, "The answer is ...0.5"), Ok(true));
        assert_eq!(number(0.5, "It is .5"), Ok(true));
        assert_eq!(number(3.0, "see fig.3"), Ok(true));
        assert_eq!(number(3.0, "(2,3)"), Ok(true));
        assert_eq!(number(345.0, "1,2,345"), Ok(false));
        assert_eq!(number(-3.0, "it loses -$3."), Ok(true));
        assert_eq!(number(3.0, "it loses -$3."), Ok(false));
        assert_eq!(number(2.0, "version 1.2.3, no: 2"), Ok(true));
        assert_eq!(number(1000.0, "It is 1e3, 1,000."), Ok(true));
        assert_eq!(number(1000.0, "It is 1e+3 m"), Ok(true));
        assert_eq!(number(3.0, "2e or 3"), Ok(true));
        assert_eq!(number(42.0, "\\boxed{42} after 7 steps"), Ok(true));
        assert_eq!(number(42.0, "\\boxed{x} after 42 steps"), Err("no number was written"));
        assert_eq!(number(42.0, "none"), Err("no number was written"));
        assert_eq!(number(42.0, " "), Err("nothing was written"));
        let text = |text: &str| Right::Text("Paris".to_owned()).is_found_in(text);
        assert_eq!(text(" Paris\n"), Ok(true));
        assert_eq!(text("It is Paris"), Ok(false));
        assert_eq!(text("It is \\boxed{Paris}."), Ok(true));
        assert_eq!(text(""), Err("nothing was written"));
    }
}
