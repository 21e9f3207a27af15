//! The errors of SentencePiece files. They are made in this folder and reach users inside `Error::SentencePiece`, which
//! names the file.

/// What is wrong with a SentencePiece file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SentencePieceProblem {
    /// It ends, or a message in it does, before what it says to hold.
    #[error("truncated, or no SentencePiece model: at byte {at} {expected} bytes are expected, found {found}")]
    Truncated {
        /// Where they would begin.
        at: usize,
        /// Bytes that there must be.
        expected: usize,
        /// Bytes that there are.
        found: usize,
    },
    /// An integer of more than ten bytes.
    #[error("no SentencePiece model: the integer before byte {at} does not end within ten bytes")]
    Integer {
        /// Where it should have ended.
        at: usize,
    },
    /// A field of a wire type that no such file has.
    #[error("no SentencePiece model: the field at byte {at} has the wire type {found}, expected 0, 1, 2 or 5")]
    WireType {
        /// The type.
        found: u64,
        /// Where the field begins.
        at: usize,
    },
    /// A field that holds something else than the schema says.
    #[error("no SentencePiece model: field {number}, which holds its content at byte {at}, is not {expected}")]
    Field {
        /// Its number.
        number: u64,
        /// Where its content is.
        at: usize,
        /// What the schema says.
        expected: &'static str,
    },
    /// A message without a vocabulary, such as that of another program.
    #[error("no SentencePiece model: it has no pieces")]
    NoPieces,
    /// A piece that SentencePiece would not load.
    #[error("piece {id} is {found:?}, expected {expected}")]
    Piece {
        /// Its number.
        id: usize,
        /// Its text.
        found: String,
        /// What it should be or have.
        expected: &'static str,
    },
    /// A setting that does not fit the vocabulary.
    #[error("{field} is {found}, expected {expected}")]
    Setting {
        /// Its name in SentencePiece's schema.
        field: &'static str,
        /// What it says.
        found: String,
        /// What it should say.
        expected: &'static str,
    },
}
