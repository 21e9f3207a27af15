//! Commands over models: training, merging, probes, and how fast they are.

pub(crate) mod doctor;
pub(crate) mod merge;
pub(crate) mod probe;
pub(crate) mod sft_evaluate;
pub(crate) mod speed;
pub(crate) mod trial;
pub(crate) mod tune;
