use crate::input::check_lengths;
use crate::means::{clustered_mean, mean_of};
use crate::prediction::distributions::check_distribution;
use crate::prediction::divergence::normalized;
use crate::prediction::scoring::check_clip;
use crate::prediction::{jensen_shannon_divergence, kl_divergence, total_variation};
use crate::sum::{dot, sum};
use crate::{Error, Estimate};

/// People's distribution over the labels of each item beside the judge's: agreement where people's disagreement is information and not
/// noise (Peterson et al., 2019; Uma et al., 2021).
///
/// People's distribution may be the shares of their votes ([`MajorityVote::shares`](crate::aggregation::MajorityVote::shares)) or a
/// posterior ([`AggregatedLabels::posteriors`](crate::aggregation::AggregatedLabels::posteriors)). Shares of few votes are themselves
/// uncertain: they lie further from any judge than what all people would say does.
///
/// ```
/// use judge_metrics::agreement::{SoftLabels, SoftMeasure};
///
/// let people = [[0.6, 0.4], [1.0, 0.0], [0.2, 0.8]];
/// let judge = [[0.7, 0.3], [0.9, 0.1], [0.4, 0.6]];
/// let soft = SoftLabels::new(&people, &judge)?;
/// let agreement = soft.mean(SoftMeasure::ExpectedAgreement)?;
/// assert!((agreement.estimate - (0.54 + 0.9 + 0.56) / 3.0).abs() < 1e-12);
/// // No judge can agree better in expectation than one that gives the most common label.
/// assert!((soft.best(SoftMeasure::ExpectedAgreement)?.estimate - 0.8).abs() < 1e-12);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SoftLabels {
    people: Vec<Vec<f64>>,
    judge: Vec<Vec<f64>>,
}

/// How an item's two distributions compare: people's p and the judge's q.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum SoftMeasure {
    /// Σ p q, in [0, 1]: how probable a label drawn from the judge's distribution is to be that of a person drawn at random. Of a judge
    /// that gives one label, the share of people who gave it. Larger is better, but it is best for a judge that is sure of the most common
    /// label: no measure of the distribution.
    ExpectedAgreement,
    /// −Σ p ln q in nats, at least people's entropy. `clip` in [0, 0.5): q is first moved into [clip, 1 − clip], as in
    /// [`log_loss`](crate::prediction::log_loss); with 0, a label of people's to which the judge gave 0 is an error.
    CrossEntropy {
        /// See above.
        clip: f64,
    },
    /// Σ p ln (p/q) in nats, at least 0: [`kl_divergence`], which is an error where q = 0 < p; [`smoothed`](crate::prediction::smoothed)
    /// distributions have none.
    KlDivergence,
    /// [`jensen_shannon_divergence`] in nats, in [0, ln 2].
    JensenShannon,
    /// [`total_variation`], in [0, 1]: half of the sum of absolute differences.
    TotalVariation,
    /// Σ (q − p)², in [0, 2]: the Brier score of a soft label. Where people agree fully it is
    /// scikit-learn's `brier_score_loss` with `scale_by_half=False`.
    Brier,
}

impl SoftLabels {
    /// `people` and `judge` have one row to an item, n ≥ 1, and a row one probability to a label, in one order. Each row is divided by its
    /// sum, which must be within 1e-6 of 1.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooFewItems`] for no item; [`Error::InRow`] around what is wrong with a row: its length, a
    /// number that is no probability, or [`Error::NotADistribution`].
    pub fn new<R: AsRef<[f64]>, S: AsRef<[f64]>>(people: &[R], judge: &[S]) -> Result<Self, Error> {
        check_lengths("judge", judge.len(), "people", people.len())?;
        let n_labels = people.first().ok_or(Error::TooFewItems { required: 1, found: 0 })?.as_ref().len();
        Ok(Self { people: distributions("people", people, n_labels)?, judge: distributions("judge", judge, n_labels)? })
    }

    /// The same of a judge that gives one label to an item: its place in the order of people's probabilities.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and [`Error::UnknownLabel`].
    pub fn of_labels<R: AsRef<[f64]>>(people: &[R], judge: &[usize]) -> Result<Self, Error> {
        let n_labels = people.first().map_or(0, |row| row.as_ref().len());
        if let Some(index) = judge.iter().position(|&label| label >= n_labels) {
            let known = (0..n_labels).map(|label| label.to_string()).collect::<Vec<_>>().join(", ");
            return Err(Error::UnknownLabel { argument: "judge", index, found: judge[index].to_string(), known });
        }
        let sure = |&given: &usize| (0..n_labels).map(|label| f64::from(label == given)).collect::<Vec<f64>>();
        Self::new(people, &judge.iter().map(sure).collect::<Vec<_>>())
    }

