//! A calibration used where it was not made: another system, another period.

use super::CalibratedMean;
use super::cross_fit::{CrossFit, extrapolated};
use crate::input::{check_finite, check_lengths, check_range, in_range};
use crate::means::parts::{Part, sum_of_parts};
use crate::resampling::{check_folds, folds_of};
use crate::{Error, Estimate, Proportion};

/// Whether a calibration made on a source set holds on a target set.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TransportCheck {
    /// Mean of human score − calibrated score on the labelled items of the target, in the unit of the labels; 0 where the calibration holds
    /// on average. Its error counts that of the calibration; the p-value is that of a mean residual of 0.
    pub residual: Estimate,
    /// The part of the standard error that is the calibration's.
    pub calibration_error: f64,
    /// Target scores outside the range of the source's, of all.
    pub extrapolated: Proportion,
}

/// What an interval of the mean residual says, given how large a mean residual may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum TransportVerdict {
    /// The whole interval is within the margin: the mean residual is small enough.
    Holds,
    /// The whole interval is beyond the margin.
    Fails,
    /// The interval has both: label more of the target.
    Undecided,
}

/// The mean of a target set of which no item is labelled.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TransportedMean {
    /// Mean calibrated score, in the unit of the labels; `n` counts target items. The p-value is that of a mean of 0.
    pub mean: Estimate,
    /// The part of the standard error that is the calibration's.
    pub calibration_error: f64,
    /// Target scores outside the range of the source's, of all: there the map is a guess, the value at its end.
    pub extrapolated: Proportion,
}

impl TransportCheck {
    /// Compares the interval of the given level with ∓ `margin`, the largest mean residual that does not matter to you, in the unit of the
    /// labels. A p-value above .05 is no such finding: few labels cannot show that a calibration holds.
    ///
    /// [`Holds`](TransportVerdict::Holds) at level 1 − 2α is two one-sided tests at α (Schuirmann, 1987).
    ///
    /// # Errors
    ///
    /// Those of [`Estimate::interval`]; [`Error::NonFinite`], [`Error::OutOfRange`] for a margin that is not above 0.
    pub fn verdict(&self, margin: f64, level: f64) -> Result<TransportVerdict, Error> {
        check_finite("margin", &[margin])?;
        check_range("margin", None, margin, [f64::MIN_POSITIVE, f64::MAX])?;
        let interval = self.residual.interval(level)?;
        Ok(if interval.low >= -margin && interval.high <= margin {
            TransportVerdict::Holds
        } else if interval.low > margin || interval.high < -margin {
            TransportVerdict::Fails
        } else {
            TransportVerdict::Undecided
        })
    }
}

impl CalibratedMean {
    /// Whether the calibration by a source leaves a mean residual on a target set, such as another system or a later period.
    ///
    /// `labels`, `predictions`: n ≥ 2 items of the source, which calibrate; `target_labels`, `target_predictions`: m ≥ 2 items of the
    /// target set that people scored too. Finite numbers. The map is fitted to all of the source. The variance is that of residuals, plus
    /// that of the calibration's mean on the target, by the delete-a-group jackknife; interval and test are Student's with Welch's degrees
    /// of freedom. It asks for the mean only: residuals of either sign may cancel.
    ///
    /// Where the calibration held, a test at .05 rejected 3, 4 and 5 % of samples with n = m = 20, 100 and 1,000; a shift of 0.3 on a scale
    /// from 1 to 5 it found in 16, 76 and 100 % (the bench `coverage`).
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`]; [`Error::Constant`] where the judge gives one score to all
    /// of the source; [`Error::OutOfRange`] for fewer than 2 folds; [`Error::Undefined`] on overflow.
    ///
    /// ```
    /// use judge_metrics::means::{CalibratedMean, TransportVerdict};
    ///
    /// let judge: Vec<f64> = (0..100).map(|i| f64::from(i * 37 % 100)).collect();
    /// let human: Vec<f64> = judge.iter().zip(0..).map(|(s, i)| s / 25.0 + f64::from(i % 3 - 1)).collect();
    /// // People are a whole grade stricter with the new system at the same score of the judge.
    /// let stricter: Vec<f64> = human.iter().map(|score| score - 1.0).collect();
    /// let check = CalibratedMean::default().transport_check(&human, &judge, &stricter[..50], &judge[..50])?;
    /// assert!(check.residual.p_value()? < 0.001);
    /// assert_eq!(check.verdict(0.25, 0.95)?, TransportVerdict::Fails);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn transport_check(
        &self,
        labels: &[f64],
        predictions: &[f64],
        target_labels: &[f64],
        target_predictions: &[f64],
    ) -> Result<TransportCheck, Error> {
        check_lengths("target_predictions", target_predictions.len(), "target_labels", target_labels.len())?;
        let maps = self.of_source(labels, predictions, target_predictions)?;
        check_finite("target_labels", target_labels)?;
        let values = maps.whole.predict(target_predictions)?;
        let residuals = target_labels.iter().zip(values).map(|(label, value)| in_range(RESIDUAL, label - value));
        let residuals = Part::of(RESIDUAL, &residuals.collect::<Result<Vec<_>, _>>()?)?;
        let calibration = maps.error_of_mean(RESIDUAL, target_predictions)?;
        let calibration_error = calibration.standard_error;
        let residual = sum_of_parts(RESIDUAL, residuals.mean, &[residuals, calibration], target_labels.len())?;
        Ok(TransportCheck { residual, calibration_error, extrapolated: extrapolated(predictions, target_predictions) })
    }

    /// The mean of a target set that only the judge has scored, calibrated by a source that need not be drawn as it is.
    ///
    /// `labels`, `predictions`: n ≥ 2 items of the source; `target_predictions`: the judge's scores of N ≥ 2 items of the target. Finite
    /// numbers. It supposes that items of one score have one mean human score in both, which [`transport_check`](Self::transport_check)
    /// tests on average, and that the source has scores wherever the target does. Where labels are a draw of the target itself,
    /// [`estimate`](Self::estimate) supposes neither.
    ///
    /// The variance is that of calibrated scores, plus that of the calibration's mean on the target, by the delete-a-group jackknife. A
    /// nominal 95 % came out as 95 % with 20, 100 and 1,000 labels and ten target items to each (the bench `coverage`).
    ///
    /// # Errors
    ///
    /// Those of [`transport_check`](Self::transport_check).
    pub fn transported(
        &self,
        labels: &[f64],
        predictions: &[f64],
        target_predictions: &[f64],
    ) -> Result<TransportedMean, Error> {
        let maps = self.of_source(labels, predictions, target_predictions)?;
        let values = Part::of(TRANSPORTED, &maps.whole.predict(target_predictions)?)?;
        let calibration = maps.error_of_mean(TRANSPORTED, target_predictions)?;
        let calibration_error = calibration.standard_error;
        let mean = sum_of_parts(TRANSPORTED, values.mean, &[values, calibration], target_predictions.len())?;
        Ok(TransportedMean { mean, calibration_error, extrapolated: extrapolated(predictions, target_predictions) })
    }

    /// The maps of a source, once it and the target's scores are found to be such.
    fn of_source(&self, labels: &[f64], predictions: &[f64], target: &[f64]) -> Result<CrossFit, Error> {
        check_folds(self.folds)?;
        super::check_columns(labels, predictions, target)?;
        CrossFit::new(self.direction, labels, predictions, &folds_of(labels.len(), self.folds, self.seed))
    }
}

const RESIDUAL: &str = "mean residual of the calibration";

const TRANSPORTED: &str = "transported mean";
