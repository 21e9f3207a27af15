//! Probes that stay: pipelines as one value, their file, and those of scikit-learn.

pub(crate) mod data_hash;
pub(crate) mod fitted_probe;
pub(crate) mod probe_stage;
pub(crate) mod saved_probe;
pub(crate) mod sklearn_import;
