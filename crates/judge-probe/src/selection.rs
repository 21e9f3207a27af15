//! Which rows are learnt from and which are tested on, and which settings and layers that chooses.

pub(crate) mod balanced_sample;
pub(crate) mod calibration;
pub(crate) mod cross_validation;
pub(crate) mod grid_search;
pub(crate) mod layer_selection;
pub(crate) mod scoring;
pub(crate) mod split;
