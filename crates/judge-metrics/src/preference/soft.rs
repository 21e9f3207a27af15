//! Verdicts that are probabilities, held against labels that may be ties.

use super::Preference;
use crate::estimate::SHARE;
use crate::input::{check_finite, check_lengths};
use crate::means::mean_of;
use crate::{Error, Estimate};

/// How far probabilities agree with gold labels: the mean of 1 − |p − credit|, in [0, 1], where the gold label's
/// [`credit`](Preference::credit) is 1 for the first item, 0 for the second and ½ for a tie.
///
/// `probabilities[i]` is the probability that the first item of pair i is better, with half of a tie's probability. On pairs without ties
/// this is the accuracy to expect of verdicts that are drawn with these probabilities. It rewards being sure and right, unlike the Brier score
/// it is no proper score: do not tune by it. Its interval is Student's.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`] for no pair, [`Error::NonFinite`], [`Error::OutOfRange`].
///
/// ```
/// use judge_metrics::preference::{Preference::*, soft_agreement};
///
/// let agreement = soft_agreement(&[First, First, Tie], &[0.9, 0.2, 0.5])?;
/// assert!((agreement.estimate - 0.7).abs() < 1e-12);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn soft_agreement(gold: &[Preference], probabilities: &[f64]) -> Result<Estimate, Error> {
    check_lengths("gold", gold.len(), "probabilities", probabilities.len())?;
    check_finite("probabilities", probabilities)?;
    if let Some(index) = probabilities.iter().position(|p| !(0.0..=1.0).contains(p)) {
        let value = probabilities[index];
        return Err(Error::OutOfRange { argument: "probabilities", index: Some(index), value, low: 0.0, high: 1.0 });
    }
    let agreement: Vec<f64> = probabilities.iter().zip(gold).map(|(p, gold)| 1.0 - (p - gold.credit()).abs()).collect();
    Ok(mean_of("soft agreement", &agreement)?.within(SHARE))
}
