/// What is wrong with a scale.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ScaleProblem {
    /// Fewer than two points.
    #[error("expected at least 2 points, found {found}")]
    TooFew {
        /// Number of points.
        found: usize,
    },
    /// A value is NaN or infinite.
    #[error("point {index} has the value {value}, expected a finite number")]
    NotFinite {
        /// Index of the point.
        index: usize,
        /// Its value.
        value: f64,
    },
    /// Values do not ascend strictly.
    #[error("point {index} is not above the point before it")]
    NotAscending {
        /// Index of the point.
        index: usize,
    },
    /// A label is empty.
    #[error("point {index} has an empty label")]
    EmptyLabel {
        /// Index of the point.
        index: usize,
    },
    /// A label appears twice.
    #[error("label {label:?} stands for points {first} and {second}")]
    SameLabel {
        /// The label.
        label: String,
        /// Index of the first point.
        first: usize,
        /// Index of the second point.
        second: usize,
    },
}
