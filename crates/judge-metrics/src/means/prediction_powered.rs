mod clustered;
mod sampled;
mod stratified;

pub(super) use clustered::{Rows, clustered_parts};
pub use stratified::{StratifiedPoweredMean, Stratum, StratumWeights};

use super::parts::{Part, sum_of_parts};
use super::sample::{EQUAL_ITEMS, mean_of};
use crate::input::{check_count, check_finite, check_lengths, check_varies, in_range};
use crate::sum::{dot, sum};
use crate::{Error, Estimate};

/// How much weight the judge's scores get.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Tuning {
    /// The λ in [0, 1] that makes the standard error least, estimated from the data (PPI++); of strata, one for each.
    #[default]
    Optimal,
    /// The same, but one λ for all strata: steadier where strata have few labels. Without strata it is [`Optimal`](Self::Optimal).
    OptimalCommon,
    /// A λ of your own, any finite number: 0 ignores the judge, 1 is prediction-powered inference without tuning.
    Fixed(f64),
}

/// Prediction-powered estimate of the mean human score: few items labelled by people, many scored by a judge.
///
/// λ · mean(judge on all the unlabelled) + mean(human − λ · judge on the labelled): the judge's mean, corrected by how
/// far the judge is off where people looked (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, Science 2023; λ after
/// Angelopoulos, Duchi and Zrnic, PPI++, 2023). Unbiased for fixed λ however wrong the judge is.
///
/// Estimate and λ of [`estimate`](Self::estimate) are those of `ppi_py.ppi_mean_pointestimate` with `lam=None` or `lam=λ`. The interval is
/// not `ppi_py`'s, which is normal with deviations by n and too narrow in small samples (88 % instead of 95 % with 10 labels): it is
/// Welch's for the two means, with deviations by n − 1 and Student's quantiles (`scipy.stats.ttest_ind(equal_var=False)` at the same λ). Of
/// normal scores of correlation 0.8 a nominal 95 % came out as 94 % with 20 labels and 95 % with 50, 100 and 1,000 (the bench
/// `coverage`).
///
/// The labelled items must be a random draw from the same population as the unlabelled ones, and the judge must not
/// have learnt from them. Items are taken as independent, but for [`clustered`](Self::clustered) ones; the labels may be a larger share of
/// some kinds of items than of others with [`stratified`](Self::stratified), or drawn with probabilities that are known, with
/// [`sampled`](Self::sampled).
///
/// ```
/// use judge_metrics::means::PredictionPoweredMean;
///
/// let human = [3.0, 4.0, 2.0, 5.0, 4.0, 3.0, 1.0, 4.0];
/// let judge = [3.4, 4.1, 2.9, 4.8, 4.4, 3.1, 2.0, 4.2];
/// let unlabelled: Vec<f64> = (0..200).map(|i| 2.5 + f64::from(i * 7 % 20) / 10.0).collect();
/// let powered = PredictionPoweredMean::default().estimate(&human, &judge, &unlabelled)?;
/// assert!(powered.mean.standard_error()? < powered.classical.standard_error()?);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PredictionPoweredMean {
    /// How λ is chosen.
    pub tuning: Tuning,
}

/// A mean estimated with a judge's help, beside the same mean without.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PoweredMean {
    /// The prediction-powered mean, in the unit of the labels; `n` counts labelled and unlabelled items. The p-value tests
    /// a mean of 0. Without interval where no variance is left.
    pub mean: Estimate,
    /// Weight of the judge's scores.
    pub lambda: f64,
    /// The mean of the labels alone.
    pub classical: Estimate,
    /// How many labels would give the mean of labels alone this standard error: the number of labels times the ratio of the
    /// two variances. `None` where no variance is left to compare.
    pub effective_sample_size: Option<f64>,
}

impl PredictionPoweredMean {
    /// Estimates the mean of independent items.
    ///
    /// `labels`, `predictions`: n ≥ 2 items scored by people and by the judge; `unlabelled`: the judge's scores of N ≥ 2 other
    /// items. Finite numbers.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`];
    /// [`Error::Constant`] where the judge gives one score to all items and λ is to be estimated; [`Error::Undefined`]
    /// on overflow.
    pub fn estimate(&self, labels: &[f64], predictions: &[f64], unlabelled: &[f64]) -> Result<PoweredMean, Error> {
        check_columns(labels, predictions, unlabelled)?;
        let lambda = match self.tuning {
            Tuning::Fixed(lambda) => checked(lambda)?,
            Tuning::Optimal | Tuning::OptimalCommon => {
                check_varies("predictions", &[predictions, unlabelled].concat())?;
                Comoments::of(labels, predictions, unlabelled).lambda()?
            }
        };
        let parts = powered_parts(STATISTIC, labels, predictions, unlabelled, lambda)?;
        let value = parts.iter().map(|part| part.mean).sum();
        let mean = sum_of_parts(STATISTIC, value, &parts, labels.len() + unlabelled.len())?;
        let classical = mean_of(STATISTIC, labels)?.tested_against_zero(EQUAL_ITEMS);
        let effective_sample_size = effective_sample_size(labels.len(), &mean, &classical)?;
        Ok(PoweredMean { mean, lambda, classical, effective_sample_size })
    }

