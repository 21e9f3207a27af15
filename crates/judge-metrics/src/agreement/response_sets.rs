use std::fmt::Display;

use crate::aggregation::MajorityVote;
use crate::agreement::labels::{check_labels, place};
use crate::input::check_lengths;
use crate::means::mean_of;
use crate::prediction::distributions::check_probabilities;
use crate::{Error, Estimate, Proportion};

/// The labels that people accept for each item, one or several: agreement where more than one answer may be right (response sets; Guerdan et al., 2025, arXiv 2503.05965).
///
/// A majority's label alone counts a judge as wrong that gives what many people would have given. Sets come as they are, or from shares of people by a threshold. An item
/// may have no acceptable label, if the threshold is above one half and people disagree: no judge could be right there, so such items are left out and counted.
///
/// ```
/// use judge_metrics::agreement::ResponseSets;
///
/// let ratings = [["yes", "yes", "no"], ["no", "no", "no"], ["yes", "maybe", "no"]].map(|row| row.map(Some));
/// let labels = || vec!["yes", "maybe", "no"];
/// let sets = ResponseSets::of_ratings(labels(), &ratings, 0.3)?;
/// let found = sets.agreement(&["no", "no", "maybe"])?;
/// assert_eq!((found.agreed.count, found.agreed.n, found.without_answer), (3, 3, 0));
/// let strict = ResponseSets::of_ratings(labels(), &ratings, 0.6)?.agreement(&["no", "no", "maybe"])?;
/// assert_eq!((strict.agreed.count, strict.agreed.n, strict.without_answer), (1, 2, 1));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseSets<L> {
    labels: Vec<L>,
    /// Per item, whether each label is accepted.
    accepted: Vec<Vec<bool>>,
}

/// How often a judge's label is acceptable.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SetAgreement {
    /// Items whose label by the judge is in the set, of those with a set that is not empty. Its intervals, such as [Wilson's](Proportion::wilson), take items as independent.
    pub agreed: Proportion,
    /// The share to expect of a judge that gives its labels as often but at random: the mean over items of the judge's share of labels that the item accepts, in [0, 1]. It is high where sets are large.
    pub expected: f64,
    /// Items with an empty set, left out.
    pub without_answer: usize,
}

/// How far sets that a judge accepts are those that people accept; means over items with Student's intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SetOverlap {
    /// The share of people's labels that the judge accepts too, in [0, 1]; 1 for a judge that accepts everything.
    pub coverage: Estimate,
    /// Labels that both accept, over those that either does, in [0, 1] (Jaccard).
    pub jaccard: Estimate,
    /// Items on which both accept the same labels.
    pub same: Proportion,
    /// Items for which people accept nothing, left out.
    pub without_answer: usize,
}

impl<L: PartialEq + Display> ResponseSets<L> {
    /// Sets as they are given, one to an item, in any order and with repetitions; an empty one accepts nothing. Labels are pinned by the caller.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for no item or fewer than two labels, [`Error::DuplicateLabel`]; [`Error::InRow`] around [`Error::UnknownLabel`].
    pub fn new<S: AsRef<[L]>>(labels: Vec<L>, sets: &[S]) -> Result<Self, Error> {
        check_labels(&labels)?;
        let of_item = |(row, set): (usize, &S)| {
            let mut accepted = vec![false; labels.len()];
            for (index, label) in set.as_ref().iter().enumerate() {
                accepted[place(&labels, "sets", index, label).map_err(Error::in_row(row))?] = true;
            }
            Ok(accepted)
        };
        let accepted = sets.iter().enumerate().map(of_item).collect::<Result<_, Error>>()?;
        Self::checked(labels, accepted)
    }

