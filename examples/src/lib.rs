//! Pieces the examples share.
