/// What is wrong with a `config.json`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// Not JSON, or a field of the wrong type.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A name that this crate does not know.
    #[error("{field} {found:?} is not known; known are {known:?}")]
    Unknown {
        /// The field that holds it.
        field: &'static str,
        /// The name found.
        found: String,
        /// The names that this crate knows.
        known: &'static [&'static str],
    },
    /// A field that must be there.
    #[error("{field} is missing, {needed_by} needs it")]
    Missing {
        /// The field.
        field: &'static str,
        /// What needs it.
        needed_by: &'static str,
    },
    /// A value out of its range, or one that contradicts another.
    #[error("{field} is {found}, expected {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// Something that transformers does and this crate does not.
    #[error("{field} = {found} is not supported")]
    Unsupported {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
    },
}
