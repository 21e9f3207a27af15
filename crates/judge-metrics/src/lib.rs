//! Statistics that say how well a judge agrees with people: each equal to its reference implementation, each with its
//! uncertainty, each refusing input on which it is undefined.
//!
//! The principal functions take two slices of equal length, one entry per judged item:
//!
//! | function | statistic | p-value |
//! |---|---|---|
//! | [`pearson`] | Pearson's r | exact beta distribution (`scipy.stats.pearsonr`) |
//! | [`spearman`] | Spearman's ρ, Pearson's r of average ranks | Student's t (`scipy.stats.spearmanr`) |
//! | [`kendall_tau_b`] | Kendall's τ-b in O(n log n) | exact or tie-corrected normal (`scipy.stats.kendalltau`) |
//! | [`fisher_interval`] | interval of a Pearson correlation | |
//! | [`Bootstrap`] | percentile interval of any statistic of rows | |
//!
//! ```
//! use judge_metrics::{Bootstrap, Error, spearman};
//!
//! fn main() -> Result<(), Error> {
//!     let judge = [3.1, 4.7, 1.2, 2.8, 4.9, 2.0, 3.6, 1.9];
//!     let human = [3.0, 5.0, 1.0, 2.0, 4.0, 2.0, 4.0, 3.0];
//!
//!     let agreement = spearman(&judge, &human)?;
//!     assert!((agreement.estimate - 0.848_625_1).abs() < 1e-7);
//!     assert!((agreement.p_value - 0.007_716_9).abs() < 1e-7);
//!
//!     let bootstrap = Bootstrap { resamples: 2_000, level: 0.95, seed: 7 };
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
//! - For rows that are not independent (several responses to one question), the p-values and the bootstrap here are too
//!   sure of themselves: both treat every row as a draw of its own.
//! - For anything but slices in memory: the crate reads no file and holds no model.

mod correlation;
mod distribution;
mod error;
mod input;
mod interval;
mod ranks;
mod sum;

pub use correlation::{Correlation, KendallTest, NullDistribution, kendall_tau_b, pearson, spearman};
pub use error::Error;
pub use interval::{Bootstrap, BootstrapInterval, Interval, fisher_interval};
pub use ranks::average_ranks;
