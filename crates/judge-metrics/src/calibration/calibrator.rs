use super::conformal::{conformal_rank, required_items};
use super::curves::{Curves, kth_smallest};
use super::{Direction, IsotonicRegression};
use crate::correlation::spearman;
use crate::groups::{clusters, take};
use crate::input::{
    check_clusters, check_count, check_each_in, check_finite, check_lengths, check_paired, check_range, check_varies,
    in_range,
};
use crate::resampling::{check_folds, folds_of_groups};
use crate::{Error, Interval};

/// What a judge's score means on the human scale: learnt from rows that people have graded too, it gives each score a value and an
/// interval that a person's score for this row should lie in.
///
/// The value comes from an isotonic fit to all graded rows: a higher score never gets a lower value, and nothing else is supposed of how
/// the two scales relate. The interval is **cross-conformal**, so no graded row has to be set apart. The rows are cut into `folds`; each
/// row's error is measured by a fit that has not seen its fold; a new row's interval is made of all these errors around all these fits:
///
/// - [`CalibrationMethod::Isotonic`]: CV+ of Barber, Candès, Ramdas and Tibshirani (*Predictive inference with the jackknife+*, Annals of
///   Statistics 49, 2021).
/// - [`CalibrationMethod::Ordinal`]: the CV+ sets of Romano, Sesia and Candès (*Classification with valid and adaptive coverage*, NeurIPS
///   2020), with the ordinal sets of [`OrdinalConformal`](super::OrdinalConformal) as the score.
///
/// # What is promised
///
/// For rows that are exchangeable with the graded ones, whatever the judge, both papers prove a coverage of at least
/// [`guaranteed_coverage`](Self::guaranteed_coverage), which is about 2·level − 1: 80 % at level 0.9, less a little for small n. In
/// practice coverage is close to `level` or above, and [`assess`](Self::assess) measures it on your rows.
/// [`SplitConformal`](super::SplitConformal) proves `level` itself, at the price of the rows that are set apart. Neither promises anything
/// for other kinds of rows, for each kind of row by itself, or for several rows of one question on both sides: of these take
/// [`fit_clustered`](Self::fit_clustered), whose errors are those of unseen questions.
///
/// Where the interval would not hold the value, it is widened to do so; where `range` is known, it is cut to it. Neither lowers coverage.
///
/// ```
/// use judge_metrics::calibration::Calibrator;
///
/// // A judge that scores from 0 to 1, and people's grades from 1 to 5.
/// let score: Vec<f64> = (0..60).map(|i| f64::from(i % 20) / 20.0).collect();
/// let human: Vec<f64> = score.iter().zip(0..).map(|(s, i)| (1.0 + 4.0 * s + f64::from(i % 3 - 1)).round().clamp(1.0, 5.0)).collect();
///
/// let settings = Calibrator { range: Some([1.0, 5.0]), ..Calibrator::default() };
/// let report = settings.assess(&score, &human)?;
/// assert!(report.coverage.estimate()? > 0.8);
///
/// let calibrated = settings.fit(&score, &human)?.calibrate(0.5)?;
/// assert!((2.0..4.0).contains(&calibrated.value));
/// assert!(1.0 <= calibrated.interval.low && calibrated.interval.high <= 5.0);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibrator {
    /// How scores become values.
    pub method: CalibrationMethod,
    /// Coverage aimed at, 1 − α, in (0, 1).
    pub level: f64,
    /// Number of folds, at least 2. With as many as rows, or more, each row is a fold.
    pub folds: usize,
    /// Chooses which rows make a fold.
    pub seed: u64,
    /// Whether a higher score stands for a higher human score.
    pub direction: Direction,
    /// Lowest and highest score that people can give, where it is known.
    pub range: Option<[f64; 2]>,
}

/// How scores become values on the human scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CalibrationMethod {
    /// Human scores are numbers: the value is the fitted mean, the interval any numbers.
    #[default]
    Isotonic,
    /// Human scores are a few grades: the value is the expected grade, the interval runs from a grade to a grade.
    ///
    /// The probability of each grade comes from an isotonic fit at each cut of the scale (isotonic distributional regression: Henzi, Ziegel
    /// and Gneiting, Journal of the Royal Statistical Society B 83, 2021). A set of grades grows from the most probable one.
    Ordinal,
}

impl Default for Calibrator {
    /// Isotonic, 90 %, 10 folds, seed 0, increasing, no range.
    fn default() -> Self {
        Self {
            method: CalibrationMethod::Isotonic,
            level: 0.9,
            folds: 10,
            seed: 0,
            direction: Direction::Increasing,
            range: None,
        }
    }
}

/// Enough to bound something at this level, with a row for a fold and one to fit.
pub(super) fn required_rows(level: f64) -> Result<usize, Error> {
    Ok(required_items(level)?.max(2))
}