    /// Estimates the mean difference of two systems on the same items, second − first: few items on which people scored the outputs of
    /// both, many on which the judge did.
    ///
    /// Each argument has the first system's column and the second's, item by item. It is [`estimate`](Self::estimate) of the differences
    /// within items, so a bias of the judge that both systems share cancels, and λ is that of differences. For items in clusters give the
    /// differences to [`clustered`](Self::clustered). `classical` is the mean difference of the labels alone.
    ///
    /// # Errors
    ///
    /// Those of [`estimate`](Self::estimate); [`Error::Constant`] also where the judge sees one difference everywhere.
    ///
    /// ```
    /// use judge_metrics::means::PredictionPoweredMean;
    ///
    /// // The first system, then the second.
    /// let human: [&[f64]; 2] = [&[3.0, 4.0, 2.0, 5.0, 4.0, 3.0], &[4.0, 4.0, 4.0, 5.0, 5.0, 3.0]];
    /// let judge: [&[f64]; 2] = [&[3.4, 4.1, 2.9, 4.8, 4.4, 3.1], &[4.5, 4.3, 4.6, 4.9, 5.0, 3.3]];
    /// let first: Vec<f64> = (0..100).map(|i| 2.5 + f64::from(i * 7 % 20) / 10.0).collect();
    /// let second: Vec<f64> = first.iter().zip(0..).map(|(score, i)| score + f64::from(i % 5) / 4.0).collect();
    /// let powered = PredictionPoweredMean::default().difference(human, judge, [&first, &second])?;
    /// assert!(powered.mean.estimate > 0.0 && powered.mean.standard_error()? < powered.classical.standard_error()?);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn difference(
        &self,
        labels: [&[f64]; 2],
        predictions: [&[f64]; 2],
        unlabelled: [&[f64]; 2],
    ) -> Result<PoweredMean, Error> {
        let labels = differences("labels", labels)?;
        let predictions = differences("predictions", predictions)?;
        self.estimate(&labels, &predictions, &differences("unlabelled", unlabelled)?)
    }
}

const STATISTIC: &str = "prediction-powered mean";

/// second − first; errors call both columns by the name of their pair.
fn differences(argument: &'static str, [first, second]: [&[f64]; 2]) -> Result<Vec<f64>, Error> {
    check_lengths(argument, second.len(), "the first system's", first.len())?;
    check_finite(argument, first)?;
    check_finite(argument, second)?;
    first.iter().zip(second).map(|(first, second)| in_range(STATISTIC, second - first)).collect()
}

pub(super) fn check_columns(labels: &[f64], predictions: &[f64], unlabelled: &[f64]) -> Result<(), Error> {
    check_lengths("predictions", predictions.len(), "labels", labels.len())?;
    for items in [labels, unlabelled] {
        check_count(2, items.len())?;
    }
    check_finite("labels", labels)?;
    check_finite("predictions", predictions)?;
    check_finite("unlabelled", unlabelled)
}

/// The same with the numbers of groups that are named, one for each item of both kinds.
pub(super) fn check_clustered(
    labels: &[f64],
    predictions: &[f64],
    unlabelled: &[f64],
    [groups, unlabelled_groups]: [usize; 2],
) -> Result<(), Error> {
    check_columns(labels, predictions, unlabelled)?;
    check_lengths("groups", groups, "labels", labels.len())?;
    check_lengths("unlabelled_groups", unlabelled_groups, "unlabelled", unlabelled.len())
}

fn checked(lambda: f64) -> Result<f64, Error> {
    check_finite("lambda", &[lambda]).map(|()| lambda)
}

fn rectified(labels: &[f64], predictions: &[f64], lambda: f64) -> Vec<f64> {
    labels.iter().zip(predictions).map(|(label, score)| label - lambda * score).collect()
}

/// The judge's mean and the mean residual.
pub(super) fn powered_parts(
    statistic: &'static str,
    labels: &[f64],
    predictions: &[f64],
    unlabelled: &[f64],
    lambda: f64,
) -> Result<[Part; 2], Error> {
    let imputed: Vec<f64> = unlabelled.iter().map(|score| lambda * score).collect();
    Ok([Part::of(statistic, &imputed)?, Part::of(statistic, &rectified(labels, predictions, lambda))?])
}

pub(super) fn effective_sample_size(
    n_labels: usize,
    mean: &Estimate,
    classical: &Estimate,
) -> Result<Option<f64>, Error> {
    let ratio = classical.standard_error()? / mean.standard_error()?;
    Ok(Some(n_labels as f64 * ratio * ratio).filter(|size| size.is_finite()))
}

/// What the best λ is made of.
struct Comoments {
    /// Covariance of the mean label with the mean prediction.
    covariance: f64,
    /// Variance of the difference of the labelled and the unlabelled items' mean predictions.
    variance: f64,
}

impl Comoments {
    /// The covariance by n, the variance that of all predictions together by n + N − 1, as `ppi_py`.
    fn of(labels: &[f64], predictions: &[f64], unlabelled: &[f64]) -> Self {
        let n = labels.len() as f64;
        let covariance = dot(&centred(labels), &centred(predictions)) / n;
        let deviations = centred(&[predictions, unlabelled].concat());
        let variance = dot(&deviations, &deviations) / (deviations.len() - 1) as f64;
        Self { covariance: covariance / n, variance: (1.0 + n / unlabelled.len() as f64) * variance / n }
    }

    /// Their ratio, held within [0, 1].
    fn lambda(&self) -> Result<f64, Error> {
        Ok(in_range(STATISTIC, self.covariance / self.variance)?.clamp(0.0, 1.0))
    }
}

fn centred(values: &[f64]) -> Vec<f64> {
    let mean = sum(values) / values.len() as f64;
    values.iter().map(|value| value - mean).collect()
}
