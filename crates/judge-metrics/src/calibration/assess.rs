//! How well a calibrator does, out of fold: coverage, width and error on rows that had no part in the fit.

use super::Calibrator;
use super::calibrator::required_rows;
use crate::means::mean_of;
use crate::prediction::mean_absolute_error;
use crate::resampling::folds_of;
use crate::{Error, Estimate, Proportion};

/// How good a calibration is on held-out rows.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct CalibrationReport {
    /// Graded rows.
    pub n: usize,
    /// Folds they were cut into.
    pub folds: usize,
    /// Coverage aimed at.
    pub level: f64,
    /// Coverage that is proved for n rows: [`Calibrator::guaranteed_coverage`].
    pub guaranteed: f64,
    /// Rows whose human score lies in the interval, of all; [`Proportion::wilson`] has its interval.
    pub coverage: Proportion,
    /// Mean width of the intervals, in the unit of the human scores.
    pub width: Estimate,
    /// Mean distance of the value from the human score.
    pub error: Estimate,
}

impl Calibrator {
    /// Calibrates each fold by a calibrator that was learnt, folds and all, from the other folds, and compares with people. It costs as
    /// much as [`folds`](Self::folds) fits.
    ///
    /// The calibrator that [`fit`](Self::fit) makes has all rows to learn from and is no worse on average.
    ///
    /// # Errors
    ///
    /// Those of [`fit`](Self::fit), where [`Error::TooFewItems`] names the number with which the other folds suffice too: 10 at 90 % with
    /// 10 folds, 22 at 95 %.
    pub fn assess(&self, scores: &[f64], human: &[f64]) -> Result<CalibrationReport, Error> {
        self.check(scores, human, self.required()?)?;
        let n = scores.len();
        let increasing = self.increasing(scores, human)?;
        let fold_of = folds_of(n, self.folds, self.seed);
        let folds = self.folds.min(n);
        let (mut values, mut widths) = (vec![0.0; n], vec![0.0; n]);
        let mut coverage = Proportion::default();
        for fold in 0..folds {
            let (kept, left): (Vec<usize>, Vec<usize>) = (0..n).partition(|&row| fold_of[row] != fold);
            let take = |column: &[f64]| kept.iter().map(|&row| column[row]).collect::<Vec<_>>();
            let fitted = self.fit_any(&take(scores), &take(human), increasing)?;
            for row in left {
                let calibrated = fitted.calibrate(scores[row])?;
                (values[row], widths[row]) = (calibrated.value, calibrated.interval.high - calibrated.interval.low);
                coverage.add((calibrated.interval.low..=calibrated.interval.high).contains(&human[row]));
            }
        }
        Ok(CalibrationReport {
            n,
            folds,
            level: self.level,
            guaranteed: self.guaranteed_coverage(n),
            coverage,
            width: mean_of("mean width", &widths)?,
            error: mean_absolute_error(human, &values)?,
        })
    }

    /// The smallest number of rows of which those outside any one fold are enough for a calibrator.
    fn required(&self) -> Result<usize, Error> {
        let enough = required_rows(self.level)?;
        let folds = self.folds.max(2); // fewer are refused next
        let mut n = enough + enough / (folds - 1);
        while n - n.div_ceil(folds.min(n)) < enough {
            n += 1;
        }
        Ok(n)
    }
}
