use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Settings;

/// A line of a file, for error messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.path.display(), self.line)
    }
}

/// Everything that can go wrong between a judge and a disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Bytes that are not UTF-8.
    #[error("{place}, byte {column}: not valid UTF-8")]
    Utf8 {
        /// Where.
        place: Place,
        /// Byte within the line, from 1.
        column: usize,
    },
    /// Text that is not JSON.
    #[error("{place}, column {column}: {}", without_position(source))]
    Malformed {
        /// Where.
        place: Place,
        /// Byte within the line, from 1.
        column: usize,
        /// What the parser says; its own line and column count from the start of the object.
        source: serde_json::Error,
    },
    /// Text between the elements of an array, or after it, that does not belong there.
    #[error("{place}, column {column}: expected {expected}, found {}", found.map_or("the end of the file".into(), |c| format!("{c:?}")))]
    Syntax {
        /// Where.
        place: Place,
        /// Byte within the line, from 1.
        column: usize,
        /// What could have stood there.
        expected: &'static str,
        /// The byte found; `None` at the end of the file.
        found: Option<char>,
    },
    /// A row that is JSON but not an object.
    #[error("{place}: expected an object, found {found}")]
    NotAnObject {
        /// Where.
        place: Place,
        /// The value, shortened.
        found: String,
    },
    /// An object that has one key twice.
    #[error("{place}: the key {key:?} stands twice")]
    DuplicateKey {
        /// Where.
        place: Place,
        /// The key.
        key: String,
    },
    /// A field that must be there is not.
    #[error("{place}: expected a field {field:?}, found the fields {found:?}")]
    MissingField {
        /// Where.
        place: Place,
        /// The field.
        field: &'static str,
        /// The fields that are there.
        found: Vec<String>,
    },
    /// A field holds something else than it should.
    #[error("{place}: expected {field:?} to be {expected}, found {found}")]
    WrongType {
        /// Where.
        place: Place,
        /// The field.
        field: &'static str,
        /// What it should hold.
        expected: &'static str,
        /// What it holds, shortened.
        found: String,
    },
    /// Two fields of which only one can be meant.
    #[error("{place}: has both {first:?} and {second:?}, expected one of them")]
    BothFields {
        /// Where.
        place: Place,
        /// The one.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// Two rows with one id.
    #[error("{place}: the id {id} is already that of line {first_line}")]
    DuplicateId {
        /// Where it stands again.
        place: Place,
        /// The id, as JSON.
        id: String,
        /// Where it stood first.
        first_line: usize,
    },
    /// The fields of a row fit no kind of data set that is known, or several.
    #[error("{place}: the fields {found:?} fit {}; the known kinds are {known}", several(candidates))]
    UnknownFormat {
        /// Where.
        place: Place,
        /// The fields of the row.
        found: Vec<String>,
        /// The kinds they fit: none, or several.
        candidates: Vec<&'static str>,
        /// The known kinds with their fields.
        known: &'static str,
    },
    /// A file without a single row, where its kind is to be told from its rows.
    #[error("{} has no rows", path.display())]
    NoRows {
        /// The file.
        path: PathBuf,
    },
    /// Rows, columns or lists of a table that do not fit together.
    #[error("{place}: {what}: expected {expected} entries, found {found}")]
    Ragged {
        /// Where.
        place: Place,
        /// Which part of the table.
        what: String,
        /// Entries it should have.
        expected: usize,
        /// Entries it has.
        found: usize,
    },
    /// A file of this project, but not of the kind asked for; or not of this project.
    #[error("{}: expected a file of format {expected:?}, found {found}", path.display())]
    FileFormat {
        /// The file.
        path: PathBuf,
        /// The format asked for.
        expected: &'static str,
        /// What its `format` field holds, as JSON, or what stands in its place.
        found: String,
    },
    /// A format version that this crate does not know.
    #[error("{}: expected version {expected} of {format}, found {found}", path.display())]
    FileVersion {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: &'static str,
        /// The version that this crate reads and writes.
        expected: u64,
        /// The file's version.
        found: u64,
    },
    /// The content of a saved file is not what its format says.
    #[error("{}: {source}", path.display())]
    Document {
        /// The file.
        path: PathBuf,
        /// Which part of it.
        source: serde_json::Error,
    },
    /// A value without a JSON form.
    #[error("cannot be written as JSON: {source}")]
    Serialize {
        /// Why.
        source: serde_json::Error,
    },
    /// NaN or infinity where only a finite number can be written.
    #[error("{what}: value {index} of row {row} is {value}, expected a finite number")]
    NonFinite {
        /// What the values are.
        what: &'static str,
        /// Index of the row.
        row: usize,
        /// Index within the row.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A count is not what it must be.
    #[error("{what} {index}: expected {expected}, found {found}")]
    Shape {
        /// What is counted, e.g. `values of row`.
        what: &'static str,
        /// Which one.
        index: usize,
        /// The right count.
        expected: usize,
        /// The count found.
        found: usize,
    },
    /// An interrupted run is to go on with other settings than it began with, or a file is not of the run of those beside it.
    #[error("{} was begun with other settings: {}", path.display(), differences.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    SettingsDiffer {
        /// The unfinished output, or the file of another run.
        path: PathBuf,
        /// The settings that differ.
        differences: Vec<Difference>,
    },
    /// Another process is writing this output.
    #[error("{} is being written by another process", path.display())]
    Locked {
        /// The unfinished output.
        path: PathBuf,
    },
    /// An unfinished output holds what this crate did not write there.
    #[error("{place}: {problem}; delete the file to start again")]
    Partial {
        /// Where.
        place: Place,
        /// What is wrong.
        problem: PartialProblem,
    },
    /// A row that is already there.
    #[error("row {row} is already written")]
    RowTwice {
        /// Index of the row.
        row: usize,
    },
    /// A row beyond the number of rows.
    #[error("row {row} does not exist, there are {rows} rows")]
    NoSuchRow {
        /// Index of the row.
        row: usize,
        /// Number of rows.
        rows: usize,
    },
    /// An output is to be finished before all of its rows are there.
    #[error("{missing} of {rows} rows are not written yet, the first is row {first}")]
    Incomplete {
        /// Number of missing rows.
        missing: usize,
        /// Number of rows.
        rows: usize,
        /// Index of the first missing row.
        first: usize,
    },
    /// A safetensors file that cannot be read as one.
    #[error("{}: {source}", path.display())]
    Safetensors {
        /// The file.
        path: PathBuf,
        /// What is wrong with its header.
        source: safetensors::SafeTensorError,
    },
    /// A tensor that is absent, or not of the dtype and shape that the file's format says.
    #[error("{}: expected tensor {tensor:?} as {expected}, found {found}", path.display())]
    Tensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: &'static str,
        /// Dtype and shape it should have.
        expected: String,
        /// Dtype and shape it has.
        found: String,
    },
    /// A file of a table of hidden states that is not what the others call for.
    #[error("{}: {what}: expected {expected}, found {found}", path.display())]
    StatesPart {
        /// The file.
        path: PathBuf,
        /// What of it, e.g. `first row`.
        what: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// Logits that do not make a table.
    #[error("{place}: {source}")]
    Table {
        /// Where.
        place: Place,
        /// Why not.
        source: Box<judge_core::Error>,
    },
}

