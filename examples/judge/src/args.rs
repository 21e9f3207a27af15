//! The options that several commands have.

pub(crate) mod bars;
pub(crate) mod decisions;
pub(crate) mod files;
pub(crate) mod judged_pairs;
pub(crate) mod lager;
pub(crate) mod layers;
pub(crate) mod model_args;
pub(crate) mod prompted;
pub(crate) mod scoring;
pub(crate) mod service;
