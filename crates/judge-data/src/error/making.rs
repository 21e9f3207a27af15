//! How errors are made of those of other crates, and what a program asks of one.

use std::io;
use std::path::Path;

use super::{Error, Place};
use crate::input::Changed;

impl From<judge_core::Error> for Error {
    fn from(error: judge_core::Error) -> Self {
        Self::Core(Box::new(error))
    }
}

impl Error {
    /// The error of this crate that ended a run, or else the run's own.
    pub(crate) fn of_run(error: judge_core::Error) -> Self {
        let source = match error {
            judge_core::Error::Items { source } | judge_core::Error::Observer { source } => source,
            other => return other.into(),
        };
        match source.downcast::<Self>() {
            Ok(own) => *own,
            Err(source) => judge_core::Error::Observer { source }.into(),
        }
    }

    /// Whether the command line is to blame and nothing was done: programs exit with 2.
    pub fn is_usage(&self) -> bool {
        matches!(self, Self::Output { .. } | Self::OutputExists { .. } | Self::InputNotUtf8 { .. } | Self::StdinTwice)
    }

    /// For `map_err`: what was tried, and on what.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_path_buf(), source }
    }

    /// For `map_err`: a read of this file failed, perhaps because the file was changed.
    pub(crate) fn reading(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.get_ref().and_then(|inner| inner.downcast_ref::<Changed>()) {
            Some(&Changed { bytes_before, bytes_now }) => {
                Self::InputChanged { path: path.to_path_buf(), bytes_before, bytes_now }
            }
            None => Self::io("read", path)(source),
        }
    }

    /// What is wrong with a line or a row.
    pub(crate) fn at(place: &Place, problem: impl Into<String>) -> Self {
        Self::At { place: place.clone(), problem: problem.into() }
    }

    /// The content of a file that is not what it must be.
    pub(crate) fn content(
        path: &Path,
        what: &'static str,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self::Content { path: path.to_path_buf(), what, expected: expected.into(), found: found.into() }
    }

    /// Which of all has this name.
    pub(crate) fn named<T: Copy, const N: usize>(
        what: &'static str,
        name: &str,
        all: [T; N],
        as_str: fn(T) -> &'static str,
    ) -> Result<T, Self> {
        let found = all.into_iter().find(|&one| as_str(one) == name);
        found.ok_or_else(|| Self::Unknown { what, found: name.to_owned(), known: all.map(as_str).join(", ") })
    }

    pub(crate) fn serialize(source: serde_json::Error) -> Self {
        Self::Serialize { source }
    }

    /// A parser's complaint about an object that starts at `place`, `column`.
    pub(crate) fn malformed(mut place: Place, column: usize, source: serde_json::Error) -> Self {
        let column = if source.line() <= 1 { column + source.column().max(1) - 1 } else { source.column() };
        place.line += source.line().saturating_sub(1);
        Self::Malformed { place, column, problem: source }
    }

    /// Whether more text could have made this JSON.
    pub(crate) fn is_unfinished(&self) -> bool {
        matches!(self, Self::Malformed { problem, .. } if problem.is_eof())
    }
}
