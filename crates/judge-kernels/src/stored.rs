//! An array of a matrix: in memory of the process, or in a file of the packed cache.

use std::ops::Deref;

use super::lines::{Lines, MappedLines};

/// 32-bit words of a matrix.
pub enum Stored {
    /// In memory of this process.
    Own(Lines<u32>),
    /// In a file of the packed cache.
    Mapped(MappedLines),
}

impl Deref for Stored {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        match self {
            Self::Own(words) => words,
            Self::Mapped(words) => words,
        }
    }
}
