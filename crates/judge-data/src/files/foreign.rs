//! Tells files of other formats, so that an error can name them.

use std::path::Path;

use crate::{Error, Place};

/// The byte-order mark of UTF-8.
pub(crate) const BOM: &[u8] = b"\xEF\xBB\xBF";

const PANDAS: &str = "in pandas: to_json(path, orient=\"records\", lines=True)";

/// The format that a file's first bytes are known for, and what to do about it.
const MAGIC: [(&[u8], &str, &str); 14] = [
    (b"PAR1", "Parquet", PANDAS),
    (b"ARROW1", "an Arrow file", PANDAS),
    (
        b"\xff\xff\xff\xff",
        "an Arrow stream",
        "write it as Parquet: Dataset.to_parquet(path) in Hugging Face's datasets",
    ),
    (b"PK\x03\x04", "a zip archive or a spreadsheet", "unpack it, or save the sheet as CSV"),
    (b"BZh", "bzip2", "gzip and zstd are read, or plain text"),
    (b"\xfd7zXZ", "xz", "gzip and zstd are read, or plain text"),
    (b"SQLite format 3", "an SQLite database", "export the table"),
    (b"\x89HDF", "HDF5", PANDAS),
    (b"\xff\xfe", "UTF-16 text", "save it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "save it as UTF-8"),
    (b"version https://git-lfs", "a pointer of Git LFS", "fetch the file itself: git lfs pull"),
    (b"\x1e", "a JSON text sequence (RFC 7464)", "take its separators out: tr -d '\\036'"),
    (b"<", "a page of HTML or XML", "see whether the download failed"),
    (b"Obj\x01", "Avro", PANDAS),
];

/// The error for a file whose first bytes are `head`; `None` if they say nothing.
pub(crate) fn by_magic(head: &[u8], path: &Path) -> Option<Error> {
    let (_, found, cure) = MAGIC.into_iter().find(|(magic, ..)| head.starts_with(magic))?;
    Some(Error::NotJson { path: path.to_path_buf(), found, cure })
}

/// What separates the names of a table's columns, by its first two lines; `None` for what is no table.
pub(crate) fn separator(first: &[u8], second: Option<&[u8]>) -> Option<u8> {
    const LONGEST: usize = 64;
    let text = std::str::from_utf8(first).ok()?.trim_end();
    if text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let is_name = |cell: &str| {
        let name = cell.trim().trim_matches('"');
        // pandas gives the column of its index no name.
        let begins = name.is_empty() || name.starts_with(|c: char| c.is_alphanumeric() || "_#".contains(c));
        begins && !name.contains(['{', '}', '[', ']', ':']) && name.chars().count() <= LONGEST
    };
    let separates = |&separator: &u8| {
        // A cell in quotes may go over several lines.
        let is_open = |line: &[u8]| line.iter().filter(|&&byte| byte == b'"').count() % 2 == 1;
        let goes_on = second.is_none_or(|line| line.is_empty() || line.contains(&separator) || is_open(line));
        let mut names = text.split(char::from(separator));
        text.contains(char::from(separator)) && names.all(is_name) && goes_on
    };
    [b',', b';', b'\t'].into_iter().find(separates)
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
