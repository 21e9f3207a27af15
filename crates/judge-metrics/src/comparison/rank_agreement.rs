use super::Statistic;
use crate::Error;
use crate::correlation::{pearson, spearman};
use crate::resampling::{Bootstrap, RankedPair};

/// How well scores agree with people in order and in proportion. Written [briefly](super::Statistic) with the feature `serde`.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RankAgreement {
    /// Spearman's rank correlation.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::brief"))]
    pub spearman: Statistic,
    /// Pearson's correlation.
    #[cfg_attr(feature = "serde", serde(serialize_with = "super::brief"))]
    pub pearson: Statistic,
}

/// Both correlations of `scores` with `human`, finite numbers, with bootstrap intervals over the same resamples of rows.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::NonFinite`] and bad settings of the bootstrap. What the data do not define, too few rows among
/// it, is [`Statistic::Undefined`].
///
/// ```
/// use judge_metrics::{comparison::rank_agreement, resampling::Bootstrap};
///
/// let human = [1.0, 3.0, 2.0, 5.0, 4.0, 2.0, 3.0];
/// let found = rank_agreement(&[1.2, 3.4, 2.2, 4.6, 4.1, 2.0, 2.5], &human, &Bootstrap::default())?;
/// assert!(found.spearman.estimate() > Some(0.9) && found.pearson.interval().is_some());
/// let constant = rank_agreement(&[3.0; 7], &human, &Bootstrap::default())?;
/// assert!(constant.spearman.to_string().starts_with("undefined"));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn rank_agreement(scores: &[f64], human: &[f64], bootstrap: &Bootstrap) -> Result<RankAgreement, Error> {
    let ranked = RankedPair::new(scores, human);
    let of_ranks = ranked.and_then(|pair| bootstrap.interval(pair.len(), |rows| pair.spearman(rows)));
    let drawn = bootstrap.paired(scores, human, |x, y| Ok(pearson(x, y)?.estimate));
    Ok(RankAgreement {
        spearman: Statistic::of(of_ranks, || Ok(spearman(scores, human)?.estimate))?,
        pearson: Statistic::of(drawn, || Ok(pearson(scores, human)?.estimate))?,
    })
}
