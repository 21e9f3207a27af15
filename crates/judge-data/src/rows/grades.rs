//! Grades that people gave: one form of them for every reader.

use serde_json::value::RawValue;

use crate::rows::cell::list_in_cell;
use crate::rows::row::describe;

/// What grades are read from, in words.
pub(crate) const NUMBERS: &str = "a number, or a list of numbers and nulls";

/// The number that a JSON value is as a grade: a finite one, one that is written as a text, 1 for true and 0 for false.
pub(crate) fn number(json: &str) -> Option<f64> {
    match json.as_bytes().first()? {
        b'"' => of_text(&serde_json::from_str::<String>(json).ok()?),
        b't' => Some(1.0),
        b'f' => Some(0.0),
        _ => finite(serde_json::from_str(json).ok()?),
    }
}

/// The finite number that a text writes in decimal digits; 1 for `true` and 0 for `false`, as tables write them (`True`, `TRUE`).
pub(crate) fn of_text(text: &str) -> Option<f64> {
    // Without the words for infinities and NaN, some of which are names.
    let text = text.trim();
    let number = text.contains(|c: char| c.is_ascii_digit()).then(|| text.parse().ok()).flatten().and_then(finite);
    number.or_else(|| of_boolean(text))
}

/// 1 for `true` and 0 for `false`, in letters of either size.
pub(crate) fn of_boolean(text: &str) -> Option<f64> {
    let is = |word: &str| text.trim().eq_ignore_ascii_case(word);
    is("true").then_some(1.0).or(is("false").then_some(0.0))
}

/// Whether a text writes a number with a comma before its decimals, which is none here.
pub(crate) fn has_comma(text: &str) -> bool {
    text.matches(',').count() == 1 && of_text(&text.replace(',', ".")).is_some()
}

/// Whether a text stands for no value, as pandas, R and spreadsheets write one.
pub(crate) fn is_gap(text: &str) -> bool {
    let text = text.trim();
    let words = ["na", "n/a", "#n/a", "nan", "none", "null", "<na>"];
    text.is_empty() || words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Without the sign of zero.
fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number + 0.0)
}

/// What one rater gave, or several in a list, in the order of the file.
pub(crate) struct Given<T> {
    /// A place for each rater, empty where there is none or no grade.
    pub(crate) raters: Vec<Option<T>>,
    /// The first thing that is no grade, in words.
    pub(crate) odd: Option<String>,
}

impl<T> Given<T> {
    /// Of a JSON value that is not `null`. A list, which a table's cell holds as a text, has what each rater gave, and `null` for one who
    /// gave nothing.
    pub(crate) fn of(json: &str, mut grade: impl FnMut(&str) -> Option<T>) -> Self {
        let json = list_in_cell(json);
        let list: Vec<&RawValue> = match json.starts_with('[') {
            true => serde_json::from_str(&json).unwrap_or_default(), // it was read as JSON before
            false => serde_json::from_str(&json).map(|one| vec![one]).unwrap_or_default(),
        };
        let mut odd = None;
        let raters = list.into_iter().map(RawValue::get).map(|json| {
            let found = grade(json);
            if found.is_none() && json != "null" {
                odd.get_or_insert_with(|| describe(json));
            }
            found
        });
        let raters = raters.collect();
        Self { raters, odd }
    }

    /// The places, empty where nobody gave anything, and what of a column is no grade, in words.
    pub(crate) fn of_column(self, column: &str, expected: &str) -> (Vec<Option<T>>, Option<String>) {
        let no_grade = self.odd.map(|odd| format!("expected {column:?} to be {expected}, found {odd}"));
        (unless_nobody(self.raters), no_grade)
    }
}

/// The places of raters; empty where none of them gave anything.
pub(crate) fn unless_nobody<T>(places: Vec<Option<T>>) -> Vec<Option<T>> {
    if places.iter().any(Option::is_some) { places } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_numbers_whatever_they_are_written_as() {
        let read = ["4", "4.50", "\"4\"", "\" 4.5 \"", "\"1e1\"", "true", "false", "-0.0", "\"-.5\""].map(number);
        assert_eq!(read, [4.0, 4.5, 4.0, 4.5, 10.0, 1.0, 0.0, 0.0, -0.5].map(Some));
        assert_eq!(["\"True\"", "\"FALSE\"", "\"true\""].map(number), [1.0, 0.0, 1.0].map(Some));
        for none in
            ["\"\"", "\"N/A\"", "\"inf\"", "\"NaN\"", "\"nan0\"", "1e400", "\"1e400\"", "[4]", "{}", "null", "\"4/5\""]
        {
            assert_eq!(number(none), None, "{none}");
        }
        assert!(number("-0.0").is_some_and(f64::is_sign_positive));
    }

    #[test]
    fn each_rater_keeps_the_place() {
        let Given { raters, odd } = Given::of(r#"[4, null, "N/A", "3", {}]"#, number);
        assert_eq!(raters, [Some(4.0), None, None, Some(3.0), None]);
        assert_eq!(odd.as_deref(), Some("string \"N/A\""));
        let Given { raters, odd } = Given::of("true", number);
        assert_eq!((raters, odd), (vec![Some(1.0)], None));
        // As a table's cell has them.
        for json in [r#""[4, null, \"3\"]""#, r#""[4.0, None, '3']""#] {
            let Given { raters, odd } = Given::of(json, number);
            assert_eq!((raters, odd), (vec![Some(4.0), None, Some(3.0)], None), "{json}");
        }
    }
}
