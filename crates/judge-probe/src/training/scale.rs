//! The scale that grades lie on. What checks grades against it is `grading`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The range that grades were given in, both ends included. Written as `1-5`.
///
/// It refuses grades that a mistake has put outside, and it is the calibrator's range where that has none of its own. No grade
/// is rescaled by it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GradeScale {
    /// The worst grade.
    /// Finite and below [`high`](Self::high) where the scale was read from text; a literal is not checked.
    pub low: f64,
    /// The best.
    pub high: f64,
}

impl Default for GradeScale {
    /// 1 to 5, as INSPECTOR's.
    fn default() -> Self {
        Self { low: 1.0, high: 5.0 }
    }
}

impl fmt::Display for GradeScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.low, self.high)
    }
}
