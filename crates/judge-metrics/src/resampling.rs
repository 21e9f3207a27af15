//! Uncertainty by drawing the data again: bootstrap intervals and permutation tests, seeded and counter-based, so that a result depends
//! neither on threads nor on order.

mod bootstrap;
mod folds;
mod permutation;
mod ranked_pair;
pub(crate) mod stream;
mod summaries;

pub use bootstrap::{Bootstrap, BootstrapInterval, BootstrapMethod, quantile};
pub(crate) use folds::{check_folds, folds_of, folds_of_groups};
pub use permutation::{Alternative, PermutationResult, PermutationTest};
pub use ranked_pair::RankedPair;
pub(crate) use ranked_pair::ranks_of_counts;
