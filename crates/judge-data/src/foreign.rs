//! Tells files of other formats, so that an error can name them.

use std::path::Path;

use crate::{Error, Place};

const PANDAS: &str = "in pandas: to_json(path, orient=\"records\", lines=True)";

/// The format that a file's first bytes are known for, and what to do about it.
const MAGIC: [(&[u8], &str, &str); 9] = [
    (b"PAR1", "Parquet", PANDAS),
    (b"ARROW1", "an Arrow file", PANDAS),
    (b"PK\x03\x04", "a zip archive or a spreadsheet", "unpack it, or save the sheet as JSON lines"),
    (b"BZh", "bzip2", "gzip and zstd are read, or plain text"),
    (b"\xfd7zXZ", "xz", "gzip and zstd are read, or plain text"),
    (b"SQLite format 3", "an SQLite database", "export the table"),
    (b"\x89HDF", "HDF5", PANDAS),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
];

/// The error for a file whose first bytes are `head`; `None` if they say nothing.
pub(crate) fn by_magic(head: &[u8], path: &Path) -> Option<Error> {
    let (_, found, cure) = MAGIC.into_iter().find(|(magic, ..)| head.starts_with(magic))?;
    Some(Error::NotJson { path: path.to_path_buf(), found, cure })
}

/// The error for a first line that is no JSON and looks like the head of a table; `None` if it does not.
pub(crate) fn by_first_line(line: &[u8], path: &Path) -> Option<Error> {
    let text = std::str::from_utf8(line).ok()?.trim();
    if text.starts_with(['{', '[']) {
        return None;
    }
    let found = [(',', "CSV"), (';', "CSV"), ('\t', "a table separated by tabs")].into_iter();
    let (_, found) = found.into_iter().find(|(separator, _)| text.contains(*separator))?;
    Some(Error::NotJson { path: path.to_path_buf(), found, cure: PANDAS })
}

/// The error for NaN or an infinity, as Python writes them, at or just before the byte `index` of `line`.
pub(crate) fn not_a_number(line: &str, index: usize, place: &Place, first_column: usize) -> Option<Error> {
    // "-Infinity" is refused at its second byte; a parser may also stop a byte further.
    (index.saturating_sub(2)..=index).find_map(|start| {
        let rest = line.get(start..)?;
        let found = ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| rest.starts_with(word))?;
        Some(Error::NotANumber { place: place.clone(), column: first_column + start, found })
    })
}
