//! Why a multi-layer perceptron was not fitted.
//!
//! It is what `Error::Mlp` carries. Settings are checked before any row is read; the other errors need a fit that has
//! begun.

/// Why a multi-layer perceptron was not fitted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MlpError {
    /// A hidden layer without units.
    #[error("hidden layer {layer} has no units")]
    NoUnits {
        /// Its position, from the features on.
        layer: usize,
    },

    /// More weights than memory can hold.
    #[error("there is no room for {n_units} units with {n_inputs} inputs each")]
    NoRoom {
        /// Units of the layer.
        n_units: usize,
        /// What each has a weight for.
        n_inputs: usize,
    },

    /// Batches of no rows.
    #[error("batch_size must be at least 1, found 0")]
    NoBatch,

    /// The loss, a weight or its gradient has left the range of double precision: the learning rate is too high, or features are too large.
    #[error("loss or weights are no longer finite after {n_iter} passes over the rows")]
    Diverged {
        /// Passes begun.
        n_iter: usize,
    },

    /// All passes were made, and the loss, or the score of the rows held out, was still getting better.
    #[error(
        "not settled after {max_iter} passes over the rows: the last {n_idle} brought no improvement by {tol:e}, more than \
         {n_iter_no_change} in a row are waited for"
    )]
    NotSettled {
        /// Passes allowed.
        max_iter: usize,
        /// How many of the last ones, in a row, were in vain.
        n_idle: usize,
        /// How many in a row must be exceeded.
        n_iter_no_change: usize,
        /// The least improvement that counts.
        tol: f64,
    },

    /// What Burn reports.
    #[error("burn gives no numbers: {message}")]
    Backend {
        /// Its message.
        message: String,
    },
}
