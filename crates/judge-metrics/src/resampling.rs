//! Uncertainty by drawing the data again: bootstrap intervals and permutation tests, seeded and counter-based, so that a result depends
//! neither on threads nor on order.

mod bootstrap;

pub use bootstrap::{Bootstrap, BootstrapInterval};