    /// The labels that at least `threshold` of people accept, in (0, 1]. `shares` has one row to an item and one number in [0, 1] to a label; of people who may accept several, they need not sum to 1. A share that is
    /// below the threshold by rounding alone reaches it.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`Error::OutOfRange`] for the threshold; [`Error::InRow`] around [`Error::LengthMismatch`], [`Error::NonFinite`] and [`Error::OutOfRange`].
    pub fn of_shares<S: AsRef<[f64]>>(labels: Vec<L>, shares: &[S], threshold: f64) -> Result<Self, Error> {
        check_labels(&labels)?;
        if !(threshold > 0.0 && threshold <= 1.0) {
            let (low, high) = (f64::MIN_POSITIVE, 1.0);
            return Err(Error::OutOfRange { argument: "threshold", index: None, value: threshold, low, high });
        }
        let of_item = |(row, shares): (usize, &S)| {
            let shares = shares.as_ref();
            let checked = check_lengths("shares", shares.len(), "labels", labels.len())
                .and_then(|()| check_probabilities("shares", shares));
            checked.map_err(Error::in_row(row))?;
            Ok(shares.iter().map(|&share| share > 0.0 && share >= threshold - 1e-12).collect())
        };
        let accepted = shares.iter().enumerate().map(of_item).collect::<Result<_, Error>>()?;
        Self::checked(labels, accepted)
    }

    /// The labels that at least `threshold` of an item's raters gave, each of whom gave one: rows are items, entries raters, `None` where a rater gave none. Raters who were made to choose one label say less of what
    /// they accept than raters who name all.
    ///
    /// # Errors
    ///
    /// Those of [`MajorityVote::new`] and [`of_shares`](Self::of_shares).
    pub fn of_ratings<R: AsRef<[Option<L>]>>(labels: Vec<L>, ratings: &[R], threshold: f64) -> Result<Self, Error> {
        let shares = MajorityVote::new(&labels, ratings)?.shares;
        Self::of_shares(labels, &shares, threshold)
    }

    /// The labels that at least `threshold` of an item's raters accept, each of whom named all that they accept, none or several: rows are items, entries raters, `None` where a rater was not asked. This is how the
    /// authors of response sets would have people asked.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] where items have different numbers of entries; [`Error::InRow`] around [`Error::UnknownLabel`], whose index is the rater's, and around [`Error::TooFewItems`] for an item that nobody was asked about; those of
    /// [`of_shares`](Self::of_shares).
    pub fn of_rater_sets<S: AsRef<[L]>, R: AsRef<[Option<S>]>>(
        labels: Vec<L>,
        ratings: &[R],
        threshold: f64,
    ) -> Result<Self, Error> {
        check_labels(&labels)?;
        let n_raters = ratings.first().map_or(0, |row| row.as_ref().len());
        let mut shares = Vec::with_capacity(ratings.len());
        for (item, row) in ratings.iter().enumerate() {
            check_lengths("ratings", row.as_ref().len(), "ratings[0]", n_raters)?;
            let (mut counts, mut n) = (vec![0_u64; labels.len()], 0_u64);
            for (rater, set) in row.as_ref().iter().enumerate() {
                let Some(set) = set else { continue };
                let mut named = vec![false; labels.len()];
                for label in set.as_ref() {
                    named[place(&labels, "ratings", rater, label).map_err(Error::in_row(item))?] = true;
                }
                counts.iter_mut().zip(named).for_each(|(count, named)| *count += u64::from(named));
                n += 1;
            }
            if n == 0 {
                return Err(Error::in_row(item)(Error::TooFewItems { required: 1, found: 0 }));
            }
            shares.push(counts.into_iter().map(|count| count as f64 / n as f64).collect::<Vec<f64>>());
        }
        Self::of_shares(labels, &shares, threshold)
    }

    fn checked(labels: Vec<L>, accepted: Vec<Vec<bool>>) -> Result<Self, Error> {
        if accepted.is_empty() {
            Err(Error::TooFewItems { required: 1, found: 0 })
        } else {
            Ok(Self { labels, accepted })
        }
    }

