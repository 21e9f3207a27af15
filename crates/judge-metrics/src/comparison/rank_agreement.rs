use super::{ComparedItem, Comparison, ComparisonSettings, Rating, Statistic};
use crate::Error;
use crate::input::check_columns;
use crate::resampling::Bootstrap;

/// How well scores agree with people in order and in proportion.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct RankAgreement {
    /// Spearman's rank correlation.
    pub spearman: Statistic,
    /// Pearson's correlation.
    pub pearson: Statistic,
}

/// Both correlations of `scores` with `human`, finite numbers, as a [`Comparison`] of these rows has them.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::NonFinite`]; [`Error::TooFewItems`] for no row. What the data do not define is
/// [`Statistic::Undefined`].
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
    check_columns(("scores", scores), ("human", human), 1)?;
    let rows = scores.iter().zip(human).map(|(&score, &human)| [score, human].map(Rating::Number));
    let items = rows.map(|[predicted, human]| ComparedItem::new(predicted, [human])).collect();
    let only = Some(["spearman", "pearson"].map(str::to_owned).to_vec());
    let settings = ComparisonSettings { bootstrap: *bootstrap, only, ..ComparisonSettings::default() };
    let found = Comparison::new(items, settings)?.statistics(&(0..scores.len()).collect::<Vec<_>>());
    let of = |name| found.get(name).cloned().ok_or(Error::TooFewItems { required: 1, found: 0 });
    Ok(RankAgreement { spearman: of("spearman")?, pearson: of("pearson")? })
}
