//! Estimators of classes and scores, and what their numbers mean.

pub(crate) mod brier_regression;
pub(crate) mod class_probabilities;
pub(crate) mod class_weight;
pub(crate) mod decision_rule;
pub(crate) mod dense_classifier;
pub(crate) mod descent;
pub(crate) mod estimator;
pub(crate) mod labels;
pub(crate) mod linear_classifier;
pub(crate) mod linear_functions;
pub(crate) mod linear_kernel_svc;
pub(crate) mod logistic_regression;
#[cfg(feature = "mlp")]
pub(crate) mod mlp;
pub(crate) mod ordinal_regression;
pub(crate) mod parameters;
pub(crate) mod pipeline;
pub(crate) mod predictions;
pub(crate) mod ridge;
pub(crate) mod ridge_to_class;
pub(crate) mod sigmoid;
