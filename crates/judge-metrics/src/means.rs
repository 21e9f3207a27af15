//! Means over items, and what a judge's scores say of the mean that people would give.
//!
//! | question | item |
//! |---|---|
//! | the mean of one number per item | [`sample_mean`] |
//! | the same where several items belong to one question | [`clustered_mean`]; of zeros and ones [`clustered_share`] |
//! | the mean of a population from items drawn with unequal, known probabilities | [`weighted_mean`] |
//! | the mean difference of two numbers per item | [`paired_difference`] |
//! | what would people say on average of all items, having labelled a few? | [`PredictionPoweredMean::estimate`] |
//! | the same of clusters, of strata, of the difference of two systems | its [`clustered`](PredictionPoweredMean::clustered), [`stratified`](PredictionPoweredMean::stratified), [`difference`](PredictionPoweredMean::difference) |
//! | the same where the labelled items were drawn with unequal, known probabilities | its [`sampled`](PredictionPoweredMean::sampled) |
//! | the same where the judge's scale is not the human one | [`CalibratedMean::estimate`] |
//! | does a calibration hold for another system or period? | [`CalibratedMean::transport_check`] |
//! | how many items would people say yes to, by a judge whose errors are known? | [`corrected_proportion`] |
//! | the mean of what several raters gave one item | [`mean_of_raters`] |
//!
//! The first four are [`Estimate`](crate::Estimate)s: one function each, of plain slices. The others bring some with
//! them, such as the mean of the labels alone. The last is one number.

mod calibrated;
mod clustered;
mod misclassification;
mod paired;
mod parts;
mod prediction_powered;
mod raters;
mod sample;
mod weighted;

pub use calibrated::{CalibratedMean, CalibratedMeanResult, TransportCheck, TransportVerdict, TransportedMean};
pub(crate) use clustered::clustered_mean_of_scale;
pub use clustered::{clustered_mean, clustered_share};
pub use misclassification::{CorrectedProportion, corrected_proportion};
pub use paired::paired_difference;
pub(crate) use paired::paired_difference_of;
pub use prediction_powered::{
    PoweredMean, PredictionPoweredMean, StratifiedPoweredMean, Stratum, StratumWeights, Tuning,
};
pub use raters::mean_of_raters;
pub use sample::sample_mean;
pub(crate) use sample::{EQUAL_ITEMS, is_rounding, largest, mean_loss, mean_of, mean_of_scale, root_mean_square};
pub use weighted::weighted_mean;
pub(crate) use weighted::weighted_mean_of_scale;
