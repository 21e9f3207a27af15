//! What makes features, and what changes them before a classifier sees them.

pub(crate) mod blocks;
pub(crate) mod feature_family;
pub(crate) mod pca;
pub(crate) mod standard_scaler;
pub(crate) mod surface;
pub(crate) mod tfidf;
