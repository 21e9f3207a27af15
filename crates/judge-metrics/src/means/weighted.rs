//! The mean of a population from items that were drawn from it with unequal, known probabilities.

use super::clustered::mean_of_clusters;
use crate::input::{check_finite, check_lengths, check_range};
use crate::{Error, Estimate};

/// The mean over a population of which items were drawn with unequal probabilities that are known, such as the rows that a judge was unsure
/// of more often than others: each item counts as the 1 / probability items that it stands for (Hájek's ratio of the Horvitz-Thompson
/// estimators of sum and size; Särndal, Swensson and Wretman, *Model Assisted Survey Sampling*, section 5.7).
///
/// `values`, finite, in any unit; `probabilities[i]` in (0, 1] is the chance that item i had of being drawn, on any scale that all share;
/// `groups[i]` says which cluster item i belongs to, as in [`clustered_mean`](super::clustered_mean), which it is where all probabilities
/// are equal. The standard error is the linearised one of drawing with replacement, so too large where most of the population is drawn:
/// `WLS(y, ones, weights=1 / probabilities).fit(cov_type="cluster", use_t=True)` of statsmodels 0.15, whose interval and test are Student's
/// with one degree of freedom less than clusters too. A few items of very small probability decide the estimate, and make the interval too
/// narrow.
///
/// # Errors
///
/// Those of [`clustered_mean`](super::clustered_mean), and [`Error::OutOfRange`] for what is no probability, 0 included.
///
/// ```
/// use judge_metrics::means::weighted_mean;
///
/// // Two rows that were sure to be looked at, and two that stand for ten each.
/// let mean = weighted_mean(&[0.0, 0.0, 1.0, 1.0], &[1.0, 1.0, 0.1, 0.1], &[0, 1, 2, 3])?;
/// assert!((mean.estimate - 20.0 / 22.0).abs() < 1e-12);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn weighted_mean<G: Ord>(values: &[f64], probabilities: &[f64], groups: &[G]) -> Result<Estimate, Error> {
    weighted_mean_of_scale(values, 0.0, probabilities, groups)
}

/// The same of items that were made of numbers as large as `scale`.
pub(crate) fn weighted_mean_of_scale<G: Ord>(
    values: &[f64],
    scale: f64,
    probabilities: &[f64],
    groups: &[G],
) -> Result<Estimate, Error> {
    mean_of_clusters(values, scale, &weights("values", values.len(), probabilities)?, groups)
}

/// 1 / probability of each item.
pub(super) fn weights(items: &'static str, n: usize, probabilities: &[f64]) -> Result<Vec<f64>, Error> {
    check_lengths("probabilities", probabilities.len(), items, n)?;
    check_finite("probabilities", probabilities)?;
    let weight = |(index, &p): (usize, &f64)| {
        check_range("probabilities", Some(index), p, [f64::MIN_POSITIVE, 1.0]).map(|()| p.recip())
    };
    probabilities.iter().enumerate().map(weight).collect()
}
