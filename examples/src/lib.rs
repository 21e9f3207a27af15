//! Pieces the examples share.

pub mod planted;
