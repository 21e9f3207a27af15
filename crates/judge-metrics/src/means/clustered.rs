//! The mean of items that come in clusters, with a standard error in closed form.

use super::sample::{EQUAL_ITEMS, is_rounding, root_mean_square};
use crate::estimate::{SHARE, Spread, UNBOUNDED};
use crate::groups::clusters;
use crate::input::{check_clusters, check_finite, check_lengths, in_range};
use crate::sum::{dot, sum};
use crate::{Error, Estimate, Proportion};

/// The mean of one number per item where items come in clusters, such as several answers to one question, with the standard error that
/// allows for it (Liang and Zeger, 1986; recommended for evaluations of language models by Miller, 2024, arXiv 2411.00640).
///
/// `values`, finite, in any unit; `groups[i]` says which cluster item i belongs to. The mean is over items: large clusters count as the
/// items they hold, and `n` of the result counts items. Items of one cluster may depend on each other in any way, clusters must not. The
/// variance is that of cluster sums of residuals, times G / (G − 1) for G clusters (CR1): `OLS(y, ones).fit(cov_type="cluster",
/// use_t=True)` of statsmodels 0.15, whose interval and test are Student's with G − 1 degrees of freedom too.
///
/// Of normal items in clusters of four the interval covered 95 % with five clusters as with 125, where the bootstrap over clusters covers
/// 92 % with twelve and has no interval with five (the bench `coverage`); very unequal clusters and skewed items need more of them.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::NonFinite`]; [`Error::TooFewItems`] and [`Error::TooFewClusters`] for fewer than two items or
/// clusters, which do not say how much clusters vary; [`Error::Undefined`] where the arithmetic exceeds the largest finite number.
///
/// ```
/// use judge_metrics::means::clustered_mean;
///
/// // Two answers to each of four questions.
/// let right = [1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0];
/// let question = ["a", "a", "b", "b", "c", "c", "d", "d"];
/// let mean = clustered_mean(&right, &question)?;
/// assert_eq!((mean.estimate, mean.n), (0.625, 8));
/// assert!((mean.standard_error()? - 0.239_356_8).abs() < 1e-7);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn clustered_mean<G: Ord>(values: &[f64], groups: &[G]) -> Result<Estimate, Error> {
    clustered_mean_of_scale(values, 0.0, groups)
}

/// The same of items that were made of numbers as large as `scale`.
pub(crate) fn clustered_mean_of_scale<G: Ord>(values: &[f64], scale: f64, groups: &[G]) -> Result<Estimate, Error> {
    mean_of_clusters(values, scale, &vec![1.0; values.len()], groups)
}

/// The mean of items that count for so many each: `weights` has a finite number above 0 for each value. They were made of numbers as large
/// as `scale`.
pub(super) fn mean_of_clusters<G: Ord>(
    values: &[f64],
    scale: f64,
    weights: &[f64],
    groups: &[G],
) -> Result<Estimate, Error> {
    check_finite("values", values)?;
    check_lengths("groups", groups.len(), "values", values.len())?;
    let clusters = clusters(groups);
    check_clusters(2, values.len(), clusters.len())?;
    let (total, n_clusters) = (sum(weights), clusters.len() as f64);
    let mean = in_range("mean", dot(values, weights) / total)?;
    let residual_sum = |rows: &Vec<usize>| {
        let residuals = || rows.iter().map(|&row| (values[row] - mean) * weights[row] / total);
        let share: f64 = rows.iter().map(|&row| weights[row] / total).sum();
        let (sum, size) = (residuals().sum::<f64>(), residuals().map(f64::abs).sum::<f64>());
        // What rounding leaves of residuals that cancel out. Of equal values the residuals themselves are rounding.
        if sum.abs() <= 1e-15 * (size + mean.abs() * share) { 0.0 } else { sum }
    };
    let sums: Vec<f64> = clusters.iter().map(residual_sum).collect();
    // A mean of squares times their number: squares that overflow are not made.
    let root = root_mean_square(&sums) * n_clusters.sqrt();
    let root = if is_rounding(root, values, scale) { 0.0 } else { root };
    let standard_error = in_range("mean", root * (n_clusters / (n_clusters - 1.0)).sqrt())?;
    let degrees_of_freedom = n_clusters - 1.0;
    let interval = Spread::StudentT { degrees_of_freedom, range: UNBOUNDED };
    let mean = Estimate::new("mean", mean, values.len())?.with_error_of(clusters.len(), standard_error, interval);
    Ok(mean.tested_against_zero(EQUAL_ITEMS))
}

/// The share of rows that count, where several belong to one question: a [`clustered_mean`] of zeros and ones, cut off at 0 and 1. Where no
/// two rows share a cluster they are independent, and the interval is Wilson's.
///
/// # Errors
///
/// Those of [`clustered_mean`].
///
/// ```
/// let share = judge_metrics::means::clustered_share(&[true, true, false, true], &["a", "a", "b", "b"])?;
/// assert_eq!(share.interval(0.95)?.high, 1.0);
/// let each = judge_metrics::means::clustered_share(&[true; 4], &["a", "b", "c", "d"])?;
/// assert_eq!(each.method(), Some("Wilson"));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn clustered_share<G: Ord>(counts: &[bool], groups: &[G]) -> Result<Estimate, Error> {
    check_lengths("groups", groups.len(), "counts", counts.len())?;
    if clusters(groups).len() == counts.len() {
        return Proportion::of(counts).try_into();
    }
    let values: Vec<f64> = counts.iter().map(|&counts| f64::from(u8::from(counts))).collect();
    Ok(clustered_mean(&values, groups)?.within(SHARE))
}
