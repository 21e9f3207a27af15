use std::fmt;

use super::States;
use crate::Lens;

/// Why layer weights are refused: what they were fitted on is not what they are used on.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WeightMismatch {
    /// Another model.
    Model {
        /// Name of the model fitted on.
        fitted: String,
        /// Its fingerprint.
        fitted_fingerprint: String,
        /// Name of the model used.
        used: String,
        /// Its fingerprint.
        used_fingerprint: String,
    },
    /// Another number of blocks.
    LayerCount {
        /// Blocks fitted on.
        fitted: usize,
        /// Blocks used.
        used: usize,
    },
    /// Another choice of layers.
    States {
        /// Fitted on.
        fitted: States,
        /// Used.
        used: States,
    },
    /// Another lens.
    Lens {
        /// Fitted with.
        fitted: Lens,
        /// Used.
        used: Lens,
    },
}

impl fmt::Display for WeightMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model { fitted, fitted_fingerprint, used, used_fingerprint } => {
                write!(f, "fitted on the model {fitted} ({fitted_fingerprint}), used on {used} ({used_fingerprint})")
            }
            Self::LayerCount { fitted, used } => {
                write!(f, "fitted on a model of {fitted} blocks, used on one of {used}")
            }
            Self::States { fitted, used } => write!(f, "fitted on the states {fitted}, used on {used}"),
            Self::Lens { fitted, used } => write!(f, "fitted with the lens {fitted:?}, used with {used:?}"),
        }
    }
}
