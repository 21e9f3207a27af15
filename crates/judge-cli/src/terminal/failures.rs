//! Bars that a command's statistics did not reach.

use std::fmt;

/// The program ends with exit code 3.
#[derive(Debug)]
pub struct Missed {
    /// Each that is missed, and what was found of it, in words.
    pub missed: Vec<String>,
    /// How many there are.
    pub of: usize,
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bars are missed", self.missed.len(), self.of)?;
        self.missed.iter().try_for_each(|missed| write!(f, "\n  {missed}"))
    }
}

impl std::error::Error for Missed {}
