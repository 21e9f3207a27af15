//! What can be wrong with an unfinished output.

/// What is wrong with an unfinished output.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartialProblem {
    /// The file does not begin as an unfinished output does, or was begun by a version that did not note what a run is.
    #[error("expected the beginning of an unfinished output")]
    NotAJournal,
    /// An unfinished output of another version of this crate.
    #[error("expected an unfinished output of version {expected}, found version {found}")]
    Version {
        /// The version that this crate writes.
        expected: u64,
        /// The file's version.
        found: u64,
    },
    /// A row beyond the number of rows.
    #[error("row {row} does not exist, there are {rows} rows")]
    NoSuchRow {
        /// Index of the row.
        row: usize,
        /// Number of rows.
        rows: usize,
    },
    /// A row's fate that is not known.
    #[error("expected `scored` or a reason, found {found:?}")]
    UnknownFate {
        /// What is there.
        found: String,
    },
}
