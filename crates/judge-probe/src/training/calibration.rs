//! What a trained probe's numbers mean on the scale of the grades, and whether people's grades lie where it says.
//!
//! It owns which calibrator a training keeps and how it fares on held-out rows. The numbers out of fold come from
//! [`out_of_fold_scores`](crate::out_of_fold_scores), the calibrators from `judge_metrics`.

use std::collections::BTreeMap;

use judge_metrics::calibration::{CalibrationReport, Calibrator, FittedCalibrator};
use judge_metrics::{Error as Metric, Interval, Proportion};
use serde::Serialize;

use super::ProbeTraining;
use crate::Error;
use crate::numpy::pairwise_sum::pairwise_sum;

/// How good the calibrator of a probe is, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ProbeCalibration {
    /// One was fitted and kept.
    Kept {
        /// On the rows trained on, each with the number of a fit that had not learnt from it, calibrated by one that had not either. Rows of one
        /// group are in one fold of the calibrator too, unless the training is not [`grouped`](ProbeTraining::grouped). It may still
        /// flatter, since the layers and C were chosen on the same rows; and because of that, and because each number comes from one of
        /// several fits, no coverage is proved: `guaranteed` is 0.
        out_of_fold: Box<CalibrationReport>,
        /// On rows that had no part in anything, by the name of their split.
        held_out: BTreeMap<String, HeldOutCalibration>,
    },
    /// The rows define none, or the probe knows classes alone.
    Undefined {
        /// Why.
        undefined: String,
    },
}

/// Calibrated values beside the grades of rows that nothing was learnt from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HeldOutCalibration {
    /// Rows whose grade lies in its interval, of all rows.
    pub coverage: Proportion,
    /// Mean width of the intervals, in units of the grades.
    /// The narrower the better, as long as the coverage is kept.
    pub width: f64,
    /// Mean distance of the value from the grade, likewise.
    pub error: f64,
}

/// A calibrator of the grades and what is known of it, or why there is none.
/// The inner text is for the report; an error that settings are to blame for is not kept here but returned.
pub(super) type Fitted = Result<(FittedCalibrator, CalibrationReport), String>;

impl ProbeTraining {
    /// The calibrator of out-of-fold numbers, one for each of the rows trained on, or why they define none: what the data lack is no error
    /// of the training.
    ///
    /// `numbers`, `grades` and `groups` are `[n_train]` in the same order. Undefined statistics and too few rows are the data's; anything
    /// else, such as a level outside (0, 1), is an error of the settings.
    pub(super) fn calibrator<G: Ord>(
        &self,
        settings: Calibrator,
        numbers: &[f64],
        grades: &[f64],
        groups: &[G],
    ) -> Result<Fitted, Error> {
        let settings = Calibrator { range: settings.range.or(Some([self.scale.low, self.scale.high])), ..settings };
        // The report first: a calibrator that cannot be assessed is not kept.
        let fitted = settings
            .assess_clustered(numbers, grades, groups)
            .and_then(|report| Ok((settings.fit_clustered(numbers, grades, groups)?, report)));
        match fitted {
            // The theorem is of one judge whose scores know nothing of the grades.
            Ok((fitted, report)) => Ok(Ok((fitted, CalibrationReport { guaranteed: 0.0, ..report }))),
            Err(error @ (Metric::TooFewItems { .. } | Metric::TooFewClusters { .. })) => Ok(Err(error.to_string())),
            Err(error) if error.is_undefined() => Ok(Err(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }
}

impl HeldOutCalibration {
    /// Of the probe's numbers and the grades of the same rows, one or more.
    ///
    /// Means are over rows, each counted once; an interval holds its ends. Grades lie in the interval as they were given, not
    /// rounded to a class.
    pub(super) fn new(calibrator: &FittedCalibrator, numbers: &[f64], grades: &[f64]) -> Result<Self, Error> {
        let calibrated = calibrator.calibrate_all(numbers)?;
        let n = calibrated.len() as f64;
        let widths: Vec<f64> = calibrated.iter().map(|found| found.interval.high - found.interval.low).collect();
        let pairs = || calibrated.iter().zip(grades);
        let errors: Vec<f64> = pairs().map(|(found, grade)| (found.value - grade).abs()).collect();
        let covers = |interval: Interval, grade: &f64| (interval.low..=interval.high).contains(grade);
        let count = pairs().filter(|(found, grade)| covers(found.interval, grade)).count();
        let coverage = Proportion { count, n: calibrated.len() };
        Ok(Self { coverage, width: pairwise_sum(&widths) / n, error: pairwise_sum(&errors) / n })
    }
}
