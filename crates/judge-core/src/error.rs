use crate::{BackboneError, ScaleProblem};

/// Everything that can go wrong in this crate, apart from what is one item's own fault
/// ([`Unscored`](crate::Unscored)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The points do not make a scale.
    #[error("not a scale: {problem}")]
    Scale {
        /// What is wrong.
        problem: ScaleProblem,
    },
    /// A count is not what it must be.
    #[error("{what}: expected {expected}, found {found}")]
    Shape {
        /// What is counted.
        what: &'static str,
        /// The right count.
        expected: usize,
        /// The count found.
        found: usize,
    },
    /// NaN or infinity.
    #[error("{what}: value {index} is {value}, expected a finite number")]
    NonFinite {
        /// What the values are.
        what: &'static str,
        /// Index of the first such value.
        index: usize,
        /// The value.
        value: f64,
    },
    /// Weights that cannot be divided by their sum to give probabilities.
    #[error("not a distribution: {weights:?}")]
    NotADistribution {
        /// The weights.
        weights: Vec<f64>,
    },
    /// The backbone ended the run.
    #[error(transparent)]
    Backbone(#[from] BackboneError),
}
