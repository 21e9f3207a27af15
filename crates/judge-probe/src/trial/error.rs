//! Why readings cannot be compared.

/// Why readings cannot be compared.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrialError {
    /// Another number of something than of rows.
    #[error("{what}: expected one for each of {expected} rows, found {found}")]
    Rows {
        /// What it is of.
        what: String,
        /// Rows there are.
        expected: usize,
        /// What was found.
        found: usize,
    },

    /// A grade or a number that is not finite.
    #[error("{what} of row {row} is {value}, expected a finite number")]
    NonFinite {
        /// What it is of.
        what: String,
        /// The row, from 0.
        row: usize,
        /// Its value.
        value: f64,
    },

    /// Nothing can be learnt or compared.
    #[error("all {rows} rows have the grade {grade}, so no reading can agree better than another")]
    OneGrade {
        /// Rows there are.
        rows: usize,
        /// Their grade.
        grade: f64,
    },

    /// Too few rows that do not belong together.
    #[error("{groups} groups of rows, expected at least {expected}, two for each fold: take fewer folds, or more rows")]
    FewGroups {
        /// How many there are.
        groups: usize,
        /// How many there must be.
        expected: usize,
    },

    /// Layer weights could not be fitted.
    #[error("layer weights: {0}")]
    Weights(String),
}
