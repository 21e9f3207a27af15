//! The mean difference of two numbers of each item: what both share cancels.

use super::sample::{EQUAL_ITEMS, mean_of};
use crate::input::check_columns;
use crate::{Error, Estimate};

/// The mean of differences within items, second − first: two judges on the same items, or one judge before and after.
///
/// `first`, `second`: n ≥ 2 finite numbers each. Interval and p-value are those of Student's paired t test (`scipy.stats.ttest_rel`), which
/// supposes items that are independent; where several belong to one question, give the differences to
/// [`clustered_mean`](super::clustered_mean). If all differences are equal they do not show how much they vary, and there is neither.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`]; [`Error::Undefined`] on overflow.
///
/// ```
/// let difference = judge_metrics::means::paired_difference(&[2.0, 3.0, 4.0, 1.0], &[3.0, 3.0, 5.0, 3.0])?;
/// assert_eq!(difference.estimate, 1.0);
/// assert!((difference.p_value()? - 0.091_721_1).abs() < 1e-6);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[doc(alias = "ttest_rel")]
pub fn paired_difference(first: &[f64], second: &[f64]) -> Result<Estimate, Error> {
    paired_difference_of(("first", first), ("second", second))
}

/// The same, of columns that errors call by names of their own.
pub(crate) fn paired_difference_of(
    first: (&'static str, &[f64]),
    second: (&'static str, &[f64]),
) -> Result<Estimate, Error> {
    check_columns(first, second, 2)?;
    let differences: Vec<f64> = first.1.iter().zip(second.1).map(|(first, second)| second - first).collect();
    Ok(mean_of("paired difference", &differences)?.tested_against_zero(EQUAL_ITEMS))
}
