//! How predictions of rows that nothing was learnt from agree with people, each statistic with a bootstrap interval over groups of rows.
//!
//! It owns the statistics of one split and their differences; which rows are held out is decided in `parts`, and what the
//! intervals mean in words in `comparison`. All statistics of a split are computed on the same resamples, since these depend on
//! the groups and the bootstrap's seed alone: a difference between two predictors is that of paired rows.

use judge_metrics::agreement::{Average, AverageScores, ConfusionMatrix, ZeroDivision};
use judge_metrics::comparison::{Statistic, brief};
use judge_metrics::means::clustered_share;
use judge_metrics::prediction::{area_under_risk_coverage, auroc, brier_score};
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
    /// Of two classes and a predictor that knows probabilities: what they are worth.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub of_probability: Option<OfProbability>,
}

/// What the probability of the second of two classes is worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfProbability {
    /// Mean squared distance from 1 for the second class and 0 for the first.
    #[serde(serialize_with = "brief")]
    pub brier_score: Statistic,
    /// Area under the receiver operating characteristic: how well it tells the classes apart.
    #[serde(serialize_with = "brief")]
    pub auroc: Statistic,
    /// The share of rows of the first class among those that are surest to be of the second, averaged over all shares that may be kept: of
    /// a judge that is right or wrong, what is risked by keeping its surest verdicts. A probability that says nothing has the share of all
    /// rows.
    #[serde(serialize_with = "brief")]
    pub area_under_risk_coverage: Statistic,
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
    /// By how much the Brier score is lower, where both know probabilities of two classes.
    #[serde(serialize_with = "brief_or_null", skip_serializing_if = "Option::is_none")]
    pub brier_score: Option<Statistic>,
    /// By how much the area under the risk–coverage curve is lower, likewise.
    #[serde(serialize_with = "brief_or_null", skip_serializing_if = "Option::is_none")]
    pub area_under_risk_coverage: Option<Statistic>,
}

/// As [`brief`], where the statistic is known.
pub(crate) fn brief_or_null<S: serde::Serializer>(known: &Option<Statistic>, serializer: S) -> Result<S::Ok, S::Error> {
    match known {
        Some(known) => brief(known, serializer),
        None => serializer.serialize_none(),
    }
}

/// What a probability of the second class is worth on some rows.
type Measure<'a> = fn(&HeldOut<'a>, &[f64], &[usize]) -> Result<f64, judge_metrics::Error>;

impl<'a> HeldOut<'a> {
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
            accuracy: self.accuracy(predictions)?,
            spearman: self.statistic(|rows| ranks.as_ref().map_err(Clone::clone)?.spearman(rows))?,
            of_probability: self.of_probability(predictions)?,
        })
    }

    fn of_probability(&self, predictions: &Predictions<i64>) -> Result<Option<OfProbability>, Error> {
        let Some(p) = self.of_second(predictions) else { return Ok(None) };
        Ok(Some(OfProbability {
            brier_score: self.statistic(|rows| self.brier(&p, rows))?,
            auroc: self.statistic(|rows| Ok(auroc(&self.outcomes(rows), &pick(&p, rows))?.estimate))?,
            area_under_risk_coverage: self.statistic(|rows| self.risk(&p, rows))?,
        }))
    }

    /// The probability of the second class, where there are two and it is known of every row.
    fn of_second(&self, predictions: &Predictions<i64>) -> Option<Vec<f64>> {
        let table = predictions.probabilities.as_ref().filter(|table| table.classes() == self.labels)?;
        let p: Vec<f64> = table.probabilities().rows().map(|row| row[row.len() - 1]).collect();
        (self.labels.len() == 2 && p.len() == self.classes.len()).then_some(p)
    }

    fn outcomes(&self, rows: &[usize]) -> Vec<bool> {
        rows.iter().map(|&row| self.labels.last() == self.classes.get(row)).collect()
    }

    fn brier(&self, p: &[f64], rows: &[usize]) -> Result<f64, judge_metrics::Error> {
        Ok(brier_score(&self.outcomes(rows), &pick(p, rows))?.estimate)
    }

    fn risk(&self, p: &[f64], rows: &[usize]) -> Result<f64, judge_metrics::Error> {
        let losses: Vec<f64> = self.outcomes(rows).into_iter().map(|second| f64::from(u8::from(!second))).collect();
        area_under_risk_coverage(&losses, &pick(p, rows))
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
        let both = self.of_second(predictions).zip(self.of_second(others));
        let lower = |of: Measure<'a>| {
            both.as_ref()
                .map(|(ours, theirs)| self.statistic(|rows| Ok(of(self, theirs, rows)? - of(self, ours, rows)?)))
                .transpose()
        };
        Ok(Gain {
            brier_score: lower(Self::brier)?,
            area_under_risk_coverage: lower(Self::risk)?,
            weighted_f1: self.statistic(|rows| Ok(f1(predictions, rows)? - f1(others, rows)?))?,
            spearman: self.statistic(rank)?,
        })
    }

    /// The share of rows that are right, with Wilson's interval where each is a group of its own, else Student's of groups.
    fn accuracy(&self, predictions: &Predictions<i64>) -> Result<Statistic, Error> {
        let all: Vec<usize> = (0..self.groups.len()).collect();
        let share = match self.f1(predictions, &all, Average::Micro) {
            Ok(scores) => scores.f1.estimate,
            Err(error @ judge_metrics::Error::TooFewItems { .. }) => {
                return Ok(Statistic::Undefined { reason: error.to_string() });
            }
            Err(error) => return Err(error.into()),
        };
        let pairs = self.classes.iter().zip(&predictions.labels);
        let right: Vec<bool> = pairs.map(|(class, predicted)| class == predicted).collect();
        Ok(Statistic::of_clusters(clustered_share(&right, &self.groups), share, self.bootstrap.level))
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

fn pick(values: &[f64], rows: &[usize]) -> Vec<f64> {
    rows.iter().filter_map(|&row| values.get(row).copied()).collect()
}
