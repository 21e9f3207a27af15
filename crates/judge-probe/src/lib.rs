//! Estimators in scikit-learn's manner for reading judgements from features: settings are one type, what was fitted another.
//!
//! | settings | fitted | like scikit-learn's |
//! |---|---|---|
//! | [`StandardScaler`] | [`FittedStandardScaler`] | `sklearn.preprocessing.StandardScaler` |
//! | [`LinearKernelSvc`] | [`LinearClassifier`] | `sklearn.svm.SVC(kernel="linear")` |
//! | [`BrierRegression`] | [`LinearClassifier`] | its `LogisticRegression`, trained by the Brier score |
//! | [`LogisticRegression`] | [`LinearClassifier`] | `sklearn.linear_model.LogisticRegression` |
//! | [`OrdinalRegression`] | [`LinearClassifier`] | statsmodels' `OrderedModel(distr="logit")`, with a penalty |
//! | [`Pca`] | [`FittedPca`] | `sklearn.decomposition.PCA` |
//! | [`Pipeline`] | [`FittedPipeline`] | `sklearn.pipeline.Pipeline` |
//! | [`Ridge`], [`RidgeToClass`] | [`FittedRidge`], [`LinearClassifier`] | `sklearn.linear_model.Ridge`, rounded to a class |
//! | `MlpClassifier` (feature `mlp`) | `FittedMlpClassifier` | `sklearn.neural_network.MLPClassifier(solver="adam")` |
//!
//! What is trained on and what is tested on, with the rows, folds and choices of scikit-learn for the same seeds:
//!
//! | task | here |
//! |---|---|
//! | a set with as many rows of each score | [`BalancedSample`] |
//! | test rows, folds, whole questions on one side | [`TrainTestSplit`], [`KFold`], [`StratifiedKFold`], [`GroupKFold`], [`StratifiedGroupKFold`] |
//! | scores and predictions of held-out rows | [`cross_val_score`], [`cross_val_predict`], [`Scoring`] |
//! | numbers of held-out rows, and what they mean on people's scale | [`out_of_fold_scores`], [`calibrate_out_of_fold`], [`SavedProbe::with_calibrator`] |
//! | choosing settings, and how well the choosing does | [`GridSearch`], [`GridSearch::nested`] |
//! | choosing layers, poolings and feature families | [`LayerSelection`] |
//! | what explains the labels without meaning | [`artefacts`], [`surface_features`], [`TfidfVectorizer`] |
//! | all of it, from graded prompts to a saved probe with evidence | [`training`] |
//! | which reading of a model to use: a layer's score, all layers', a probe's | [`trial`] |
//!
//! Probes that stay: [`FittedProbe`] is transformers with a [`LinearClassifier`], or a [`DenseClassifier`], from a pipeline fitted here
//! ([`IntoProbe`]) or, as a [`SklearnProbe`], from a pickle of scikit-learn's that is read and never run (see [`pickle`]). A [`SavedProbe`]
//! is its file, and refuses models and layers other than its own.
//!
//! Your own estimators join by the traits [`Estimator`] and [`FittedEstimator`], classifiers by [`FittedClassifier`] besides;
//! [`testing::check_estimator`] tells whether they keep their contract.
//!
//! Features come as a [`Matrix`], which is finite and rectangular by construction, so an estimator has only shapes left to check. Hidden
//! states in single precision are predicted from as [`F32Rows`], without a copy of them all in double precision.
//!
//! ```
//! use judge_probe::{Error, Estimator, FittedEstimator, Matrix, Ridge, StandardScaler};
//!
//! fn main() -> Result<(), Error> {
//!     // Two surface features of five responses, length and word overlap, and the scores people gave.
//!     let features =
//!         Matrix::from_rows([[120.0, 0.61], [80.0, 0.32], [200.0, 0.55], [40.0, 0.12], [150.0, 0.71]])?;
//!     let scores = [4.0, 2.0, 4.0, 1.0, 5.0];
//!
//!     let scaler = StandardScaler::default().fit(&features)?;
//!     let ridge = Ridge { alpha: 0.5, ..Ridge::default() }.fit(&scaler.transform(&features)?, &scores)?;
//!
//!     let unseen = Matrix::from_rows([[130.0, 0.65]])?;
//!     let predicted = ridge.predict(&scaler.transform(&unseen)?)?;
//!     assert!((predicted[0] - 4.224_2).abs() < 1e-4);
//!     Ok(())
//! }
//! ```
//!
//! # When not to use this crate
//!
//! - For general machine learning: it holds what probing needs and no more.
//! - For features with missing values: decide first what a missing one means; NaN is refused.
//! - For sparse problems other than words: [`LogisticRegression`] alone learns from a [`SparseMatrix`]; all else is dense and double, and
//!   systems are solved directly.

