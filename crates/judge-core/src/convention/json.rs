//! A grade as a JSON object: `{"reason": "…", "score": 4}`.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The object that is asked for. Unknown keys are passed over; a key that appears twice, or a value of another type, is an error.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(rename = "reason")]
    _reason: String,
    #[serde(borrow)]
    score: &'a RawValue,
}

/// The score of the only object in a text, and the number as it is written;
/// `None` for anything else than this object, with or without a fence around it.
pub(super) fn score(text: &str) -> Option<(f64, &str)> {
    let answer: Answer<'_> = serde_json::from_str(without_fence(text.trim())?).ok()?;
    let number = answer.score.get();
    let digits = number.strip_prefix('-').unwrap_or(number);
    // JSON calls `4.0` and `4e0` numbers too, and `"4"` a string: neither is what was asked for.
    let whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let score = number.parse().ok().filter(|score: &f64| whole && score.is_finite())?;
    Some((score, number))
}

/// What is inside a Markdown fence (three backticks, perhaps with a language behind them, each fence on a line of its own), or the text
/// itself if it has none.
fn without_fence(text: &str) -> Option<&str> {
    let Some(fenced) = text.strip_prefix("```") else { return Some(text) };
    let (language, inside) = fenced.split_once('\n')?;
    let named = language.trim().bytes().all(|byte| byte.is_ascii_alphanumeric());
    inside.strip_suffix("```").filter(|_| named).map(str::trim)
}
