//! A grade as a JSON object: `{"reason": "…", "score": 4}`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::after_thought;

/// The object that is asked for. Unknown keys are passed over; a key that appears twice, or a value of another type, is an error.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(rename = "reason")]
    _reason: String,
    #[serde(borrow)]
    score: &'a RawValue,
}

/// The score of the only object in a text, and its digits as they are written, without a fraction of zeros;
/// `None` for anything else than this object, with or without a fence around it, and a thought before it.
pub(super) fn score(text: &str) -> Option<(f64, &str)> {
    // The whole text first: a reason may speak of thoughts.
    of_object(text).or_else(|| of_object(after_thought(text)?))
}

fn of_object(text: &str) -> Option<(f64, &str)> {
    let object = without_fence(text.trim())?;
    let mended = in_one_line(object);
    let answer: Answer<'_> = serde_json::from_str(&mended).ok()?;
    let number = answer.score.get();
    // JSON calls `4e0` a number too, and `"4"` a string: neither is what was asked for.
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = is_whole && fraction.bytes().all(|byte| byte == b'0');
    let score = number.parse().ok().filter(|score: &f64| is_whole && score.is_finite())?;
    // Both have the same bytes at the same places but for the line breaks.
    let start = number.as_ptr() as usize - mended.as_ptr() as usize;
    Some((score, &object[start..start + whole.len()]))
}

/// JSON with a space for each raw control character, such as the line breaks that models write within a text; every byte stays in its place.
fn in_one_line(json: &str) -> String {
    json.chars().map(|c| if c < ' ' { ' ' } else { c }).collect()
}

/// What is inside a Markdown fence (three backticks, perhaps with a language behind them, each fence on a line of its own), or the text
/// itself if it has none.
fn without_fence(text: &str) -> Option<&str> {
    let Some(fenced) = text.strip_prefix("```") else { return Some(text) };
    let (language, inside) = fenced.split_once('\n')?;
    let named = language.trim().bytes().all(|byte| byte.is_ascii_alphanumeric());
    inside.strip_suffix("```").filter(|_| named).map(str::trim)
}
