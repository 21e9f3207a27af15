//! Whether a text that was written has the right answer.

/// The right answer of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Right {
    Number(f64),
    Text(String),
}

/// Why it cannot be said whether a text has the right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Undecided(pub(super) &'static str);

impl Right {
    /// The last `\boxed{…}` of a reference, else what follows its last `####` (as in GSM8K's solutions), else all of it.
    pub(super) fn of(reference: &str) -> Self {
        let after_mark = || reference.rsplit_once("####").map_or(reference, |(_, answer)| answer);
        let answer = last_boxed(reference).unwrap_or_else(after_mark).trim();
        match whole_number(answer) {
            Some(number) => Self::Number(number),
            None => Self::Text(answer.to_owned()),
        }
    }

    /// Whether a text has it: in its last `\boxed{…}`, or in all of it where there is none.
    pub(super) fn is_found_in(&self, text: &str) -> Result<bool, Undecided> {
        let answer = last_boxed(text).unwrap_or(text).trim();
        match self {
            _ if answer.is_empty() => Err(Undecided("nothing was written")),
            Self::Text(right) => Ok(answer == right),
            Self::Number(right) => match last_number(answer) {
                Some(number) => Ok(number == *right),
                None => Err(Undecided("no number was written")),
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

/// A text that is nothing but a number, with commas between thousands, a currency's or a percent sign, and a full stop.
fn whole_number(text: &str) -> Option<f64> {
    let text = text.trim_end_matches(['.', '%']).trim_start_matches('$').trim();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',');
    if is_number { text.replace(',', "").parse().ok() } else { None }
}

/// The last number of a text: digits with a decimal point and with commas between thousands, negative where a minus that is no hyphen is
/// right before it.
fn last_number(text: &str) -> Option<f64> {
    let end = text.rfind(|c: char| c.is_ascii_digit())? + 1;
    let is_part = |c: char| c.is_ascii_digit() || c == '.' || c == ',';
    let start = text[..end].trim_end_matches(is_part).len();
    let digits = text[start..end].trim_start_matches(',');
    // A full stop right before a number is that of the sentence before it.
    let digits = if digits.matches('.').count() > 1 { digits.rsplit_once('.')?.1 } else { digits };
    let number: f64 = digits.replace(',', "").parse().ok()?;
    let before = &text[..start];
    let is_negative = before.strip_suffix(['-', '−']).is_some_and(|rest| !rest.ends_with(char::is_alphanumeric));
    Some(if is_negative { -number } else { number })
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
            (" Paris ", Right::Text("Paris".to_owned())),
            ("B", Right::Text("B".to_owned())),
            ("3 apples", Right::Text("3 apples".to_owned())),
        ] {
            assert_eq!(Right::of(reference), right, "{reference}");
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
        assert_eq!(number(42.0, "\\boxed{42} after 7 steps"), Ok(true));
        assert_eq!(number(42.0, "\\boxed{x} after 42 steps"), Err(Undecided("no number was written")));
        assert_eq!(number(42.0, "none"), Err(Undecided("no number was written")));
        assert_eq!(number(42.0, " "), Err(Undecided("nothing was written")));
        let text = |text: &str| Right::Text("Paris".to_owned()).is_found_in(text);
        assert_eq!(text(" Paris\n"), Ok(true));
        assert_eq!(text("It is Paris"), Ok(false));
        assert_eq!(text("It is \\boxed{Paris}."), Ok(true));
        assert_eq!(text(""), Err(Undecided("nothing was written")));
    }
}
