//! Published data, read where `JUDGE_TEST_DATA` says they are.

#![expect(clippy::print_stderr, reason = "a skipped test says so")]

use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

/// The folder; `None`, said on stderr, where there is none.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("JUDGE_TEST_DATA").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: JUDGE_TEST_DATA is not set");
    }
    folder
}

/// A file of the folder, by its path there; `None` without a folder.
pub(crate) fn json<T: DeserializeOwned>(path: &str) -> Option<T> {
    let text = text(&folder()?.join(path));
    Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}")))
}

/// What a file holds.
pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
