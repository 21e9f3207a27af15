//! Why an object of scikit-learn's is no probe, and the path of attributes to what is wrong.

/// Why something that scikit-learn saved is not a probe, and where in it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ImportError {
    /// Where in the saved tree, as one would write it in Python: `model.best_estimator_.steps[1].coef_`.
    pub path: String,
    /// What was wrong.
    pub problem: ImportProblem,
}

/// What was wrong with a saved classifier.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportProblem {
    /// An attribute or entry that is not there; a classifier that was not fitted lacks some.
    #[error("missing")]
    Missing,

    /// A dictionary that holds no fitted object.
    #[error(
        "expected a fitted scikit-learn object, or a dictionary with one as its entry \"model\"; found a dictionary of {keys:?}"
    )]
    NotAModel {
        /// The first keys that are text, at most eight.
        keys: Vec<String>,
    },

    /// An object beside the model in a dictionary. It is most likely for the features, as a scaler is, and would not be applied.
    #[error(
        "{class} beside the model would not be applied: save the model alone, or both as one, sklearn.pipeline.make_pipeline(scaler, model)"
    )]
    BesideModel {
        /// Its class.
        class: &'static str,
    },

    /// Classes that are text.
    #[error(
        "classes must be whole numbers, found the text {found:?}: fit with whole numbers, e.g. by sklearn.preprocessing.LabelEncoder"
    )]
    TextClasses {
        /// The first classes, at most eight.
        found: Vec<String>,
    },

    /// Another type of value.
    #[error("expected {expected}, found {found}")]
    Type {
        /// What should stand here.
        expected: &'static str,
        /// What does.
        found: &'static str,
    },

    /// An array of another shape.
    #[error("expected shape {expected:?}, found {found:?}")]
    Shape {
        /// The shape that fits the rest.
        expected: Vec<usize>,
        /// The shape it has.
        found: Vec<usize>,
    },

    /// A number that is NaN, infinite or otherwise out of range.
    #[error("expected {expected} at {index}, found {found}")]
    Number {
        /// What numbers may stand here.
        expected: &'static str,
        /// Position of the first that is not, row by row.
        index: usize,
        /// The number.
        found: f64,
    },

    /// Classes that are not strictly ascending integers, two or more.
    #[error("expected two or more ascending classes, found {found:?}")]
    Classes {
        /// The first classes, at most eight.
        found: Vec<i64>,
    },

    /// A setting with which the classifier decides in a way that is not followed here.
    #[error("expected {expected}, found {found:?}")]
    Setting {
        /// What is followed.
        expected: &'static str,
        /// The setting, cut at 100 characters.
        found: String,
    },

    /// Two statements of one number that differ.
    #[error("expected {expected} {what}, found {found}")]
    Count {
        /// What is counted.
        what: &'static str,
        /// What the rest says.
        expected: usize,
        /// What stands here.
        found: usize,
    },

    /// More weights than the limit of [`array_elements`](crate::pickle::Limits::array_elements) allows.
    #[error("at most {most} weights allowed, found {found}")]
    TooLarge {
        /// The limit.
        most: usize,
        /// Weights there would be.
        found: usize,
    },
}
