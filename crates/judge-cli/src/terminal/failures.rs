//! Bars that a command's statistics did not reach.

use std::fmt;

/// The program ends with exit code 3.
#[derive(Debug)]
pub struct Missed {
    /// How many are missed.
    pub missed: usize,
    /// How many there are.
    pub of: usize,
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bars are missed", self.missed, self.of)
    }
}

impl std::error::Error for Missed {}
