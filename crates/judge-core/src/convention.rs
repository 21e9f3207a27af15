//! How a written verdict is found in a judge's text: one convention for each published judge, and a strict one.
//!
//! Each convention reads what its own program reads and nothing more; where that program falls back to a default verdict (a tie, a grade of
//! 1 or 0), the convention finds none, and the caller's policy decides.
//! A preference is an [`Ordering`](std::cmp::Ordering) of the responses as
//! they were *shown*: `Greater` if the first is better.

mod grade;
mod json;
mod pair;

pub use grade::GradeConvention;
pub use pair::PairConvention;

use crate::request::ReplyPooling;

/// What is written behind a thought: behind the last `</think>`, whether the template or the model opened it, or of a text in channels (as
/// gpt-oss writes) the last message of the channel `final`. All of a text without a thought; `None` for a thought that was cut off.
fn after_thought(text: &str) -> Option<&str> {
    const CHANNEL: &str = "<|channel|>";
    let start = text.trim_start();
    if start.starts_with(CHANNEL) || start.starts_with("<|start|>") {
        // `final` may be followed by more of the header, such as `<|constrain|>json`.
        let (_, last) = text.rsplit_once(CHANNEL)?;
        let (_, message) = last.strip_prefix("final")?.split_once("<|message|>")?;
        return ["<|end|>", "<|return|>"].iter().try_fold(message, |text, end| text.split(end).next());
    }
    match text.rsplit_once(ReplyPooling::END_OF_THOUGHT) {
        Some((_, reply)) => Some(reply),
        None => (!text.contains("<think>")).then_some(text),
    }
}

/// The contents of each `[[…]]` in a text without a bracket inside, which no verdict has.
fn double_brackets(text: &str) -> impl Iterator<Item = &str> {
    let mut before = None;
    // What stands between two opening brackets is searched once, whatever the text.
    text.split('[').skip(1).filter_map(move |opened| {
        let is_double = before.replace(opened) == Some("");
        if is_double { Some(opened.split_once("]]")?.0) } else { None }
    })
}

/// The only value that occurs, however often; `None` for none or for several different ones.
fn only<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|other| other == first).then_some(first)
}
