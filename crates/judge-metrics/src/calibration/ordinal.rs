use crate::Error;
use crate::calibration::conformal::conformal_quantile;
use crate::input::check_lengths;
use crate::prediction::distributions::{check_distribution, check_table};

/// Ordinal conformal sets: from a judge's distribution over an ordered scale, a run of neighbouring labels that
/// contains the human one.
///
/// The ordinal adaptive prediction sets of Lu, Angelopoulos and Pomerantz (MICCAI 2022): a set starts as the most
/// probable label and grows towards whichever neighbour is more probable until it holds enough mass; how much is
/// enough, the calibration items tell. A new item's label is in its set with probability at least `level`, under the
/// same condition as for [`SplitConformal`](crate::calibration::SplitConformal): items exchangeable, not clustered, not
/// used in fitting the judge.
///
/// ```
/// use judge_metrics::calibration::OrdinalConformal;
///
/// // The judge's distributions over grades 1 to 4, and where on that scale the human grade stands.
/// let judge = [[0.7, 0.2, 0.1, 0.0], [0.1, 0.5, 0.3, 0.1], [0.0, 0.1, 0.3, 0.6], [0.3, 0.4, 0.2, 0.1]];
/// let human = [0, 2, 3, 0];
/// let fitted = OrdinalConformal { level: 0.8 }.fit(&human, &judge)?;
/// let set = fitted.set(&[0.1, 0.2, 0.6, 0.1])?;
/// assert_eq!((set.low, set.high, set.size()), (2, 2, 1));
/// let unsure = fitted.set(&[0.1, 0.3, 0.35, 0.25])?;
/// assert_eq!((unsure.low, unsure.high), (1, 2));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OrdinalConformal {
    /// Coverage promised, 1 − α, in (0, 1).
    pub level: f64,
}

impl Default for OrdinalConformal {
    /// 95 %.
    fn default() -> Self {
        Self { level: 0.95 }
    }
}

impl OrdinalConformal {
    /// Calibrates on n items.
    ///
    /// `distributions`: per item the probabilities of all labels from lowest to highest; `observed`: index of the human label.
    /// The threshold is the ⌈(n + 1) · level⌉-th smallest of the masses that sets hold just before the human label
    /// joins.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] where n items bound nothing at this level, [`Error::LevelOutOfRange`],
    /// [`Error::LengthMismatch`], [`Error::UnknownLabel`]; [`Error::InRow`] around what is wrong with a row.
    pub fn fit<R: AsRef<[f64]>>(
        &self,
        observed: &[usize],
        distributions: &[R],
    ) -> Result<FittedOrdinalConformal, Error> {
        let labels = check_table(distributions, observed)?;
        let masses = distributions.iter().zip(observed).map(|(distribution, &label)| {
            let without = growth(distribution.as_ref()).take_while(|set| !set.contains(label));
            without.last().map_or(0.0, |set| set.probability)
        });
        let threshold = conformal_quantile(masses.collect(), self.level)?;
        Ok(FittedOrdinalConformal { threshold, labels, level: self.level, n: observed.len() })
    }
}

/// A calibrated threshold of probability mass.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct FittedOrdinalConformal {
    /// A label joins while the set holds at most this mass. 0 where the most probable label is right often enough.
    pub threshold: f64,
    /// Labels of the scale.
    pub labels: usize,
    /// Coverage promised.
    pub level: f64,
    /// Calibration items.
    pub n: usize,
}

impl FittedOrdinalConformal {
    /// The labels of a new item. Never empty: it holds the most probable label.
    ///
    /// Of equally probable labels the lower one comes first.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] where the distribution has another number of labels; those of a distribution.
    pub fn set(&self, distribution: &[f64]) -> Result<OrdinalSet, Error> {
        check_lengths("distribution", distribution.len(), "the scale", self.labels)?;
        check_distribution("distribution", distribution)?;
        let enough = growth(distribution).find(|set| set.probability > self.threshold);
        // Where even all the mass, which may round to less than 1, is not enough.
        let whole = OrdinalSet { low: 0, high: self.labels - 1, probability: distribution.iter().sum() };
        Ok(enough.unwrap_or(whole))
    }
}

/// A run of labels of an ordered scale, by their indices.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OrdinalSet {
    /// Lowest label.
    pub low: usize,
    /// Highest label, at least `low`.
    pub high: usize,
    /// What the judge's distribution gives to the set; not its coverage.
    pub probability: f64,
}

impl OrdinalSet {
    /// Number of labels, at least 1.
    pub fn size(&self) -> usize {
        self.high - self.low + 1
    }

    /// Whether a label is in the set.
    pub fn contains(&self, label: usize) -> bool {
        (self.low..=self.high).contains(&label)
    }
}

/// The sets from the most probable label alone to the whole scale, each one label larger than the one before.
pub(super) fn growth(p: &[f64]) -> impl Iterator<Item = OrdinalSet> {
    let mode = (0..p.len()).reduce(|best, label| if p[label] > p[best] { label } else { best });
    let first = mode.map(|mode| OrdinalSet { low: mode, high: mode, probability: p[mode] });
    std::iter::successors(first, |set| {
        let below = set.low.checked_sub(1);
        let above = Some(set.high + 1).filter(|&label| label < p.len());
        match (below, above) {
            (Some(below), above) if above.is_none_or(|above| p[below] >= p[above]) => {
                Some(OrdinalSet { low: below, probability: set.probability + p[below], ..*set })
            }
            (_, Some(above)) => Some(OrdinalSet { high: above, probability: set.probability + p[above], ..*set }),
            (_, None) => None,
        }
    })
}
