//! Means over items, and what a judge's scores say of the mean that people would give.
//!
//! | question | item |
//! |---|---|
//! | the mean of one number per item | [`sample_mean`] |
//! | the same where several items belong to one question | [`clustered_mean`] |
//! | the mean difference of two numbers per item | [`paired_difference`] |
//! | what would people say on average of all items, having labelled a few? | [`PredictionPoweredMean`] |
//!
//! All but the last are [`Estimate`](crate::Estimate)s: one function each, of plain slices.

mod clustered;
mod paired;
mod prediction_powered;
mod sample;

pub use clustered::clustered_mean;
pub use paired::paired_difference;
pub(crate) use paired::paired_difference_of;
pub use prediction_powered::{PoweredMean, PredictionPoweredMean, Tuning};
pub use sample::sample_mean;
pub(crate) use sample::{mean_of, root_mean_square};
