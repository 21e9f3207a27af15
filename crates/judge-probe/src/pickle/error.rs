//! Why a pickle was not read, and where in it. Every error names the opcode and its offset, so that a file can be looked into with
//! `pickletools`.

/// Why a pickle was refused, and where.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("byte {offset}, {opcode}: {problem}")]
pub struct ReadError {
    /// Where in the pickle the opcode stands; of a value that is refused once the tree is made, the opcode that began it.
    pub offset: usize,
    /// Name of the opcode, as Python's `pickletools` has it.
    pub opcode: &'static str,
    /// What was wrong.
    pub problem: Problem,
}

/// What was wrong with a pickle.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A global that is not on the list of those allowed.
    #[error("the global {module}.{name} is not allowed")]
    ForeignGlobal {
        /// Its module, cut at 100 characters.
        module: String,
        /// Its name, cut at 100 characters.
        name: String,
    },

    /// Larger than the [limits](super::Limits) allow.
    #[error("{limit}: at most {most} allowed, found {found} or more")]
    TooLarge {
        /// What is limited.
        limit: &'static str,
        /// The limit.
        most: usize,
        /// What there is, or the count at which reading stopped.
        found: usize,
    },

    /// An array in a form that is not read: of text, of other elements, or as joblib 0.9 and older write it, in other files.
    #[error("{0}")]
    Array(String),

    /// Anything else: damage, another protocol or form of compression, an opcode or a value that is not in its place, an allowed global in
    /// a role that it does not have, a value that contains itself.
    #[error("{0}")]
    Refused(String),
}

/// Foreign text for an error message.
pub(super) fn cut(text: &str) -> String {
    text.chars().take(100).collect()
}