/// One setting in which two runs differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The setting.
    pub key: String,
    /// Its value in the run before; `None` if it was not set.
    pub before: Option<Value>,
    /// Its value now; `None` if it is not set.
    pub now: Option<Value>,
}

impl Difference {
    /// The settings in which the two differ: those that were set in their order, then those that are new.
    pub(crate) fn between(before: &Settings, now: &Settings) -> Vec<Self> {
        let keys = before.keys().chain(now.keys().filter(|key| !before.contains_key(*key)));
        let differences = keys.filter(|&key| before.get(key) != now.get(key));
        let value = |settings: &Settings, key| settings.get(key).cloned();
        differences.map(|key| Self { key: key.clone(), before: value(before, key), now: value(now, key) }).collect()
    }

    /// Refuses what was written with other settings.
    pub(crate) fn refuse(path: &Path, before: &Settings, now: &Settings) -> Result<(), Error> {
        let differences = Self::between(before, now);
        if differences.is_empty() {
            Ok(())
        } else {
            Err(Error::SettingsDiffer { path: path.to_path_buf(), differences })
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: &Option<Value>| value.as_ref().map_or("unset".into(), ToString::to_string);
        write!(f, "{} was {}, is {}", self.key, show(&self.before), show(&self.now))
    }
}

/// What is wrong with an unfinished output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartialProblem {
    /// Rows are there, the settings they were made with are not.
    #[error("there is no settings file beside it")]
    NoSettings,
    /// A line is not a row index, a tab and JSON.
    #[error("expected a row index, a tab and a JSON object")]
    NotARow,
    /// A row stands twice.
    #[error("row {row} stands twice")]
    RowTwice {
        /// Index of the row.
        row: usize,
    },
    /// A row beyond the number of rows.
    #[error("row {row} does not exist, there are {rows} rows")]
    NoSuchRow {
        /// Index of the row.
        row: usize,
        /// Number of rows.
        rows: usize,
    },
}

impl Error {
    /// For `map_err`: what was tried, and on what.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_path_buf(), source }
    }

    pub(crate) fn serialize(source: serde_json::Error) -> Self {
        Self::Serialize { source }
    }

    /// A parser's complaint about an object that starts at `place`, `column`.
    pub(crate) fn malformed(mut place: Place, column: usize, source: serde_json::Error) -> Self {
        let column = if source.line() <= 1 { column + source.column().max(1) - 1 } else { source.column() };
        place.line += source.line().saturating_sub(1);
        Self::Malformed { place, column, source }
    }

    /// Whether more text could have made this JSON.
    pub(crate) fn is_unfinished(&self) -> bool {
        matches!(self, Self::Malformed { source, .. } if source.is_eof())
    }
}

fn several(names: &[&str]) -> String {
    if names.is_empty() { "no known kind".into() } else { format!("several kinds ({})", names.join(", ")) }
}

/// The parser's words without its own line and column, which count from the start of the object.
fn without_position(source: &serde_json::Error) -> String {
    let text = source.to_string();
    match text.rsplit_once(" at line ") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
