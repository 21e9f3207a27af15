/// Why features were refused or an estimator could not be fitted or applied. Indices count from 0.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No rows, or rows without features.
    #[error("a matrix needs rows and features, found {n_rows} rows of {n_features}")]
    Empty {
        /// Rows given.
        n_rows: usize,
        /// Features per row.
        n_features: usize,
    },

    /// A row of another length than the first.
    #[error("row {row} has {found} features, the first has {expected}")]
    RaggedRow {
        /// Position of the row.
        row: usize,
        /// Features of the first row.
        expected: usize,
        /// Features of this one.
        found: usize,
    },

    /// A number of values that does not fill whole rows.
    #[error("{n_values} values do not make whole rows of {n_features}")]
    PartialRow {
        /// Values given.
        n_values: usize,
        /// Features per row.
        n_features: usize,
    },

    /// A feature is NaN or infinite.
    #[error("feature {feature} of row {row} is {value}, not a finite number")]
    NonFiniteFeature {
        /// Row of the first such value.
        row: usize,
        /// Its feature.
        feature: usize,
        /// The value itself.
        value: f64,
    },

    /// A target is NaN or infinite.
    #[error("the target of row {row} is {value}, not a finite number")]
    NonFiniteTarget {
        /// Row of the first such value.
        row: usize,
        /// The value itself.
        value: f64,
    },

    /// Another number of targets than of rows.
    #[error("{n_rows} rows but {n_targets} targets")]
    TargetCount {
        /// Rows of features.
        n_rows: usize,
        /// Targets given.
        n_targets: usize,
    },

    /// Another number of features than at fitting.
    #[error("fitted on {expected} features, found {found}")]
    FeatureCount {
        /// Features at fitting.
        expected: usize,
        /// Features given.
        found: usize,
    },

    /// A penalty that is negative, NaN or infinite.
    #[error("alpha must be a finite number of at least 0, found {alpha}")]
    InvalidAlpha {
        /// The penalty given.
        alpha: f64,
    },

    /// The penalty is too small for the data to define the coefficients: some features are combinations of others.
    #[error(
        "the {order} by {order} system is singular at pivot {pivot} with alpha = {alpha}: the coefficients are undefined"
    )]
    Singular {
        /// Number of equations.
        order: usize,
        /// The pivot that is 0 but for rounding.
        pivot: usize,
        /// The penalty.
        alpha: f64,
    },

    /// Finite values so large that a sum or product of them is not.
    #[error("feature {feature} is too large for double precision: a sum over it overflows")]
    Overflow {
        /// First feature concerned.
        feature: usize,
    },

    /// Another number of labels than of rows.
    #[error("{n_rows} rows but {n_labels} labels")]
    LabelCount {
        /// Rows of features.
        n_rows: usize,
        /// Labels given.
        n_labels: usize,
    },

    /// Every row has the same label, so that there is nothing to tell apart.
    #[error("a classifier needs two classes or more, found {class} alone")]
    OneClass {
        /// The label of every row.
        class: i64,
    },

    /// An inverse strength of the penalty that is not a positive finite number.
    #[error("c must be a positive finite number, found {c}")]
    InvalidC {
        /// The value given.
        c: f64,
    },

    /// A tolerance that is not a positive finite number.
    #[error("tol must be a positive finite number, found {tol}")]
    InvalidTol {
        /// The value given.
        tol: f64,
    },

    /// The solver used up its iterations, or rounding kept it from going on, before it was as near the optimum as asked for.
    #[error(
        "not converged after {n_iter} of at most {max_iter} iterations: the optimality gap is {gap:e}, tol is {tol:e}"
    )]
    NotConverged {
        /// Iterations done.
        n_iter: usize,
        /// Iterations allowed.
        max_iter: usize,
        /// What `tol` bounds, as it was in the end.
        gap: f64,
        /// The bound.
        tol: f64,
    },
}
