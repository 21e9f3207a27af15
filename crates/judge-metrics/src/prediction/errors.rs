use std::cmp::Ordering;

use crate::Error;
use crate::input::{check_finite, check_lengths};
use crate::prediction::SampleMean;
use crate::prediction::mean::{in_range, root_mean_square};

/// Mean absolute error, as `sklearn.metrics.mean_absolute_error`.
///
/// `predicted`, `observed`: n ≥ 1 finite numbers each, in one unit; the result is in that unit, at least 0. Its interval is
/// [`SampleMean::interval`].
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`]; [`Error::Undefined`] where a difference
/// overflows.
///
/// ```
/// use judge_metrics::prediction::mean_absolute_error;
///
/// let error = mean_absolute_error(&[3.5, 1.0, 4.0], &[3.0, 2.0, 4.0])?;
/// assert_eq!(error.estimate, 0.5);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn mean_absolute_error(predicted: &[f64], observed: &[f64]) -> Result<SampleMean, Error> {
    let absolute: Vec<f64> = differences(predicted, observed)?.into_iter().map(f64::abs).collect();
    SampleMean::of("mean absolute error", &absolute)
}

/// Mean signed error, predicted minus observed: above 0 where the judge is more generous than people.
///
/// Input, interval and errors as for [`mean_absolute_error`].
///
/// ```
/// let bias = judge_metrics::prediction::bias(&[3.5, 2.0, 5.0], &[3.0, 2.0, 4.0])?;
/// assert_eq!(bias.estimate, 0.5);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn bias(predicted: &[f64], observed: &[f64]) -> Result<SampleMean, Error> {
    SampleMean::of("bias", &differences(predicted, observed)?)
}

/// A [`bias`] as a person would say it, with two significant digits and in the unit of the scores.
///
/// ```
/// use judge_metrics::prediction::bias_in_words;
///
/// assert_eq!(bias_in_words(-0.413), "on average 0.41 lower than people's");
/// assert_eq!(bias_in_words(12.6), "on average 13 higher than people's");
/// assert_eq!(bias_in_words(0.0), "on average as high as people's");
/// ```
pub fn bias_in_words(bias: f64) -> String {
    let size = bias.abs();
    let decimals = if size >= 10.0 || size == 0.0 { 0 } else { (1.0 - size.log10().floor()).min(12.0) as usize };
    match bias.partial_cmp(&0.0) {
        Some(Ordering::Less) => format!("on average {size:.decimals$} lower than people's"),
        Some(Ordering::Greater) => format!("on average {size:.decimals$} higher than people's"),
        Some(Ordering::Equal) => "on average as high as people's".to_owned(),
        None => "not known to be higher or lower than people's".to_owned(),
    }
}

/// Root mean squared error, as `sklearn.metrics.root_mean_squared_error`.
///
/// Input and errors as for [`mean_absolute_error`]; the squares themselves never overflow. A closed interval supposes
/// normal errors of known mean, which scores do not have: take it from [`Bootstrap`](crate::resampling::Bootstrap).
///
/// ```
/// let error = judge_metrics::prediction::root_mean_squared_error(&[3.0, 1.0], &[0.0, 5.0])?;
/// assert!((error - 12.5f64.sqrt()).abs() < 1e-15);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn root_mean_squared_error(predicted: &[f64], observed: &[f64]) -> Result<f64, Error> {
    in_range("root mean squared error", root_mean_square(&differences(predicted, observed)?))
}

fn differences(predicted: &[f64], observed: &[f64]) -> Result<Vec<f64>, Error> {
    check_predictions(predicted, observed, 1)?;
    Ok(predicted.iter().zip(observed).map(|(predicted, observed)| predicted - observed).collect())
}

/// As many observations as predictions, at least `required`, all finite.
pub(crate) fn check_predictions(predicted: &[f64], observed: &[f64], required: usize) -> Result<(), Error> {
    check_lengths("observed", observed.len(), "predicted", predicted.len())?;
    if predicted.len() < required {
        return Err(Error::TooFewItems { required, found: predicted.len() });
    }
    check_finite("predicted", predicted)?;
    check_finite("observed", observed)
}
