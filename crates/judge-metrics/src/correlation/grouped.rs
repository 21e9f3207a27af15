use crate::groups::clusters;
use crate::input::{check_lengths, check_paired};
use crate::means::sample_mean;
use crate::{Error, Estimate};

/// The mean over groups of a correlation within each.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GroupedCorrelation {
    /// The mean over the groups in which the correlation is defined, whose number is `n`, with Student's interval over groups, cut off at
    /// -1 and 1.
    pub mean: Estimate,
    /// Groups in which it is not, such as those with one item or with one score throughout.
    pub undefined: usize,
}

/// A correlation within groups, averaged over them: of several systems' answers within each item, or of several items within each system.
///
/// In the terms of WMT's metrics task, with one number for each item and system, `groups` that name the item give the segment-level
/// correlation "group by item", and those that name the system "group by system"; both leave out groups in which the correlation is
/// undefined (Deutsch, Foster and Freitag, 2023, section 2). Differences between groups, such as items that are easy for all, then count
/// for nothing, where a correlation of all rows mixes them in. Groups weigh alike and are taken as independent.
///
/// `human`, `scores`: finite numbers, one a row. `correlation` is called with the rows of one group, people first.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::NonFinite`]; [`Error::Undefined`] where no group has a correlation; what `correlation` returns
/// besides [undefined](Error::is_undefined) and [`Error::TooFewItems`].
///
/// ```
/// use judge_metrics::correlation::{grouped_correlation, pearson};
///
/// // Two items, three systems: the judge orders the systems of either item as people do, but scores the harder item higher.
/// let human = [4.0, 3.0, 5.0, 2.0, 1.0, 3.0];
/// let judge = [2.0, 1.0, 3.0, 4.0, 3.0, 5.0];
/// let item = ["a", "a", "a", "b", "b", "b"];
/// let within = grouped_correlation(&human, &judge, &item, pearson)?;
/// assert!((within.mean.estimate - 1.0).abs() < 1e-12);
/// assert!(pearson(&human, &judge)?.estimate < 0.0);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn grouped_correlation<G: Ord>(
    human: &[f64],
    scores: &[f64],
    groups: &[G],
    correlation: impl Fn(&[f64], &[f64]) -> Result<Estimate, Error>,
) -> Result<GroupedCorrelation, Error> {
    check_paired(human, scores, 1)?;
    check_lengths("groups", groups.len(), "human", human.len())?;
    let (mut found, mut undefined) = (Vec::new(), 0);
    for rows in clusters(groups) {
        let (human, scores): (Vec<f64>, Vec<f64>) = rows.iter().map(|&row| (human[row], scores[row])).unzip();
        match correlation(&human, &scores) {
            Ok(estimate) => found.push(estimate.estimate),
            Err(error) if error.is_undefined() || matches!(error, Error::TooFewItems { .. }) => undefined += 1,
            Err(error) => return Err(error),
        }
    }
    if found.is_empty() {
        return Err(Error::Undefined {
            statistic: "the grouped correlation",
            reason: "it is undefined in every group",
        });
    }
    Ok(GroupedCorrelation { mean: sample_mean(&found)?.within([-1.0, 1.0]), undefined })
}
