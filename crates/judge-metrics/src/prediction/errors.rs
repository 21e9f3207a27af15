use std::cmp::Ordering;

use crate::estimate::{Missing, NOT_NEGATIVE, Spread};
use crate::input::{check_columns, in_range};
use crate::means::{EQUAL_ITEMS, is_rounding, largest, mean_loss, mean_of, mean_of_scale, root_mean_square};
use crate::number::{decimals, six_digits};
use crate::{Error, Estimate};

/// Mean absolute error, as `sklearn.metrics.mean_absolute_error`.
///
/// `observed`, `predicted`: n ≥ 1 finite numbers each, in one unit; the result is in that unit, at least 0. Its interval is
/// Student's, cut off at 0; of decisions it is Wilson's, the error being the share of wrong ones: all are 0 or 1, and both occur, since a
/// grade of 1 on every row is no decision.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`]; [`Error::Undefined`] where a difference
/// overflows.
///
/// ```
/// use judge_metrics::prediction::mean_absolute_error;
///
/// let error = mean_absolute_error(&[3.0, 2.0, 4.0], &[3.5, 1.0, 4.0])?;
/// assert_eq!(error.estimate, 0.5);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn mean_absolute_error(observed: &[f64], predicted: &[f64]) -> Result<Estimate, Error> {
    let absolute: Vec<f64> = differences(observed, predicted)?.into_iter().map(f64::abs).collect();
    let decisions = are_decisions(observed.iter().chain(predicted));
    mean_loss("mean absolute error", &absolute, scale(observed, predicted), NOT_NEGATIVE, decisions)
}

/// Mean signed error, predicted minus observed: above 0 where the judge is more generous than people.
///
/// Input and errors as for [`mean_absolute_error`]. Interval and p-value are those of Student's paired t test (`scipy.stats.ttest_rel`).
///
/// ```
/// let bias = judge_metrics::prediction::bias(&[3.0, 2.0, 4.0], &[3.5, 2.0, 5.0])?;
/// assert_eq!(bias.estimate, 0.5);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn bias(observed: &[f64], predicted: &[f64]) -> Result<Estimate, Error> {
    let differences = differences(observed, predicted)?;
    Ok(mean_of_scale("bias", &differences, scale(observed, predicted))?.tested_against_zero(EQUAL_ITEMS))
}

/// A [`bias`] as a person would say it, in the unit of the scores: with two significant digits, from 10 on as a whole number.
///
/// ```
/// use judge_metrics::prediction::bias_in_words;
///
/// assert_eq!(bias_in_words(-0.413), "on average 0.41 lower than people's");
/// assert_eq!(bias_in_words(1234.5), "on average 1234 higher than people's");
/// assert_eq!(bias_in_words(0.0), "on average as high as people's");
/// ```
pub fn bias_in_words(bias: f64) -> String {
    let size = bias.abs();
    // Rounded first: 9.97 has no more decimals than 10.
    let rounded = format!("{size:.1e}").parse::<f64>().unwrap_or(size);
    let said = match rounded {
        ..1e-5 => six_digits(rounded),
        _ => decimals(size, (1.0 - rounded.log10().floor()).max(0.0) as usize),
    };
    match bias.partial_cmp(&0.0) {
        Some(Ordering::Less) => format!("on average {said} lower than people's"),
        Some(Ordering::Greater) => format!("on average {said} higher than people's"),
        Some(Ordering::Equal) => "on average as high as people's".to_owned(),
        None => "not known to be higher or lower than people's".to_owned(),
    }
}

/// Root mean squared error, as `sklearn.metrics.root_mean_squared_error`.
///
/// Input and errors as for [`mean_absolute_error`]; the squares themselves never overflow. The standard error is that of the mean square by
/// the delta method, s / (2√n RMSE) with s the deviation of the squares by n − 1. The interval is Student's on the scale of logarithms,
/// where it held better in simulations than on that of the error or of its square; the heavier the tails of the differences, the more items
/// it takes.
///
/// ```
/// let error = judge_metrics::prediction::root_mean_squared_error(&[0.0, 5.0], &[3.0, 1.0])?;
/// assert!((error.estimate - 12.5f64.sqrt()).abs() < 1e-15);
/// assert!((error.standard_error()? - 3.5 / 50f64.sqrt()).abs() < 1e-15);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn root_mean_squared_error(observed: &[f64], predicted: &[f64]) -> Result<Estimate, Error> {
    const STATISTIC: &str = "root mean squared error";
    let differences = differences(observed, predicted)?;
    let n = differences.len();
    let root = in_range(STATISTIC, root_mean_square(&differences))?;
    let found = Estimate::new(STATISTIC, root, n)?;
    let degrees_of_freedom = (n - 1) as f64;
    if n == 1 {
        return Ok(found.without_error(Missing::TooFewItems { required: 2, found: 1 }));
    }
    let sizes: Vec<f64> = differences.iter().map(|difference| difference.abs() - root).collect();
    if is_rounding(root_mean_square(&sizes), &differences, scale(observed, predicted)) {
        return Ok(found.with_error(0.0, Spread::Log { degrees_of_freedom, least: 0.0 }));
    }
    // Relative to the root: squares of large and small differences would not be numbers.
    let squares: Vec<f64> = differences.iter().map(|difference| (difference / root).powi(2)).collect();
    let relative = mean_of(STATISTIC, &squares)?.standard_error()? / 2.0;
    Ok(found.with_error(in_range(STATISTIC, relative * root)?, Spread::Log { degrees_of_freedom, least: 0.0 }))
}

/// Whether all are 0 or 1, and both occur.
pub(crate) fn are_decisions<'a>(values: impl Iterator<Item = &'a f64>) -> bool {
    let mut occurs = [false; 2];
    for &value in values {
        match value {
            0.0 => occurs[0] = true,
            1.0 => occurs[1] = true,
            _ => return false,
        }
    }
    occurs == [true; 2]
}

fn differences(observed: &[f64], predicted: &[f64]) -> Result<Vec<f64>, Error> {
    check_columns(("observed", observed), ("predicted", predicted), 1)?;
    Ok(predicted.iter().zip(observed).map(|(predicted, observed)| predicted - observed).collect())
}

/// The size of the largest number that a difference is of: how large the rounding of differences may be.
fn scale(observed: &[f64], predicted: &[f64]) -> f64 {
    largest(observed).max(largest(predicted))
}
