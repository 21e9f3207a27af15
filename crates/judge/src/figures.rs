//! Commands over scores: what a judge is worth, and weights and calibrators that are fitted on it.

pub(crate) mod agree;
pub(crate) mod bench;
pub(crate) mod bias;
pub(crate) mod calibrate;
pub(crate) mod drift;
pub(crate) mod fit;
pub(crate) mod report;
