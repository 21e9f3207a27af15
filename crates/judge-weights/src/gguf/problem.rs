//! The errors of GGUF files. They are made here and in `weights/gguf/`, and reach
//! users inside `Error::Gguf`, which names the file.

/// What is wrong with a GGUF file, or keeps it from being read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GgufProblem {
    /// Its header is of another format, contradicts itself, or has a tensor of a type that is not read: how, in words.
    #[error("{0}")]
    Header(String),
    /// It ends before what it says to hold.
    #[error("truncated: {what} needs {expected} bytes, found {found}")]
    Truncated {
        /// What would lie there.
        what: String,
        /// Bytes that the file must have for it.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// A value that is missing, or is another than it must be.
    #[error("{key} is {found}, expected {expected}")]
    Value {
        /// Its key.
        key: String,
        /// What it says.
        found: String,
        /// What it should say.
        expected: String,
    },
    /// A key or a tensor that is not there.
    #[error("{key} is missing or not of its type; it is needed for {needed_for}")]
    Missing {
        /// Its name.
        key: String,
        /// What for.
        needed_for: &'static str,
    },
    /// A file, or a part of its description, that is of a kind that is not read.
    #[error("{what} is not read, only {read}")]
    NotRead {
        /// What the file holds.
        what: String,
        /// What is read, or what to do.
        read: &'static str,
    },
    /// A setting of the model that is another one in `config.json`, by which everything is computed. Where
    /// there is no `config.json`, two of the file's own settings contradict each other.
    #[error(
        "{key} is {found}, but {field} of config.json (beside the file, or as its other keys make it) says {expected}: \
        they must be of one model"
    )]
    Setting {
        /// Its key.
        key: String,
        /// What the file says.
        found: Box<str>,
        /// What follows from `config.json`.
        expected: Box<str>,
        /// The field that it follows from.
        field: &'static str,
    },
    /// A tensor whose dimensions no file can hold.
    #[error("tensor {tensor}: dimensions {found:?}, expected 1 to 4 of them, the first a multiple of {block}")]
    Dimensions {
        /// The tensor.
        tensor: String,
        /// Its dimensions, the fastest first.
        found: Vec<u64>,
        /// Elements that its type packs together.
        block: usize,
    },
    /// Two tensors of one name.
    #[error("tensor {tensor} appears twice")]
    Twice {
        /// The name.
        tensor: String,
    },
}

impl GgufProblem {
    /// [`Value`](Self::Value) of a key.
    pub fn value(key: &str, found: String, expected: impl Into<String>) -> Self {
        Self::Value { key: key.to_owned(), found, expected: expected.into() }
    }
}
