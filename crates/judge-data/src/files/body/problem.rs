/// Why a value cannot be written as a row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyProblem {
    /// It is JSON, but no object.
    #[error("expected a JSON object, found {found}")]
    NotAnObject {
        /// The value, shortened.
        found: String,
    },
    /// It has a line break outside of its strings, so that readers would take it for several rows.
    #[error("expected an object on one line, found a line break in {found}")]
    LineBreak {
        /// The value, shortened.
        found: String,
    },
    /// It has one key twice, so that readers would see one of the values alone.
    #[error("expected each key once, found {key:?} twice")]
    KeyTwice {
        /// The key.
        key: String,
    },
}
