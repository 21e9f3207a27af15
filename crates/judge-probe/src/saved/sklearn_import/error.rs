//! Why an object of scikit-learn's is no probe, with the path of attributes to what is wrong.

/// Why something that scikit-learn saved is not a probe, and where in it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ImportError {
    /// Where in the saved tree, as one would write it in Python: `model.best_estimator_.steps[1].coef_`.
    pub path: String,
    /// What was wrong.
    pub problem: String,
}
