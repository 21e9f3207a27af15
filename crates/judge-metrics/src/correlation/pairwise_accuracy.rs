use crate::groups::rows_by_group;
use crate::input::{check_finite, check_lengths, check_paired, check_range};
use crate::means::mean_of;
use crate::{Error, Estimate};

/// Pairwise accuracy with ties calibrated, acc*eq (Deutsch, Foster and Freitag, 2023, arXiv 2305.14324): how often scores order two items
/// as people do, ties included.
///
/// Two scores count as tied if they differ by no more than a threshold, and a pair counts as right if both sides prefer the same item, or
/// both are tied. Items are compared with those of their own group, such as the answers to one question, and the accuracy is the mean over
/// the groups that have a pair. Kendall's tau and its relatives leave ties out, or take them from scores as they are: a judge that never
/// ties is then wrong about all pairs that people tie, and one that always does is right about them.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PairwiseAccuracy {
    /// The mean over the groups that have a pair, whose number is `n`; in [0, 1]. Its interval is Student's over groups, cut off at 0 and
    /// 1, and takes the threshold as given.
    pub accuracy: Estimate,
    /// The largest difference of two scores that counts as a tie, at least 0.
    pub threshold: f64,
    /// Pairs of items.
    pub n_pairs: usize,
}

const STATISTIC: &str = "pairwise accuracy";

/// A pair of items of a group.
struct Pair {
    group: usize,
    distance: f64,
    /// 1 if it becomes right as a tie, -1 if it becomes wrong, 0 if it stays what it is.
    gain: i8,
}

/// All pairs, and per group how many there are and how many are right where equal scores alone are ties.
struct Pairs {
    pairs: Vec<Pair>,
    groups: Vec<(u64, i64)>,
}

impl Pairs {
    fn new<G: Ord>(human: &[f64], scores: &[f64], groups: &[G]) -> Result<Self, Error> {
        check_paired(human, scores, 2)?;
        check_lengths("groups", groups.len(), "human", human.len())?;
        let mut found = Self { pairs: Vec::new(), groups: Vec::new() };
        for rows in rows_by_group(groups).values().filter(|rows| rows.len() > 1) {
            let (mut n, mut right) = (0, 0);
            for (place, &a) in rows.iter().enumerate() {
                for &b in &rows[..place] {
                    let by_people = human[a].total_cmp(&human[b]);
                    let is_tied = human[a] == human[b];
                    let is_right = if is_tied {
                        scores[a] == scores[b]
                    } else {
                        scores[a] != scores[b] && scores[a].total_cmp(&scores[b]) == by_people
                    };
                    let distance = (scores[a] - scores[b]).abs();
                    check_finite("scores", &[distance])?;
                    found.pairs.push(Pair {
                        group: found.groups.len(),
                        distance,
                        gain: i8::from(is_tied) - i8::from(is_right),
                    });
                    n += 1;
                    right += i64::from(is_right);
                }
            }
            found.groups.push((n, right));
        }
        if found.pairs.is_empty() {
            return Err(Error::Undefined { statistic: STATISTIC, reason: "no group has two items" });
        }
        Ok(found)
    }

    fn at(&self, right: &[i64], threshold: f64) -> Result<PairwiseAccuracy, Error> {
        let shares: Vec<f64> = self.groups.iter().zip(right).map(|((n, _), right)| *right as f64 / *n as f64).collect();
        let accuracy = mean_of(STATISTIC, &shares)?.within([0.0, 1.0]);
        Ok(PairwiseAccuracy { accuracy, threshold, n_pairs: self.pairs.len() })
    }
}

/// The accuracy at the threshold that makes it largest, the smallest of equal ones: 0 or a difference that occurs. `tau_optimization` of
/// google-research/mt-metrics-eval with `acc_23`.
///
/// `human`, `scores`: at least two finite numbers each, one an item; `groups` says which items are compared. Time and memory grow with the
/// pairs of a group, 24 bytes each. The threshold is fitted to these items, so the accuracy is a little too high for others: for a judge
/// that is to be used, fit it on some questions and take [`pairwise_accuracy_at`] on the rest.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`], also for scores whose difference overflows;
/// [`Error::Undefined`] where no group has two items.
///
/// ```
/// use judge_metrics::correlation::{pairwise_accuracy, pairwise_accuracy_at};
///
/// // People tie the first two answers to question 1; the judge hardly tells them apart.
/// let human = [4.0, 4.0, 2.0, 5.0, 3.0];
/// let judge = [3.61, 3.58, 2.20, 4.10, 3.90];
/// let question = [1, 1, 1, 2, 2];
/// let found = pairwise_accuracy(&human, &judge, &question)?;
/// assert!((found.threshold - 0.03).abs() < 1e-9);
/// assert_eq!((found.accuracy.estimate, found.accuracy.n, found.n_pairs), (1.0, 2, 4));
/// let without = pairwise_accuracy_at(&human, &judge, &question, 0.0)?;
/// assert!((without.accuracy.estimate - 5.0 / 6.0).abs() < 1e-12);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn pairwise_accuracy<G: Ord>(human: &[f64], scores: &[f64], groups: &[G]) -> Result<PairwiseAccuracy, Error> {
    let mut all = Pairs::new(human, scores, groups)?;
    all.pairs.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    let mut right: Vec<i64> = all.groups.iter().map(|(_, right)| *right).collect();
    // Of thresholds that are equal but for rounding the smallest is taken.
    let share = |group: usize| 1.0 / all.groups[group].0 as f64;
    let (mut best, mut gain) = ((0.0, 0.0, right.clone()), 0.0);
    for tied in all.pairs.chunk_by(|a, b| a.distance == b.distance) {
        for pair in tied {
            right[pair.group] += i64::from(pair.gain);
            gain += f64::from(pair.gain) * share(pair.group);
        }
        if gain > best.0 + 1e-9 {
            best = (gain, tied[0].distance, right.clone());
        }
    }
    all.at(&best.2, best.1)
}

/// The accuracy where scores that differ by no more than `threshold` are ties; see [`PairwiseAccuracy`].
///
/// # Errors
///
/// As [`pairwise_accuracy`]; [`Error::OutOfRange`] for a threshold that is negative or not finite.
pub fn pairwise_accuracy_at<G: Ord>(
    human: &[f64],
    scores: &[f64],
    groups: &[G],
    threshold: f64,
) -> Result<PairwiseAccuracy, Error> {
    check_range("threshold", None, threshold, [0.0, f64::MAX])?;
    let all = Pairs::new(human, scores, groups)?;
    let mut right: Vec<i64> = all.groups.iter().map(|(_, right)| *right).collect();
    for pair in all.pairs.iter().filter(|pair| pair.distance <= threshold) {
        right[pair.group] += i64::from(pair.gain);
    }
    all.at(&right, threshold)
}
