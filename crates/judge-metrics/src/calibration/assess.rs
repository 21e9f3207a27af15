//! How well a calibrator does, out of fold: coverage, width and error on rows that had no part in the fit.

use super::Calibrator;
use super::calibrator::required_rows;
use crate::estimate::NOT_NEGATIVE;
use crate::groups::{clusters, take};
use crate::means::{clustered_mean, clustered_share, mean_of};
use crate::resampling::folds_of_groups;
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
    /// Coverage that is proved for n rows: [`Calibrator::guaranteed_coverage`]; 0, which is none, where rows come in clusters.
    pub guaranteed: f64,
    /// Rows whose human score lies in the interval, of all.
    pub coverage: Proportion,
    /// The same share with its interval: Wilson's, or Student's of clusters.
    pub covered: Estimate,
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
        self.assess_clustered(scores, human, &(0..scores.len()).collect::<Vec<_>>())
    }

    /// The same where rows come in clusters, of [`fit_clustered`](Self::fit_clustered): each fold has whole clusters, and intervals
    /// allow for clusters.
    ///
    /// # Errors
    ///
    /// Those of [`assess`](Self::assess), [`Error::TooFewClusters`] for fewer than three clusters, and [`Error::TooFewItems`] where the
    /// rows outside a fold are too few.
    pub fn assess_clustered<G: Ord>(
        &self,
        scores: &[f64],
        human: &[f64],
        groups: &[G],
    ) -> Result<CalibrationReport, Error> {
        self.check(scores, human, groups, [self.required()?, 3])?;
        let n = scores.len();
        let increasing = self.increasing(scores, human)?;
        let (fold_of, folds) = folds_of_groups(groups, self.folds, self.seed);
        let (mut values, mut widths, mut held) = (vec![0.0; n], vec![0.0; n], vec![false; n]);
        for fold in 0..folds {
            let (kept, left): (Vec<usize>, Vec<usize>) = (0..n).partition(|&row| fold_of[row] != fold);
            let others: Vec<&G> = kept.iter().map(|&row| &groups[row]).collect();
            let fitted = self.fit_any(&take(scores, &kept), &take(human, &kept), &others, increasing)?;
            for row in left {
                let calibrated = fitted.calibrate(scores[row])?;
                (values[row], widths[row]) = (calibrated.value, calibrated.interval.high - calibrated.interval.low);
                held[row] = (calibrated.interval.low..=calibrated.interval.high).contains(&human[row]);
            }
        }
        let errors: Vec<f64> = values.iter().zip(human).map(|(value, human)| (value - human).abs()).collect();
        let shared = clusters(groups).len() < n;
        let mean = |statistic, values: &[f64]| {
            let mean = if shared { clustered_mean(values, groups) } else { mean_of(statistic, values) };
            Ok::<_, Error>(mean?.within(NOT_NEGATIVE))
        };
        Ok(CalibrationReport {
            n,
            folds,
            level: self.level,
            guaranteed: if shared { 0.0 } else { self.guaranteed_coverage(n) },
            coverage: Proportion::of(&held),
            covered: clustered_share(&held, groups)?,
            width: mean("mean width", &widths)?,
            error: mean("mean absolute error", &errors)?,
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
