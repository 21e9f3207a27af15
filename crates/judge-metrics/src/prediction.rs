//! How far predicted scores and probabilities are from what people said: errors, proper scores, divergences, and how
//! well a score tells good from bad.
//!
//! Whatever averages over items has Student's interval, as a [`sample_mean`](crate::means::sample_mean), and [`root_mean_squared_error`]
//! one on the scale of logarithms; [`auroc`] brings DeLong's. [`average_precision`] and anything built from several statistics take theirs
//! from [`Bootstrap`](crate::resampling::Bootstrap):
//!
//! ```
//! use judge_metrics::{Error, prediction::average_precision, resampling::Bootstrap};
//!
//! let judge = [3.1, 4.7, 1.2, 2.8, 4.9, 2.0, 3.6, 1.9];
//! let good = [true, true, false, false, true, false, false, true];
//! let precision = Bootstrap::default().interval(8, |rows| {
//!     let (good, judge): (Vec<_>, Vec<_>) = rows.iter().map(|&row| (good[row], judge[row])).unzip();
//!     Ok(average_precision(&good, &judge)?.estimate)
//! })?;
//! assert!(precision.interval.low < precision.estimate && precision.estimate <= precision.interval.high);
//! # Ok::<(), Error>(())
//! ```
//!
//! A distribution is a slice of probabilities, one per label, whose sum is within 1e-6 of 1. Tables of them have one
//! row per item.

mod auroc;
mod curves;
pub(crate) mod distributions;
pub(crate) mod divergence;
mod errors;
mod risk_coverage;
pub(crate) mod scoring;

pub use auroc::{auroc, auroc_difference};
pub use curves::{F1Threshold, PrecisionRecallPoint, average_precision, best_f1_threshold, precision_recall_curve};
pub use divergence::{jensen_shannon_divergence, kl_divergence, smoothed, total_variation};
pub use errors::{bias, bias_in_words, mean_absolute_error, root_mean_squared_error};
pub use risk_coverage::{RiskCoveragePoint, area_under_risk_coverage, risk_coverage_curve};
pub use scoring::{LOG_LOSS_CLIP, brier_score, log_loss};