pub mod artefacts;
mod error;
mod estimators;
mod inspector;
mod matrices;
mod numpy;
pub mod pickle;
mod preprocessing;
mod saved;
mod selection;
pub mod testing;
pub mod training;
pub mod trial;

pub use error::Error;
pub use estimators::brier_regression::BrierRegression;
pub use estimators::class_probabilities::ClassProbabilities;
pub use estimators::class_weight::ClassWeight;
pub use estimators::decision_rule::DecisionRule;
pub use estimators::dense_classifier::{DenseClassifier, HiddenLayer};
pub use estimators::estimator::{
    Classifier, Estimator, FittedClassifier, FittedEstimator, FittedTransformer, Transformer,
};
pub use estimators::linear_classifier::LinearClassifier;
pub use estimators::linear_kernel_svc::LinearKernelSvc;
pub use estimators::logistic_regression::LogisticRegression;
#[cfg(feature = "mlp")]
pub use estimators::mlp::{FittedMlpClassifier, MlpClassifier, MlpError};
pub use estimators::ordinal_regression::OrdinalRegression;
pub use estimators::pipeline::{FittedPipeline, Pipeline};
pub use estimators::predictions::{Predictions, ProbabilityTable};
pub use estimators::ridge::{FittedRidge, Ridge};
pub use estimators::ridge_to_class::{OnScale, RidgeToClass};
pub use matrices::matrix::{F32Rows, Matrix};
pub use matrices::precision::Precision;
pub use matrices::row_groups::RowGroups;
pub use matrices::sparse_matrix::SparseMatrix;
pub use preprocessing::blocks::{Block, Blocks, FittedBlocks};
pub use preprocessing::feature_family::{FeatureFamily, FittedFeatureFamily};
pub use preprocessing::pca::{FittedPca, Pca};
pub use preprocessing::standard_scaler::{FittedStandardScaler, StandardScaler};
pub use preprocessing::surface::{SURFACE_FEATURES, surface_features};
pub use preprocessing::tfidf::{FittedTfidfVectorizer, TfidfVectorizer};
pub use saved::data_hash::DataHash;
pub use saved::fitted_probe::{FittedProbe, IntoProbe};
pub use saved::probe_stage::ProbeStage;
pub use saved::saved_probe::{ProbeOrigin, ProbedModel, SavedProbe, SavedProbeError, Validation};
pub use saved::sklearn_import::{ImportError, ImportedFrom, InspectorMetadata, Search, SklearnProbe};
pub use selection::balanced_sample::BalancedSample;
pub use selection::calibration::{calibrate_out_of_fold, out_of_fold_scores};
pub use selection::cross_validation::{cross_val_predict, cross_val_score};
pub use selection::grid_search::{FittedGridSearch, GridSearch, NestedSplit, SearchScores};
pub use selection::layer_selection::{
    FittedLayerProbe, LayerSelection, LayerView, NestedSelection, ScoredView, SelectedLayers, SelectionStep,
};
pub use selection::scoring::{RegressionScoring, Scorer, Scoring, SplitScores};
pub use selection::split::{GroupKFold, KFold, Split, StratifiedGroupKFold, StratifiedKFold, TestSize, TrainTestSplit};
