//! What is wrong with a `config.json`; part of the public API.

/// What is wrong with a `config.json`, or with a field of `generation_config.json`. Each variant but
/// `Json` names the field, as the file spells it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigProblem {
    /// Not JSON, or not with the fields that it should have.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A field of the wrong type, such as `null` where a number belongs, or with a number that its
    /// type does not hold.
    #[error("{field} is {found}: {source}")]
    Field {
        /// The field; one within an object has the object's name and a dot before it.
        field: String,
        /// Its value, as JSON.
        found: String,
        /// What was expected.
        source: serde_json::Error,
    },
    /// A name that this crate does not know.
    #[error("{field} {found:?} is not known; known are {known:?}")]
    Unknown {
        /// The field that holds the name.
        field: &'static str,
        /// The name found.
        found: String,
        /// The names that this crate knows.
        known: &'static [&'static str],
    },
    /// A field that must be there is absent or null.
    #[error("{field} is missing, {needed_by} needs it")]
    Missing {
        /// The absent field.
        field: &'static str,
        /// What needs it: a family, another field or a kind of rotation.
        needed_by: &'static str,
    },
    /// A value out of its range, or one that contradicts another.
    #[error("{field} is {found}, expected {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// What the value should be.
        expected: String,
    },
    /// Something that transformers computes and this crate does not.
    #[error("{field} = {found} is not supported")]
    Unsupported {
        /// The field that asks for it.
        field: &'static str,
        /// Its value.
        found: String,
    },
}

impl ConfigProblem {
    /// A [`Value`](Self::Value).
    pub(crate) fn value(field: &'static str, found: impl ToString, expected: impl Into<String>) -> Self {
        Self::Value { field, found: found.to_string(), expected: expected.into() }
    }
}
