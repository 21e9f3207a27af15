//! How predictions of rows that nothing was learnt from agree with people, each statistic with a bootstrap interval over groups of rows.
//!
//! It owns the statistics of one split and their differences; which rows are held out is decided in `parts`, and what the
//! intervals mean in words in `comparison`. All statistics of a split are computed on the same resamples, since these depend on
//! the groups and the bootstrap's seed alone: a difference between two predictors is that of paired rows.

use judge_metrics::agreement::{Average, AverageScores, ConfusionMatrix, ZeroDivision};
use judge_metrics::comparison::{Statistic, brief};
use judge_metrics::resampling::{Bootstrap, RankedPair};
use serde::Serialize;

use super::predictions::values;
use crate::{Error, Predictions};

/// Held-out rows with people's grades. One entry per row in each list.
///
/// ```
/// use judge_metrics::resampling::Bootstrap;
/// use judge_probe::training::HeldOut;
///
/// let rows = HeldOut {
///     classes: vec![1, 2, 3, 1],
///     grades: vec![1.2, 2.0, 2.9, 1.0],
///     groups: vec!["a", "b", "c", "d"],
///     labels: &[1, 2, 3],
///     bootstrap: Bootstrap { resamples: 100, ..Bootstrap::default() },
/// };
/// let agreement = rows.agreement(&vec![1, 2, 2, 1].into())?;
/// assert_eq!(agreement.accuracy.estimate(), Some(0.75));
/// # Ok::<(), judge_probe::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct HeldOut<'a> {
    /// The class of each row.
    pub classes: Vec<i64>,
    /// Its grade.
    pub grades: Vec<f64>,
    /// What the bootstrap draws: rows that share a group are drawn together.
    pub groups: Vec<&'a str>,
    /// All classes that a row may have, ascending.
    pub labels: &'a [i64],
    /// How intervals are made.
    pub bootstrap: Bootstrap,
}

/// How predictions agree with people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Agreement {
    /// Mean F1 of the classes, each weighted by its rows.
    #[serde(serialize_with = "brief")]
    pub weighted_f1: Statistic,
    /// Mean F1 of the classes that occur in the truth or the predictions.
    #[serde(serialize_with = "brief")]
    pub macro_f1: Statistic,
    /// Share of rows whose class was predicted.
    /// It is the micro-averaged F1, which is the same where each row has one class.
    #[serde(serialize_with = "brief")]
    pub accuracy: Statistic,
    /// Spearman's correlation of the expected class with the grade.
    /// In [-1, 1], ties by mean ranks; where probabilities are not known the predicted class takes the place of the expected
    /// one.
    #[serde(serialize_with = "brief")]
    pub spearman: Statistic,
}

/// By how much one prediction agrees better than another, on the same resamples.
///
/// Positive where the first is better. The interval is that of the difference, which is narrower than two separate intervals
/// suggest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gain {
    /// Difference of the weighted F1.
    #[serde(serialize_with = "brief")]
    pub weighted_f1: Statistic,
    /// Difference of Spearman's correlation.
    #[serde(serialize_with = "brief")]
    pub spearman: Statistic,
}

impl HeldOut<'_> {
    /// The agreement of predictions, one for each row.
    ///
    /// # Errors
    ///
    /// [`Error::Metric`] for another number of predictions than of rows; what the rows do not define is [`Statistic::Undefined`].
    pub fn agreement(&self, predictions: &Predictions<i64>) -> Result<Agreement, Error> {
        let ranks = self.ranks(predictions);
        Ok(Agreement {
            weighted_f1: self.statistic(|rows| Ok(self.f1(predictions, rows, Average::Weighted)?.f1.estimate))?,
            macro_f1: self.statistic(|rows| Ok(self.f1(predictions, rows, Average::Macro)?.f1.estimate))?,
            accuracy: self.statistic(|rows| Ok(self.f1(predictions, rows, Average::Micro)?.f1.estimate))?,
            spearman: self.statistic(|rows| ranks.as_ref().map_err(Clone::clone)?.spearman(rows))?,
        })
    }

    /// The agreement of `predictions` minus that of `others`.
    ///
    /// # Errors
    ///
    /// As [`agreement`](Self::agreement).
    pub fn gain(&self, predictions: &Predictions<i64>, others: &Predictions<i64>) -> Result<Gain, Error> {
        let f1 = |of: &Predictions<i64>, rows: &[usize]| {
            Ok::<_, judge_metrics::Error>(self.f1(of, rows, Average::Weighted)?.f1.estimate)
        };
        let ranks = self.ranks(predictions).and_then(|ours| Ok((ours, self.ranks(others)?)));
        let rank = |rows: &[usize]| {
            let (ours, theirs) = ranks.as_ref().map_err(Clone::clone)?;
            Ok(ours.spearman(rows)? - theirs.spearman(rows)?)
        };
        Ok(Gain {
            weighted_f1: self.statistic(|rows| Ok(f1(predictions, rows)? - f1(others, rows)?))?,
            spearman: self.statistic(rank)?,
        })
    }

    /// The statistic of the rows at the positions that `of` is given, with its interval over resampled groups.
    fn statistic(&self, of: impl Fn(&[usize]) -> Result<f64, judge_metrics::Error> + Sync) -> Result<Statistic, Error> {
        let alone = || of(&(0..self.groups.len()).collect::<Vec<_>>());
        Ok(Statistic::of(self.bootstrap.clustered(&self.groups, &of), alone)?)
    }

    /// The averaged precision, recall and F1 of these rows, which may repeat. All [`labels`](Self::labels) have a place in the
    /// matrix, so that resamples without a class need no other shape.
    fn f1(
        &self,
        predictions: &Predictions<i64>,
        rows: &[usize],
        average: Average,
    ) -> Result<AverageScores, judge_metrics::Error> {
        let pick = |classes: &[i64]| rows.iter().filter_map(|&row| classes.get(row).copied()).collect::<Vec<_>>();
        let matrix = ConfusionMatrix::new(self.labels.to_vec(), &pick(&self.classes), &pick(&predictions.labels))?;
        // A class that neither occurs nor is predicted has no F1, and no part in the mean. By weight it has none in any case, and the
        // precision of what does not occur must not leave the mean undefined.
        let rule = if average == Average::Weighted { ZeroDivision::Zero } else { ZeroDivision::LeftOut };
        matrix.average(average, rule)
    }

    /// Ranked once for all resamples; an error where either side is constant.
    fn ranks(&self, predictions: &Predictions<i64>) -> Result<RankedPair, judge_metrics::Error> {
        RankedPair::new(&values(predictions), &self.grades)
    }
}