    /// The labels, in the order given.
    pub fn labels(&self) -> &[L] {
        &self.labels
    }

    /// Whether each label is accepted, in their order; one row to an item.
    pub fn accepted(&self) -> &[Vec<bool>] {
        &self.accepted
    }

    /// How often the judge's label, one to an item, is acceptable.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::UnknownLabel`]; [`Error::Undefined`] where no item has an acceptable label.
    pub fn agreement(&self, judge: &[L]) -> Result<SetAgreement, Error> {
        check_lengths("judge", judge.len(), "the sets", self.accepted.len())?;
        let (mut agreed, mut without_answer) = (Proportion::default(), 0);
        let (mut given, mut accepting) = (vec![0_u64; self.labels.len()], vec![0_u64; self.labels.len()]);
        for (item, (label, accepted)) in judge.iter().zip(&self.accepted).enumerate() {
            let label = place(&self.labels, "judge", item, label)?;
            if !accepted.contains(&true) {
                without_answer += 1;
                continue;
            }
            agreed.add(accepted[label]);
            given[label] += 1;
            accepting.iter_mut().zip(accepted).for_each(|(count, &accepts)| *count += u64::from(accepts));
        }
        if agreed.n == 0 {
            return Err(no_answer("agreement with response sets"));
        }
        let n = agreed.n as f64;
        let expected = given.iter().zip(&accepting).map(|(&a, &b)| a as f64 / n * (b as f64 / n)).sum();
        Ok(SetAgreement { agreed, expected, without_answer })
    }

    /// How far the sets that a judge accepts, `judge`, are these.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] where labels or items differ in number, [`Error::UnknownLabel`] where labels differ or their order does; [`Error::Undefined`] where people accept nothing at all.
    pub fn overlap(&self, judge: &Self) -> Result<SetOverlap, Error> {
        check_lengths("judge's labels", judge.labels.len(), "labels", self.labels.len())?;
        if let Some(index) = (0..self.labels.len()).find(|&index| self.labels[index] != judge.labels[index]) {
            let (found, known) = (judge.labels[index].to_string(), self.labels[index].to_string());
            return Err(Error::UnknownLabel { argument: "judge's labels", index, found, known });
        }
        check_lengths("judge", judge.accepted.len(), "the sets", self.accepted.len())?;
        let (mut coverage, mut jaccard, mut same) = (Vec::new(), Vec::new(), Proportion::default());
        for (people, judge) in self.accepted.iter().zip(&judge.accepted).filter(|(people, _)| people.contains(&true)) {
            let count =
                |of: fn(bool, bool) -> bool| people.iter().zip(judge).filter(|(p, j)| of(**p, **j)).count() as f64;
            let both = count(|p, j| p && j);
            coverage.push(both / count(|p, _| p));
            jaccard.push(both / count(|p, j| p || j));
            same.add(people == judge);
        }
        if same.n == 0 {
            return Err(no_answer("overlap of response sets"));
        }
        Ok(SetOverlap {
            coverage: mean_of("coverage", &coverage)?,
            jaccard: mean_of("Jaccard index", &jaccard)?,
            same,
            without_answer: self.accepted.len() - same.n,
        })
    }
}

impl SetAgreement {
    /// Agreement beyond what is expected of the same labels at random, (agreed − expected) / (1 − expected), at most 1. Where each set has one label it is Cohen's kappa.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where all labels that the judge gives are always acceptable.
    pub fn beyond_chance(&self) -> Result<f64, Error> {
        let agreed = self.agreed.estimate()?;
        if self.expected >= 1.0 - 1e-12 {
            let reason = "every label that the judge gives is acceptable on every item";
            return Err(Error::Undefined { statistic: "agreement beyond chance", reason });
        }
        Ok((agreed - self.expected) / (1.0 - self.expected))
    }
}

fn no_answer(statistic: &'static str) -> Error {
    Error::Undefined { statistic, reason: "people accept no label of any item" }
}
