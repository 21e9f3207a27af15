use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{double_brackets, json, only};
use crate::{Error, error::by_name};

/// How a text says a grade.
///
/// ```
/// use judge_core::prompted::GradeConvention;
///
/// assert_eq!(GradeConvention::Rating.parse("[[7]], at best [[8]]"), Some(7.0));
/// assert_eq!(GradeConvention::Strict.parse("[[7]], at best [[8]]"), None);
/// assert_eq!(GradeConvention::Result.parse("Well argued. [RESULT] 4/5"), Some(4.0));
/// assert_eq!(GradeConvention::Json.parse(r#"{"reason": "Well argued.", "score": 4}"#), Some(4.0));
/// assert_eq!(GradeConvention::Json.parse(r#"{"reason": "Well argued.", "score": "4"}"#), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum GradeConvention {
    /// `[[7]]`, all occurrences of the same number. The form that this project's own prompts ask for.
    Strict,
    /// MT-bench (FastChat's `llm_judge`): the first number in double brackets, or else the first in single ones:
    /// digits, with decimals or without. Any range.
    Rating,
    /// Auto-J: the number between the last `Rating: [[` and the `]]` behind it.
    Decision,
    /// The library prometheus-eval: a number from 1 to 5 at the end of the text behind `[RESULT]`, `[SCORE]`, `Result`, `Score` or
    /// `score of`, in any case; brackets around it,
    /// and `/5` or `out of 5` behind it, are allowed.
    Result,
    /// Prometheus's own evaluation: `[RESULT]` occurs once, and behind it is nothing but a digit from 1 to 5.
    ResultExact,
    /// LLMBar's ratings: nothing but a whole number.
    Integer,
    /// Nothing but a JSON object with `"reason"`, a string, and `"score"`, a whole number (`4`, or `4.0`); each once. Other
    /// keys are allowed, raw line breaks within texts, a Markdown fence around the object, and a thought before it
    /// (`<think>…</think>`, its end alone, or gpt-oss's channels). A score in quotes, a missing reason and words around the object are not.
    Json,
}

crate::names! { GradeConvention {
    Strict: "strict",
    Rating: "rating",
    Decision: "decision",
    Result: "result",
    ResultExact: "result-exact",
    Integer: "integer",
    Json: "json",
}}

impl GradeConvention {
    /// What a grade of this form looks like, for people; 7 and 4 stand for any grade.
    pub fn form(self) -> &'static str {
        match self {
            Self::Strict => "[[7]]",
            Self::Rating => "[[7]] or [7]",
            Self::Decision => "Rating: [[7]]",
            Self::Result => "[RESULT] 4 at the end of the text",
            Self::ResultExact => "[RESULT] 4 once, with nothing after it",
            Self::Integer => "a whole number and nothing else",
            Self::Json => {
                "{\"reason\": \"…\", \"score\": 7}, with the score a number and nothing around it but a fence or a thought before it"
            }
        }
    }

    /// Where a grade may stand, and which of several counts, for people; empty where the form says it.
    pub fn rule(self) -> &'static str {
        match self {
            Self::Strict => "anywhere, all of them the same",
            Self::Rating => "the first in double brackets, else the first in single ones",
            Self::Decision => "anywhere, the last one",
            Self::Json => "the score a whole number",
            Self::Result | Self::ResultExact | Self::Integer => "",
        }
    }

    /// Whose form it is: this project's, a benchmark's, or a published judge's.
    pub fn origin(self) -> &'static str {
        match self {
            Self::Strict | Self::Json => "this project",
            Self::Rating => "MT-bench",
            Self::Decision => "Auto-J",
            Self::Result => "prometheus-eval",
            Self::ResultExact => "Prometheus",
            Self::Integer => "LLMBar",
        }
    }

    /// The grade in a text, finite; `None` if it holds none of this form. Whether it lies on a scale is the caller's to check.
    pub fn parse(self, text: &str) -> Option<f64> {
        self.find(text).map(|(grade, _)| grade)
    }

    /// The grade in a text, as [`parse`](Self::parse) finds it, and where its number is written, in bytes.
    /// Where a form may be repeated, this is its first occurrence.
    pub fn find(self, text: &str) -> Option<(f64, Range<usize>)> {
        let (grade, number) = match self {
            Self::Strict => {
                let grades = || double_brackets(text).filter_map(plain);
                only(grades().map(|(grade, _)| grade))?;
                grades().next()?
            }
            Self::Rating => {
                let single = || text.split('[').skip(1).filter_map(|rest| plain(rest.split_once(']')?.0)).next();
                double_brackets(text).find_map(plain).or_else(single)?
            }
            Self::Decision => {
                let (_, rest) = text.rsplit_once("Rating: [[")?;
                let number = rest.split_once("]]")?.0.trim();
                (number.parse().ok().filter(|grade: &f64| grade.is_finite())?, number)
            }
            Self::Result => return result(text),
            Self::ResultExact => {
                let mut parts = text.split("[RESULT]").skip(1);
                let (tail, None) = (parts.next()?, parts.next()) else { return None };
                match tail.trim() {
                    digit @ ("1" | "2" | "3" | "4" | "5") => (digit.parse().ok()?, digit),
                    _ => return None,
                }
            }
            Self::Integer => (f64::from(text.trim().parse::<i32>().ok()?), text.trim()),
            Self::Json => json::score(text)?,
        };
        // Both are slices of one text.
        let start = number.as_ptr() as usize - text.as_ptr() as usize;
        Some((grade, start..start + number.len()))
    }
}