/// Ordinal calibration is for grades: each further one costs a fit in each fold.
pub(super) const MOST_GRADES: usize = 101;

impl Calibrator {
    /// Learns from n graded rows: `scores` of the judge, `human` of people, finite numbers. O(folds · n log n), times the number of grades
    /// for ordinal ones.
    ///
    /// Rows of one score get one value. Scores outside the range seen here get the value at its end.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] where n rows bound nothing at this level: 9 are needed at 90 %, 19 at 95 %. [`Error::Constant`] where all
    /// scores are one number or people gave one score only: nothing can be learnt. [`Error::TooManyItems`] for more than 101 grades.
    /// [`Error::LengthMismatch`], [`Error::NonFinite`], [`Error::LevelOutOfRange`]; [`Error::OutOfRange`] for fewer than 2 folds, a
    /// `range` that descends, or a human score outside it.
    pub fn fit(&self, scores: &[f64], human: &[f64]) -> Result<FittedCalibrator, Error> {
        self.fit_clustered(scores, human, &(0..scores.len()).collect::<Vec<_>>())
    }

    /// The same where rows come in clusters, such as several answers to one question: rows of one cluster are in one fold, so that errors
    /// are those of questions that a fit has not seen. `groups[i]` says which cluster row i belongs to. Where clusters hold several rows,
    /// no coverage is proved; [`assess_clustered`](Self::assess_clustered) measures that of new clusters.
    ///
    /// # Errors
    ///
    /// Those of [`fit`](Self::fit), and [`Error::TooFewClusters`] for fewer than two clusters.
    pub fn fit_clustered<G: Ord>(
        &self,
        scores: &[f64],
        human: &[f64],
        groups: &[G],
    ) -> Result<FittedCalibrator, Error> {
        self.check(scores, human, groups, [required_rows(self.level)?, 2])?;
        self.fit_any(scores, human, groups, self.increasing(scores, human)?)
    }

    /// The coverage that is proved for n graded rows in folds of equal size, in [0, 1]: 1 − 2α − min{2(1 − 1/K)/(n/K + 1), (1 − K/n)/(K +
    /// 1)} for K folds (Barber et al., 2021, theorem 4; Romano et al., 2020, theorem 3).
    pub fn guaranteed_coverage(&self, n: usize) -> f64 {
        let (n, k) = (n as f64, self.folds.min(n) as f64);
        let excess = (2.0 * (1.0 - 1.0 / k) / (n / k + 1.0)).min((1.0 - k / n) / (k + 1.0));
        (1.0 - 2.0 * (1.0 - self.level) - excess).max(0.0)
    }

    /// `required`: rows and clusters.
    pub(super) fn check<G: Ord>(
        &self,
        scores: &[f64],
        human: &[f64],
        groups: &[G],
        required: [usize; 2],
    ) -> Result<(), Error> {
        check_folds(self.folds)?;
        check_paired(scores, human, 0)?;
        check_lengths("groups", groups.len(), "scores", scores.len())?;
        let [rows, of_groups] = required;
        check_count(rows, scores.len())?;
        check_clusters(of_groups, scores.len(), clusters(groups).len())?;
        if let Some([low, high]) = self.range {
            check_finite("range", &[low, high])?;
            check_range("range", Some(0), low, [f64::MIN, high])?;
            check_each_in("human", human, [low, high])?;
        }
        check_varies("scores", scores)?;
        check_varies("human", human)
    }

    /// The direction of the whole data, which folds do not choose anew.
    pub(super) fn increasing(&self, scores: &[f64], human: &[f64]) -> Result<bool, Error> {
        Ok(match self.direction {
            Direction::Increasing => true,
            Direction::Decreasing => false,
            Direction::Auto => spearman(scores, human)?.estimate >= 0.0,
        })
    }

    /// Fits rows that may hold one score or one grade, as those outside a fold can.
    pub(super) fn fit_any<G: Ord>(
        &self,
        scores: &[f64],
        human: &[f64],
        groups: &[G],
        increasing: bool,
    ) -> Result<FittedCalibrator, Error> {
        let n = scores.len();
        let rank = conformal_rank(n, self.level)?;
        let grades = match self.method {
            CalibrationMethod::Isotonic => None,
            CalibrationMethod::Ordinal => {
                let mut grades: Vec<f64> = human.iter().map(|grade| grade + 0.0).collect();
                grades.sort_unstable_by(f64::total_cmp);
                grades.dedup();
                if grades.len() > MOST_GRADES {
                    return Err(Error::TooManyItems { limit: MOST_GRADES, found: grades.len() });
                }
                Some(grades)
            }
        };
        let direction = if increasing { Direction::Increasing } else { Direction::Decreasing };
        let fit = IsotonicRegression { direction, ..IsotonicRegression::default() };
        let curves = Curves::fit(&fit, scores, human, grades.as_deref())?;
        let (fold_of, folds) = folds_of_groups(groups, self.folds, self.seed);
        let folds = (0..folds).map(|fold| {
            let (kept, left): (Vec<usize>, Vec<usize>) = (0..n).partition(|&row| fold_of[row] != fold);
            let curves = Curves::fit(&fit, &take(scores, &kept), &take(human, &kept), grades.as_deref())?;
            let mut errors = left
                .iter()
                .map(|&row| curves.error(scores[row], human[row], grades.as_deref()))
                .collect::<Result<Vec<_>, _>>()?;
            errors.sort_unstable_by(f64::total_cmp);
            Ok(Fold { curves, errors })
        });
        let folds = folds.collect::<Result<Vec<_>, Error>>()?;
        Ok(FittedCalibrator { level: self.level, range: self.range, grades, curves, folds, rank })
    }
}

