//! Checks of the contracts in this crate, for those who implement its traits.
