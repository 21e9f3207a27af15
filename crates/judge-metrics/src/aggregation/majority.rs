use std::fmt::Display;

use crate::Error;
use crate::agreement::PlacedRatings;

/// What most annotators say of each subject, every annotator counting alike.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MajorityVote {
    /// Per subject the share of its ratings that each label has, in the order of the labels: a distribution, which may serve as people's
    /// soft label.
    pub shares: Vec<Vec<f64>>,
    /// Per subject the place of the label that was given most often (the plurality, which need not be more than half); `None` where several
    /// were.
    pub winners: Vec<Option<usize>>,
}

impl MajorityVote {
    /// Counts ratings: one row to a subject, one entry to an annotator, `None` where an annotator gave none.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for fewer than two annotators or labels, [`Error::LengthMismatch`], [`Error::DuplicateLabel`];
    /// [`Error::InRow`] around [`Error::UnknownLabel`], and around [`Error::TooFewItems`] for a subject that nobody rated.
    ///
    /// ```
    /// use judge_metrics::aggregation::MajorityVote;
    ///
    /// let votes = MajorityVote::new(&["yes", "no"], &[[Some("yes"), Some("yes"), Some("no")], [Some("no"), None, Some("yes")]])?;
    /// assert_eq!(votes.winners, [Some(0), None]);
    /// assert_eq!(votes.shares[1], [0.5, 0.5]);
    /// # Ok::<(), judge_metrics::Error>(())
    /// ```
    pub fn new<L, R>(labels: &[L], ratings: &[R]) -> Result<Self, Error>
    where
        L: PartialEq + Display,
        R: AsRef<[Option<L>]>,
    {
        let placed = PlacedRatings::new(labels, ratings)?;
        placed.check_all_rated()?;
        let counts = placed.counts();
        let winner = |counts: &Vec<u64>| {
            let most = *counts.iter().max()?;
            let mut leaders = counts.iter().enumerate().filter(|(_, count)| **count == most);
            let (first, _) = leaders.next()?;
            leaders.next().is_none().then_some(first)
        };
        Ok(Self { winners: counts.iter().map(winner).collect(), shares: shares(&counts) })
    }
}

/// Counts of each subject, one or more, divided by their sum.
fn shares(counts: &[Vec<u64>]) -> Vec<Vec<f64>> {
    let of_subject = |counts: &Vec<u64>| {
        let total = counts.iter().sum::<u64>() as f64;
        counts.iter().map(|&count| count as f64 / total).collect()
    };
    counts.iter().map(of_subject).collect()
}
