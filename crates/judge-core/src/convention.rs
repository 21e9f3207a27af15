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

use crate::Error;

/// The convention of this name, out of all of its kind.
fn by_name<C: Copy>(what: &'static str, name: &str, all: &[C], as_str: fn(C) -> &'static str) -> Result<C, Error> {
    let found = all.iter().copied().find(|&convention| as_str(convention) == name);
    found.ok_or_else(|| Error::UnknownName {
        what,
        found: name.to_owned(),
        known: all.iter().map(|&convention| as_str(convention)).collect(),
    })
}

/// The contents of each `[[…]]` in a text.
fn double_brackets(text: &str) -> impl Iterator<Item = &str> {
    let rests = text.match_indices('[').filter_map(|(at, _)| text[at..].strip_prefix("[["));
    rests.filter_map(|rest| Some(rest.split_once("]]")?.0))
}

/// The only value that occurs, however often; `None` for none or for several different ones.
fn only<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|other| other == first).then_some(first)
}
