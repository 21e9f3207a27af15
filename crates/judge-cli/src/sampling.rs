//! The chance that a row had of being graded, by which what people say is weighted.

use anyhow::{Context, Result};
use judge_data::ScoredRow;
use serde_json::Value;

use crate::ratings::value;
use crate::terminal::console::tell;

/// Where `judge grade` writes it.
pub const SAMPLING_PROBABILITY: &str = "sampling_probability";

/// Says that `rows` are weighted, though nobody named the field.
pub fn tell_weighted(rows: &str) {
    tell(format_args!(
        "note: {rows} are weighted by {SAMPLING_PROBABILITY:?}, the chance that each had of being graded"
    ));
}

/// The chance that a row had of being graded: by the field that an option names, or else by that of `judge grade`.
///
/// # Errors
/// If the row has none, where an option names the field or it was found in other rows.
pub fn probability(row: &ScoredRow, named: Option<&str>) -> Result<f64> {
    let field = named.unwrap_or(SAMPLING_PROBABILITY);
    let known = value(row, field)?;
    let number = known.as_ref().and_then(Value::as_f64).filter(|p| *p > 0.0 && *p <= 1.0);
    number.with_context(|| {
        let found = known.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
        let (option, advice) = match named {
            Some(_) => ("--sampling-probability: ", ""),
            None => ("", "; the field was found in other rows: give every graded row one, or remove the field"),
        };
        format!("{option}{field} is {found}, expected a number above 0 and at most 1{advice}")
    })
}
