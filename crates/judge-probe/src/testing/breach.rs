//! The ways in which an estimator may depart from its contract.

/// Where an estimator departs from its contract.
///
/// Rows count from 0 among the 36 made up here. A breach names the first row, not all of them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ContractBreach {
    /// Other classes than those of the labels, ascending.
    #[error("the classes are {expected:?}, the estimator says {found:?}")]
    Classes {
        /// Those of the labels.
        expected: Vec<i64>,
        /// Those it says.
        found: Vec<i64>,
    },

    /// A result of the wrong shape.
    #[error("{method} gives {found:?}, not {expected:?}")]
    Shape {
        /// What was called.
        method: &'static str,
        /// Rows and columns there should be.
        expected: (usize, usize),
        /// Rows and columns there are.
        found: (usize, usize),
    },

    /// Probabilities that are negative or do not sum to 1.
    #[error("probabilities of row {row} are {probabilities:?}")]
    Probabilities {
        /// The row.
        row: usize,
        /// Its probabilities.
        probabilities: Vec<f64>,
    },

    /// Another class predicted than the result of a method speaks for.
    #[error("predict says {class} of row {row}, {method} {values:?}")]
    Disagreement {
        /// What was called besides.
        method: &'static str,
        /// The row.
        row: usize,
        /// The class predicted.
        class: i64,
        /// What the method gave.
        values: Vec<f64>,
    },

    /// [`FittedEstimator::predictions`](crate::FittedEstimator::predictions) that are not those of `predict` and `predict_proba`.
    #[error("predictions are not what predict and predict_proba say")]
    Predictions,

    /// A result that depends on what it should not depend on.
    #[error("{method} of row {row} is {found:?} {when}, {expected:?} otherwise")]
    Changed {
        /// What was called.
        method: &'static str,
        /// The row.
        row: usize,
        /// What was different.
        when: &'static str,
        /// The result at first.
        expected: Vec<f64>,
        /// The result then.
        found: Vec<f64>,
    },

    /// What should be refused was not, or for another reason.
    #[error("{given} should be refused with \"{expected}\", not {}", found.as_deref().unwrap_or("accepted"))]
    Refusal {
        /// What was wrong with the data.
        given: &'static str,
        /// The message of the error it should be refused with.
        expected: String,
        /// The message it was refused with; `None` if it was accepted.
        found: Option<String>,
    },

    /// Classes far apart that are not told apart.
    #[error("{right} of {n_rows} rows of classes far apart are predicted right")]
    NotLearnt {
        /// Rows predicted right.
        right: usize,
        /// Rows there are.
        n_rows: usize,
    },
}
