//! The errors of GGUF files. They are made here and in `weights/gguf/`, and reach
//! users inside `Error::Gguf`, which names the file.

/// What is wrong with a GGUF file, or keeps it from being read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GgufProblem {
    /// It does not begin as such files do.
    #[error("it begins with {found:?}, expected \"GGUF\"")]
    Magic {
        /// Its first four bytes.
        found: [u8; 4],
    },
    /// A version that is not read.
    #[error("version {found}, expected 2 or 3 (little-endian)")]
    Version {
        /// The version found.
        found: u32,
    },
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
    /// A text that is not UTF-8.
    #[error("the text at byte {offset} is not UTF-8")]
    Text {
        /// Where it begins.
        offset: u64,
    },
    /// A value of a type that the format does not have, or lists within too many lists.
    #[error("the value of {key} has the unknown type {found}")]
    ValueType {
        /// Its key.
        key: String,
        /// The number of the type.
        found: u32,
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
    /// A tensor in a type that is not read.
    #[error(
        "tensor {tensor}: type {found} is not supported, only F64, F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, \
        IQ1_S to IQ4_XS, TQ1_0, TQ2_0, MXFP4 and NVFP4: quantise the model again, for example as Q4_K_M"
    )]
    Type {
        /// The tensor.
        tensor: String,
        /// The name of the type, or its number.
        found: String,
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
    /// A tensor that does not begin at a multiple of the alignment.
    #[error("tensor {tensor} begins at byte {offset} of the data, expected a multiple of {alignment}")]
    Offset {
        /// The tensor.
        tensor: String,
        /// Where it begins.
        offset: u64,
        /// The file's alignment.
        alignment: u64,
    },
    /// Two values of one key, of which readers may take one or the other.
    #[error("the key {key} appears twice")]
    KeyTwice {
        /// The key.
        key: String,
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
