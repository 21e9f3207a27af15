//! The names that a pickle may refer to. None of them is ever called: each stands for a way to put plain values together, or for itself.
//!
//! The list is closed on purpose and cannot be extended by users. A class belongs on it only if its state is its `__dict__`: no
//! `__setstate__` or `__reduce__` that does more than set attributes, apart from scikit-learn's own version check, and no compiled part.
//! What a class's attributes mean is not known here, but for those that nothing reads: [`is_unread`].
//!
//! Not on the list, though scikit-learn has them: trees, ensembles and other transformers (no probe here reads them) and every function
//! that could act.

/// An allowed global.
///
/// Being on the list is not enough: each has one role, and is refused in any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Global {
    /// How protocol 2 writes bytes: text of the code points 0 to 255.
    Encode,
    /// How protocol 2 writes no bytes.
    EmptyBytes,
    /// `numpy.dtype`.
    DType,
    /// `numpy.ndarray`, only ever an argument.
    NdArray,
    /// How an array begins up to protocol 4.
    Reconstruct,
    /// How protocol 5 writes an array.
    FromBuffer,
    /// A single number of NumPy's.
    Scalar,
    /// A class whose objects are made of attributes alone. Its canonical name.
    Class(&'static str),
}

impl Global {
    /// The global of this module and name; `None` if it is not allowed.
    ///
    /// Module and name must match exactly. A dotted name, which protocol 4 allows as a path of attributes, matches none: a class must be
    /// the direct member of its module.
    pub(super) fn find(module: &str, name: &str) -> Option<Self> {
        // Before version 2, NumPy's private package had no underscore.
        Some(match (module, name) {
            ("_codecs", "encode") => Self::Encode,
            ("__builtin__" | "builtins", "bytes") => Self::EmptyBytes,
            ("numpy", "dtype") => Self::DType,
            ("numpy", "ndarray") => Self::NdArray,
            ("numpy._core.multiarray" | "numpy.core.multiarray", "_reconstruct") => Self::Reconstruct,
            ("numpy._core.multiarray" | "numpy.core.multiarray", "scalar") => Self::Scalar,
            ("numpy._core.numeric" | "numpy.core.numeric", "_frombuffer") => Self::FromBuffer,
            _ => {
                let module = present_module(module, name);
                let is_it = |known: &&str| known.rsplit_once('.') == Some((module, name));
                Self::Class(CLASSES.iter().copied().find(is_it)?)
            }
        })
    }

    /// Its name with its module, in NumPy's and scikit-learn's present spelling.
    ///
    /// So that a pickle of NumPy 1 and one of NumPy 2 give equal trees.
    pub(super) fn dotted(self) -> &'static str {
        match self {
            Self::Encode => "_codecs.encode",
            Self::EmptyBytes => "builtins.bytes",
            Self::DType => "numpy.dtype",
            Self::NdArray => "numpy.ndarray",
            Self::Reconstruct => "numpy._core.multiarray._reconstruct",
            Self::FromBuffer => "numpy._core.numeric._frombuffer",
            Self::Scalar => "numpy._core.multiarray.scalar",
            Self::Class(name) => name,
        }
    }
}

/// The module of a class as scikit-learn has called it since release 0.22, for classes whose attributes have stayed the same. The support
/// vector machine's have not.
fn present_module<'m>(module: &'m str, name: &str) -> &'m str {
    match (module, name) {
        ("sklearn.linear_model.logistic", _) => "sklearn.linear_model._logistic",
        ("sklearn.preprocessing.data", _) => "sklearn.preprocessing._data",
        ("sklearn.decomposition.pca", _) => "sklearn.decomposition._pca",
        ("sklearn.svm.classes", "LinearSVC") => "sklearn.svm._classes",
        _ => module,
    }
}

/// Whether scikit-learn has had a module of this name before release 0.22 alone.
pub(super) fn is_of_old_release(module: &str) -> bool {
    const OLD: [&str; 12] = [
        "sklearn.cross_validation",
        "sklearn.decomposition.pca",
        "sklearn.ensemble.forest",
        "sklearn.ensemble.gradient_boosting",
        "sklearn.grid_search",
        "sklearn.linear_model.base",
        "sklearn.linear_model.logistic",
        "sklearn.linear_model.ridge",
        "sklearn.linear_model.stochastic_gradient",
        "sklearn.preprocessing.data",
        "sklearn.svm.classes",
        "sklearn.tree.tree",
    ];
    OLD.contains(&module) || module.starts_with("sklearn.externals.joblib")
}

/// Whether an attribute may hold values of foreign classes, since no prediction depends on it: whatever a search keeps beside its best
/// estimator, and how numbers were drawn and folds cut while a classifier was fitted.
pub(super) fn is_unread(class: &str, attribute: &str) -> bool {
    let is_search = class.starts_with("sklearn.model_selection._search.");
    let beside = ["random_state", "cv", "scoring", "scores_", "coefs_paths_", "class_weight", "memory"];
    if is_search { attribute != "best_estimator_" } else { beside.contains(&attribute) }
}

/// What joblib writes where an array stands; the array's bytes follow it.
pub(super) const JOBLIB_ARRAY: &str = "joblib.numpy_pickle.NumpyArrayWrapper";

/// Classes whose pickled objects are their attributes and nothing more.
///
/// The classifiers, scaler, pipeline and search that can be imported; and what a search drags along with it: its splitter, its scorer and
/// the routing of metadata. These are read and ignored. The functions that it scored by are known by name alone.
const CLASSES: &[&str] = &[
    JOBLIB_ARRAY,
    "sklearn.decomposition._pca.PCA",
    "sklearn.linear_model._logistic.LogisticRegression",
    "sklearn.linear_model._logistic.LogisticRegressionCV",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.metrics._scorer._PredictScorer",
    "sklearn.metrics._scorer._ProbaScorer",
    "sklearn.metrics._scorer._Scorer",
    "sklearn.metrics._scorer._ThresholdScorer",
    "sklearn.model_selection._search.GridSearchCV",
    "sklearn.model_selection._search.RandomizedSearchCV",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing._data.StandardScaler",
    "sklearn.svm._classes.LinearSVC",
    "sklearn.svm._classes.SVC",
    "sklearn.utils._metadata_requests.MetadataRequest",
    "sklearn.utils._metadata_requests.MethodMetadataRequest",
];
