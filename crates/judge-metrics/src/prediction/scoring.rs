use crate::estimate::{NOT_NEGATIVE, SHARE};
use crate::input::{check_count, check_lengths};
use crate::means::{mean_loss, mean_of};
use crate::prediction::distributions::check_probabilities;
use crate::{Error, Estimate};

/// Brier score of probabilities of one event: the mean of (p − y)², in [0, 1] (`sklearn.metrics.brier_score_loss`).
///
/// `outcomes`: whether the event came to be; `probabilities`: what the judge gave it, in [0, 1]. n ≥ 1 each. 0.25 is what a
/// judge scores who always says one half. The interval is Student's, cut off at 0 and 1; of decisions, all 0 or 1, it is Wilson's, the
/// score being the share of wrong ones.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`], [`Error::OutOfRange`].
///
/// ```
/// let score = judge_metrics::prediction::brier_score(&[false, true, true, false], &[0.1, 0.9, 0.8, 0.3])?;
/// assert!((score.estimate - 0.037_5).abs() < 1e-15);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[doc(alias = "brier_score_loss")]
pub fn brier_score(outcomes: &[bool], probabilities: &[f64]) -> Result<Estimate, Error> {
    check_forecasts(outcomes, probabilities)?;
    let squares: Vec<f64> =
        outcomes.iter().zip(probabilities).map(|(&came, p)| (p - f64::from(came)).powi(2)).collect();
    mean_loss("Brier score", &squares, 1.0, SHARE, probabilities.iter().all(|&p| p == 0.0 || p == 1.0))
}

/// What a log loss moves probabilities of 0 and 1 by, as `sklearn.metrics.log_loss` does for double precision. All log losses of this
/// project take it.
pub const LOG_LOSS_CLIP: f64 = f64::EPSILON;

/// Log loss of probabilities of one event, in nats: the mean of −ln of what was given to what came to be.
///
/// `clip` in [0, 0.5): probabilities are first moved into [clip, 1 − clip]. [`LOG_LOSS_CLIP`] is what `sklearn.metrics.log_loss`
/// takes; 0 clips nothing, and then certainty that proves wrong is an error. Input otherwise as for [`brier_score`].
///
/// # Errors
///
/// Those of [`brier_score`]; [`Error::OutOfRange`] for `clip`; [`Error::Undefined`] where the loss is infinite.
///
/// ```
/// use judge_metrics::prediction::log_loss;
///
/// let loss = log_loss(&[true, false], &[0.8, 0.1], f64::EPSILON)?;
/// assert!((loss.estimate - (0.8f64.ln() + 0.9f64.ln()) / -2.0).abs() < 1e-15);
/// assert!(log_loss(&[true], &[0.0], 0.0).is_err());
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn log_loss(outcomes: &[bool], probabilities: &[f64], clip: f64) -> Result<Estimate, Error> {
    let losses = log_losses(outcomes, probabilities, clip)?;
    if losses.contains(&f64::INFINITY) {
        let reason = "what came to be had probability 0 and clip is 0";
        return Err(Error::Undefined { statistic: "log loss", reason });
    }
    Ok(mean_of("log loss", &losses)?.within(NOT_NEGATIVE))
}

/// Of each item.
pub(crate) fn log_losses(outcomes: &[bool], probabilities: &[f64], clip: f64) -> Result<Vec<f64>, Error> {
    check_forecasts(outcomes, probabilities)?;
    check_clip(clip)?;
    let loss = |(&came, &p): (&bool, &f64)| {
        let p = p.clamp(clip, 1.0 - clip);
        // ln(1 − p) from p itself: a small p loses no digits.
        if came { -p.ln() } else { -(-p).ln_1p() }
    };
    Ok(outcomes.iter().zip(probabilities).map(loss).collect())
}

pub(crate) fn check_clip(clip: f64) -> Result<(), Error> {
    if (0.0..0.5).contains(&clip) {
        Ok(())
    } else {
        Err(Error::OutOfRange { argument: "clip", index: None, value: clip, low: 0.0, high: 0.5 })
    }
}

/// As many outcomes as probabilities, at least one.
pub(crate) fn check_forecasts(outcomes: &[bool], probabilities: &[f64]) -> Result<(), Error> {
    check_lengths("probabilities", probabilities.len(), "outcomes", outcomes.len())?;
    check_count(1, outcomes.len())?;
    check_probabilities("probabilities", probabilities)
}