impl FromStr for GradeConvention {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        by_name("convention for a grade", name, &Self::ALL, Self::as_str)
    }
}

/// Whether a text is digits, with a decimal point and more digits or without.
pub(super) fn is_plain(text: &str) -> bool {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !whole.is_empty() && digits(whole) && digits(decimals)
}

fn plain(text: &str) -> Option<(f64, &str)> {
    let grade = text.parse().ok().filter(|grade: &f64| grade.is_finite());
    grade.filter(|_| is_plain(text)).map(|grade| (grade, text))
}

/// Read from the end: `marker brackets number (/5)`.
fn result(text: &str) -> Option<(f64, Range<usize>)> {
    // Lower case has the same length, and nothing is cut off at the front.
    let text = text.to_ascii_lowercase();
    let text = text.trim_end();
    // "4/5" and "4 out of 5": what is before the last 5 ends in one of the two.
    // Else the text ends in the number, a bracket behind it or not.
    let share = text.strip_suffix('5').map(str::trim_end).and_then(|rest| {
        let out_of = rest.strip_suffix("of").and_then(|rest| rest.trim_end().strip_suffix("out")).map(str::trim_end);
        rest.strip_suffix('/').or(out_of)
    });
    [share, Some(text.strip_suffix([')', ']']).unwrap_or(text))].into_iter().flatten().find_map(|rest| {
        let before = rest.trim_end_matches(|c: char| c.is_ascii_digit());
        let number: u32 = rest[before.len()..].parse().ok().filter(|number| (1..=5).contains(number))?;
        let marker = before.trim_end_matches(|c: char| c == '(' || c == '[' || c.is_whitespace());
        // `[result]` and `score:` end so too; "score of" has white space between its words.
        let bare = marker.strip_suffix([']', ':']).unwrap_or(marker);
        let marked = |bare: &str| bare.ends_with("score") || bare.ends_with("result");
        let bracketed = marker.ends_with("[result]:") || marker.ends_with("[result]") || marker.ends_with("[score]");
        let plain = !marker.ends_with(']') && marked(bare);
        let score_of = marker.strip_suffix("of").is_some_and(|rest| {
            let word = rest.trim_end();
            word.len() < rest.len() && word.ends_with("score")
        });
        (bracketed || plain || score_of).then(|| (f64::from(number), before.len()..rest.len()))
    })
}
