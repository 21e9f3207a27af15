//! Files as they are on disk: names in a folder, texts, JSON, and what stands in the place of a file.

use std::fs;
use std::path::{Component, Path};

use serde_json::Value;

use crate::Error;
use crate::error::{IndexProblem, StandIn};

/// Names in a folder, sorted, so that an error can say what was there. Bytes that are no UTF-8 are
/// replaced.
///
/// # Errors
/// [`Error::NotAFolder`], or [`Error::Read`] for a folder that cannot be listed.
pub fn names(path: &Path) -> Result<Vec<String>, Error> {
    if !path.is_dir() {
        return Err(Error::NotAFolder { path: path.to_owned() });
    }
    let read = |source| Error::Read { path: path.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(read)? {
        names.push(entry.map_err(read)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Whether a path, such as a shard's name from an index, stays inside the folder that it is joined
/// to. It must have names only: no root, no `..`, no `.` at its start. Links are not looked at.
pub fn stays_inside(path: &Path) -> bool {
    !path.as_os_str().is_empty() && path.components().all(|c| matches!(c, Component::Normal(_)))
}

/// The path of the shard that an index names for a tensor, without a `./` at its start.
///
/// # Errors
/// [`IndexProblem::OutsideFolder`] unless it [stays inside](stays_inside) the index's folder.
pub fn shard_path<'s>(tensor: &str, shard: &'s str) -> Result<&'s str, IndexProblem> {
    let shard = shard.strip_prefix("./").unwrap_or(shard);
    if stays_inside(Path::new(shard)) {
        Ok(shard)
    } else {
        Err(IndexProblem::OutsideFolder { tensor: tensor.to_owned(), shard: shard.to_owned() })
    }
}

/// Whether a file is one of torch.save's by its name.
pub fn is_pickle(name: &str) -> bool {
    name.ends_with(".bin")
}

/// Fails if a file is not there itself but what some program has put into its place, by its first
/// bytes. Readers of all kinds of files call it before they take the bytes for theirs.
///
/// # Errors
/// [`Error::StandIn`], which says what to do.
pub fn refuse_stand_in(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let start = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).trim_ascii_start();
    let begins = |with: &str| start.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()));
    let found = if bytes.is_empty() {
        StandIn::Nothing
    } else if begins("version https://git-lfs") || begins("version https://hawser") {
        StandIn::LfsPointer
    } else if begins("<!doctype html") || begins("<html") || begins("<?xml") {
        StandIn::Page
    } else {
        return Ok(());
    };
    Err(Error::StandIn { path: path.to_owned(), found })
}

/// UTF-8 text without the byte-order mark that some editors put first.
///
/// # Errors
/// [`Error::Read`], or [`Error::Encoding`] with the offset of the first byte that is not UTF-8.
/// [`Error::StandIn`] for another file in the place of one that is not empty.
pub fn read_text(path: &Path) -> Result<String, Error> {
    let bytes = fs::read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    if !bytes.is_empty() {
        refuse_stand_in(path, &bytes)?;
    }
    let text = String::from_utf8(bytes)
        .map_err(|e| Error::Encoding { path: path.to_owned(), offset: e.utf8_error().valid_up_to() })?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Any JSON file; a byte-order mark is accepted. Objects keep the order of their fields.
///
/// Python writes numbers that JSON does not have, `NaN`, `Infinity` and `-Infinity`, as bare words.
/// They become texts of these letters: a field that is not read may have them, and a reader that
/// wants a number there says which text it found in which field.
///
/// # Errors
/// Those of [`read_text`], [`Error::StandIn`] for an empty file, and [`Error::Json`] with line and
/// column.
pub fn read_json(path: &Path) -> Result<Value, Error> {
    let text = read_text(path)?;
    refuse_stand_in(path, text.as_bytes())?;
    serde_json::from_str(&text)
        .or_else(|source| serde_json::from_str(&with_quoted_words(&text)).map_err(|_| source))
        .map_err(|source| Error::Json { path: path.to_owned(), source })
}

/// JSON with Python's words for numbers in quotation marks, where they are no part of a text.
fn with_quoted_words(json: &str) -> String {
    const WORDS: [&str; 3] = ["NaN", "-Infinity", "Infinity"];
    let (mut quoted, mut rest, mut is_text) = (String::with_capacity(json.len()), json, false);
    while let Some(next) = rest.chars().next() {
        let word = WORDS.into_iter().find(|word| !is_text && rest.starts_with(word));
        let taken = match (next, word) {
            (_, Some(word)) => {
                quoted.extend(["\"", word, "\""]);
                rest = &rest[word.len()..];
                continue;
            }
            // The character behind a backslash ends no text.
            ('\\', None) if is_text => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            (next, None) => {
                is_text ^= next == '"';
                next.len_utf8()
            }
        };
        quoted.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_python_become_texts_outside_of_texts_alone() {
        let json = r#"{"a": NaN, "b": [0.0, Infinity, -Infinity], "NaN \" Infinity é \\": "-Infinity"}"#;
        let expected = r#"{"a": "NaN", "b": [0.0, "Infinity", "-Infinity"], "NaN \" Infinity é \\": "-Infinity"}"#;
        assert_eq!(with_quoted_words(json), expected);
        assert_eq!(with_quoted_words(r#"{"cut": "\"#), r#"{"cut": "\"#);
    }
}
