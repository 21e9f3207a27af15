//! The plain mean, from which every average of this crate takes its interval.

use crate::estimate::{Missing, Spread, UNBOUNDED};
use crate::input::{check_count, check_finite, in_range};
use crate::sum::{dot, sum};
use crate::{Error, Estimate, Proportion};

/// The mean of `values`, n ≥ 1 finite numbers, one to an item; in their unit.
///
/// The standard error is s/√n with s the deviation by n − 1, and the interval Student's with n − 1 degrees of freedom
/// (`scipy.stats.ttest_1samp(…).confidence_interval`): exact for normal items, and a good approximation for others once n is a few dozen;
/// skewed items (squared errors, log losses) need more. It is not cut off at the ends of the items' range, which
/// [`within`](Estimate::within) does; a mean of zeros and ones is better taken as a [`Proportion`](crate::Proportion). A single item does
/// not say how much items vary and has neither, and equal items have no interval. Items whose deviation is at most 10⁻¹⁴ of the largest
/// count as equal, since the rounding of computed numbers leaves as much: take a common offset off, as of times in nanoseconds. The p-value
/// is that of a mean of 0 (`scipy.stats.ttest_1samp(…, 0)`). Whatever else of this crate averages over items, such as an error, a bias or a
/// Brier score, comes with the same interval; of those only differences have a test.
///
/// Items are taken as independent; for several responses to one question take [`clustered_mean`](super::clustered_mean).
///
/// # Errors
///
/// [`Error::TooFewItems`], [`Error::NonFinite`]; [`Error::Undefined`] where the sum or the deviation exceeds the largest finite number.
///
/// ```
/// let mean = judge_metrics::means::sample_mean(&[2.0, 4.0, 4.0, 6.0])?;
/// let interval = mean.interval(0.95)?;
/// assert_eq!(mean.estimate, 4.0);
/// assert!((interval.low - 1.401_543_5).abs() < 1e-7 && (interval.high - 6.598_456_5).abs() < 1e-7);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[doc(alias = "ttest_1samp")]
pub fn sample_mean(values: &[f64]) -> Result<Estimate, Error> {
    check_finite("values", values)?;
    Ok(mean_of("mean", values)?.tested_against_zero(EQUAL_ITEMS))
}

/// The mean of what a statistic makes of each item; not finite only where its arithmetic overflowed.
pub(crate) fn mean_of(statistic: &'static str, values: &[f64]) -> Result<Estimate, Error> {
    mean_of_scale(statistic, values, 0.0)
}

/// The same of items that were made of numbers as large as `scale`, whose rounding is no variation of the items: 2.3 − 2 and 5.3 − 5 are
/// the same difference.
pub(crate) fn mean_of_scale(statistic: &'static str, values: &[f64], scale: f64) -> Result<Estimate, Error> {
    let n = values.len();
    check_count(1, n)?;
    // Equal items must not differ by the rounding of their mean.
    let equal = values.iter().all(|&value| value == values[0]);
    let mean = if equal { values[0] } else { sum(values) / n as f64 };
    let mean = Estimate::new(statistic, mean, n)?;
    if n == 1 {
        return Ok(mean.without_error(Missing::TooFewItems { required: 2, found: 1 }));
    }
    let deviations: Vec<f64> = values.iter().map(|value| value - mean.estimate).collect();
    let deviation = root_mean_square(&deviations);
    let deviation = if is_rounding(deviation, values, scale) { 0.0 } else { deviation };
    let standard_error = in_range(statistic, deviation / ((n - 1) as f64).sqrt())?;
    let interval = Spread::StudentT { degrees_of_freedom: (n - 1) as f64, range: UNBOUNDED };
    Ok(mean.with_error(standard_error, interval))
}

/// Whether a deviation of `values`, made of numbers as large as `scale`, is what rounding leaves: a few units in the last place of those
/// numbers, more of the values, which may be long sums.
pub(crate) fn is_rounding(deviation: f64, values: &[f64], scale: f64) -> bool {
    deviation <= (1e-14 * largest(values)).max(4.0 * f64::EPSILON * scale)
}

/// The size of the largest of them; 0 of none.
pub(crate) fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |largest, value| largest.max(value.abs()))
}

/// The mean of losses, made of numbers as large as `scale`: where each is 0 or 1 by what it is, as `decisions` says, it is a share, with
/// Wilson's interval; else it is cut off at `range`.
pub(crate) fn mean_loss(
    statistic: &'static str,
    losses: &[f64],
    scale: f64,
    range: [f64; 2],
    decisions: bool,
) -> Result<Estimate, Error> {
    let mean = mean_of_scale(statistic, losses, scale)?.within(range);
    if !decisions {
        return Ok(mean);
    }
    let count = losses.iter().filter(|&&loss| loss != 0.0).count();
    Ok(mean.with_interval(Spread::Wilson(Proportion { count, n: losses.len() })))
}

/// Why equal items leave nothing to test a mean by.
pub(crate) const EQUAL_ITEMS: &str = "all items are equal, so that they do not show how much they vary";

/// √(Σv²/n) of at least one value, without overflow or underflow of the squares.
pub(crate) fn root_mean_square(values: &[f64]) -> f64 {
    let largest = largest(values);
    // Zero stays zero, and an infinity is the caller's to refuse.
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    let scaled: Vec<f64> = values.iter().map(|value| value / largest).collect();
    largest * (dot(&scaled, &scaled) / scaled.len() as f64).sqrt()
}
