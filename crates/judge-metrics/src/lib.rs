//! Statistics that say how well a judge agrees with people: each equal to its reference implementation, each with its
//! uncertainty, each refusing input on which it is undefined.
//!
//! The principal functions take two slices of equal length, one entry per judged item:
//!
//! | module | statistics |
//! |---|---|
//! | [`aggregation`] | majority vote, Dawid and Skene's model of annotators, the effective size of a panel |
//! | [`agreement`] | confusion matrix and what follows from it, kappas, Krippendorff's alpha, Gwet's AC, intraclass correlation, soft labels, the human ceiling, the alternative annotator test |
//! | [`bias`] | what sways a judge: position, its own output, perturbations, length |
//! | [`calibration`] | scores on the human scale with intervals, calibration error, slope and intercept, isotonic regression, conformal intervals |
//! | [`comparison`] | all of the above and below that a set of rows defines, by name, for a report |
//! | [`correlation`] | Pearson, Spearman, Kendall, Somers, weighted, partial; which of two judges correlates better |
//! | [`means`] | means with their intervals, of independent or clustered items, of differences, and prediction-powered |
//! | [`multiplicity`] | p-values of many tests taken together: Holm, Benjamini–Hochberg, Benjamini–Yekutieli |
//! | [`planning`] | how many items an interval of a wanted width takes |
//! | [`preference`] | pairwise verdicts: votes of judge and people, both presentation orders |
//! | [`prediction`] | error, bias, divergences of score distributions, Brier score, log loss, AUROC, average precision |
//! | [`ranking`] | win rates, Bradley–Terry strengths with ties |
//! | [`retrieval`] | rankings of documents: nDCG, reciprocal rank, recall, average precision |
//! | [`resampling`] | bootstrap intervals of any statistic, of rows or clusters, and permutation tests |
//! | [`sampling`] | which items people grade, drawn alike or by strata, and with which probability |
//!
//! ```
//! use judge_metrics::{Error, correlation::spearman, resampling::Bootstrap};
//!
//! fn main() -> Result<(), Error> {
//!     let judge = [3.1, 4.7, 1.2, 2.8, 4.9, 2.0, 3.6, 1.9];
//!     let human = [3.0, 5.0, 1.0, 2.0, 4.0, 2.0, 4.0, 3.0];
//!
//!     let agreement = spearman(&judge, &human)?;
//!     assert!((agreement.estimate - 0.848_625_1).abs() < 1e-7);
//!     assert!((agreement.p_value()? - 0.007_716_9).abs() < 1e-7);
//!
//!     let bootstrap = Bootstrap { resamples: 2_000, seed: 7, ..Bootstrap::default() };
//!     let sure = bootstrap.paired(&judge, &human, |judge, human| Ok(spearman(judge, human)?.estimate))?;
//!     assert!(sure.interval.low < sure.estimate && sure.estimate <= sure.interval.high);
//!
//!     // What the data do not define is an error that says why, never a NaN.
//!     assert_eq!(spearman(&judge, &[3.0; 8]).unwrap_err(), Error::Constant { argument: "y", value: 3.0 });
//!     Ok(())
//! }
//! ```
//!
//! # When not to use this crate
//!
//! - For scores that carry missing values: decide first what a missing score means. NaN is refused, not skipped.
//! - For rows that are not independent (several responses to one question), the p-values and closed-form intervals are too
//!   sure of themselves: take [`resampling::Bootstrap::clustered`] and [`resampling::PermutationTest::clustered`].
//! - For anything but slices in memory: the crate reads no file and holds no model.

pub mod aggregation;
pub mod agreement;
pub mod bias;
pub mod calibration;
pub mod comparison;
pub mod correlation;
pub mod means;
pub mod multiplicity;
pub mod planning;
pub mod prediction;
pub mod preference;
pub mod ranking;
pub mod resampling;
pub mod retrieval;
pub mod sampling;

mod distribution;
mod error;
mod estimate;
mod groups;
mod input;
mod interval;
mod newton;
mod number;
mod proportion;
mod sum;

pub use error::Error;
pub use estimate::{Estimate, NullDistribution};
pub use interval::Interval;
pub use number::decimals;
pub use proportion::Proportion;