/// A score on the human scale.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CalibratedScore {
    /// The human score to expect. It never falls as the judge's score rises, or never rises, by the fitted direction.
    pub value: f64,
    /// Where a person's score should lie; it holds the value.
    pub interval: Interval,
}

/// The rows of one fold, and what the others say of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fold {
    /// Fitted without the fold.
    pub(super) curves: Curves,
    /// Errors of its rows, ascending.
    pub(super) errors: Vec<f64>,
}

/// A map from a judge's scores to the human scale, with intervals. [`parts`](Self::parts) are its numbers, for saving.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedCalibrator {
    pub(super) level: f64,
    pub(super) range: Option<[f64; 2]>,
    /// Ascending; `None` for isotonic calibration.
    pub(super) grades: Option<Vec<f64>>,
    pub(super) curves: Curves,
    pub(super) folds: Vec<Fold>,
    /// How many of the errors, in ascending order, an interval must allow for.
    pub(super) rank: usize,
}

impl FittedCalibrator {
    /// Graded rows it was learnt from.
    pub fn n(&self) -> usize {
        self.folds.iter().map(|fold| fold.errors.len()).sum()
    }

    /// Coverage aimed at.
    pub fn level(&self) -> f64 {
        self.level
    }

    /// The value and the interval of a score. O(folds · log n) steps, about 60 times.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`]; [`Error::Undefined`] where the value or an end overflows.
    pub fn calibrate(&self, score: f64) -> Result<CalibratedScore, Error> {
        check_finite("score", &[score])?;
        let value = in_range("calibrated score", self.curves.value(score, self.grades.as_deref()))?;
        let (low, high) = match &self.grades {
            None => self.interval_of_numbers(score)?,
            Some(grades) => self.interval_of_grades(score, value, grades),
        };
        let [least, most] = self.range.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
        // Of values that people gave, which lie in the range, the mean does too but for rounding.
        let value = value.clamp(least, most);
        let interval = Interval { low: low.max(least).min(value), high: high.min(most).max(value), level: self.level };
        Ok(CalibratedScore { value, interval })
    }

    /// [`calibrate`](Self::calibrate) for each of `scores`.
    ///
    /// # Errors
    ///
    /// Those of [`calibrate`](Self::calibrate); which score is not finite is said.
    pub fn calibrate_all(&self, scores: &[f64]) -> Result<Vec<CalibratedScore>, Error> {
        check_finite("scores", scores)?;
        scores.iter().map(|&score| self.calibrate(score)).collect()
    }

    /// Barber et al., 2021, section 3: the quantile of prediction + error over all rows, and of prediction − error.
    fn interval_of_numbers(&self, score: f64) -> Result<(f64, f64), Error> {
        let around = |sign: f64| {
            let shifted: Vec<(f64, &[f64])> =
                self.folds.iter().map(|fold| (sign * fold.curves.value(score, None), fold.errors.as_slice())).collect();
            in_range("cross-conformal interval", kth_smallest(&shifted, self.rank))
        };
        // Not the negative, which of 0 would be -0.
        Ok((0.0 - around(-1.0)?, around(1.0)?))
    }

    /// Romano et al., 2020, section 2.4: a grade is left out where too many rows have a smaller error than it would have. The run of grades
    /// from the lowest to the highest that is not left out, with those next to the value.
    fn interval_of_grades(&self, score: f64, value: f64, grades: &[f64]) -> (f64, f64) {
        let mut smaller = vec![0; grades.len()];
        for fold in &self.folds {
            for (grade, error) in fold.curves.errors(score) {
                smaller[grade] += fold.errors.partition_point(|&known| known < error);
            }
        }
        let kept = |&grade: &usize| smaller[grade] < self.rank;
        let above_value = grades.partition_point(|&grade| grade < value).min(grades.len() - 1);
        let below_value = grades.partition_point(|&grade| grade <= value).saturating_sub(1);
        let low = (0..grades.len()).find(kept).unwrap_or(below_value).min(below_value);
        let high = (0..grades.len()).rev().find(kept).unwrap_or(above_value).max(above_value);
        (grades[low], grades[high])
    }
}