    /// The measure of each item, in the order of the rows.
    ///
    /// # Errors
    ///
    /// [`Error::InRow`] around [`Error::Undefined`] where the item's figure would be infinite; [`Error::OutOfRange`] for a `clip`.
    pub fn items(&self, measure: SoftMeasure) -> Result<Vec<f64>, Error> {
        if let SoftMeasure::CrossEntropy { clip } = measure {
            check_clip(clip)?;
        }
        let rows = self.people.iter().zip(&self.judge).enumerate();
        rows.map(|(row, (p, q))| measure.of(p, q).map_err(Error::in_row(row))).collect()
    }

    /// The mean over items, with Student's interval, items being independent.
    ///
    /// # Errors
    ///
    /// As [`items`](Self::items).
    pub fn mean(&self, measure: SoftMeasure) -> Result<Estimate, Error> {
        mean_of(measure.name(), &self.items(measure)?)
    }

    /// The same where several items belong to one question: [`clustered_mean`] of the items. `groups[i]` is the cluster of row i.
    ///
    /// # Errors
    ///
    /// As [`items`](Self::items), and those of [`clustered_mean`].
    pub fn clustered<G: Ord>(&self, measure: SoftMeasure, groups: &[G]) -> Result<Estimate, Error> {
        clustered_mean(&self.items(measure)?, groups)
    }

    /// The best that any judge could get on these items, people's distributions being what they are: their largest probability for
    /// [`SoftMeasure::ExpectedAgreement`], their entropy for [`SoftMeasure::CrossEntropy`] whatever the clip, else 0. With Student's
    /// interval.
    ///
    /// # Errors
    ///
    /// None that is known of: there is an item.
    pub fn best(&self, measure: SoftMeasure) -> Result<Estimate, Error> {
        let of = |p: &Vec<f64>| match measure {
            SoftMeasure::ExpectedAgreement => p.iter().copied().fold(0.0, f64::max),
            SoftMeasure::CrossEntropy { .. } => sum(&p.iter().map(|&p| surprise(p, p)).collect::<Vec<_>>()),
            _ => 0.0,
        };
        mean_of(measure.name(), &self.people.iter().map(of).collect::<Vec<_>>())
    }
}

impl SoftMeasure {
    fn name(self) -> &'static str {
        match self {
            Self::ExpectedAgreement => "expected agreement",
            Self::CrossEntropy { .. } => "cross entropy",
            Self::KlDivergence => "KL divergence",
            Self::JensenShannon => "Jensen-Shannon divergence",
            Self::TotalVariation => "total variation",
            Self::Brier => "Brier score of soft labels",
        }
    }

    fn of(self, p: &[f64], q: &[f64]) -> Result<f64, Error> {
        let sum_of =
            |term: &dyn Fn(f64, f64) -> f64| sum(&p.iter().zip(q).map(|(&p, &q)| term(p, q)).collect::<Vec<f64>>());
        match self {
            Self::ExpectedAgreement => Ok(dot(p, q).min(1.0)),
            Self::CrossEntropy { clip } => {
                let entropy = sum_of(&|p, q| surprise(p, q.clamp(clip, 1.0 - clip)));
                if entropy.is_finite() {
                    Ok(entropy)
                } else {
                    let reason = "the judge gave a label of people's probability 0 and clip is 0";
                    Err(Error::Undefined { statistic: self.name(), reason })
                }
            }
            Self::KlDivergence => kl_divergence(p, q),
            Self::JensenShannon => jensen_shannon_divergence(p, q),
            Self::TotalVariation => total_variation(p, q),
            Self::Brier => Ok(sum_of(&|p, q| (q - p).powi(2))),
        }
    }
}

/// Rows of so many labels, each divided by its sum.
fn distributions<R: AsRef<[f64]>>(argument: &'static str, rows: &[R], n_labels: usize) -> Result<Vec<Vec<f64>>, Error> {
    let checked = |(row, given): (usize, &R)| {
        let given = given.as_ref();
        check_lengths(argument, given.len(), "people[0]", n_labels)
            .and_then(|()| check_distribution(argument, given))
            .map_err(Error::in_row(row))?;
        Ok(normalized(given))
    };
    rows.iter().enumerate().map(checked).collect()
}

/// −p ln q, and 0 where p is, whatever q.
fn surprise(p: f64, q: f64) -> f64 {
    if p == 0.0 { 0.0 } else { -p * q.ln() }
}
