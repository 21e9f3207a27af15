//! Votes of judges and of people on the same pairs, as MT-bench's tables compare them.

use super::{Reported, Statistic};
use crate::Error;
use crate::preference::{Ties, Vote, VoteAgreement, annotator_agreement, judge_human_agreement};
use crate::resampling::Bootstrap;

/// A vote, and the kind of judge that it counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgeVote<'a> {
    /// The kind, such as `human` for all experts, or the name of one judge.
    pub kind: &'a str,
    /// The vote.
    pub vote: Vote<'a>,
}

/// How often votes of two kinds of judges agree, for every two kinds: MT-bench's tables of agreement (Zheng et al., 2023, table 5;
/// FastChat's `compute_agreement`).
///
/// Every vote of one kind is compared with every vote of the other on the same question, two models and turn, and within a kind every two
/// votes of different annotators. See [`judge_human_agreement`] and [`annotator_agreement`].
///
/// ```
/// use judge_metrics::comparison::{JudgeVote, VoteComparison};
/// use judge_metrics::preference::{Preference::{self, First, Second, Tie}, Ties, Vote};
///
/// let vote = |kind, annotator, preference: Preference| {
///     JudgeVote { kind, vote: Vote { question: "81", models: ["a", "b"], turn: 1, annotator, preference } }
/// };
/// let votes = vec![vote("judge", "judge", First), vote("human", "ann", First), vote("human", "bo", Tie), vote("human", "cy", Second)];
/// let found = VoteComparison::new(votes).statistics(&["judge", "human"], Some(1))?;
/// let table: Vec<_> = found.iter().map(|known| (known.ties, known.kinds, known.n, known.statistic.estimate())).collect();
/// assert_eq!(table, [
///     (Ties::Counted, ["judge", "human"], 3, Some(1.0 / 3.0)),
///     (Ties::Counted, ["human", "human"], 3, Some(0.0)),
///     (Ties::Excluded, ["judge", "human"], 2, Some(0.5)),
///     (Ties::Excluded, ["human", "human"], 1, Some(0.0)),
/// ]);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct VoteComparison<'a> {
    /// All votes.
    pub votes: Vec<JudgeVote<'a>>,
    /// Draws whole questions: votes on one question are not independent, and a vote takes part in several comparisons.
    pub bootstrap: Bootstrap,
}

/// How often the votes of two kinds of judges agree.
#[derive(Debug, Clone, PartialEq)]
pub struct VoteStatistic<'a> {
    /// Whether ties take part: setup S1 ([`Ties::Counted`]) or S2 ([`Ties::Excluded`]).
    pub ties: Ties,
    /// The two kinds, or one kind twice for its annotators among themselves.
    pub kinds: [&'a str; 2],
    /// Comparisons of two votes.
    pub n: usize,
    /// The share of them that agree, from 0 to 1. Its interval draws questions; with one question there is none.
    pub statistic: Statistic,
}

impl<'a> VoteComparison<'a> {
    /// With 10,000 resamples, as [`Bootstrap::default`] has them.
    pub fn new(votes: Vec<JudgeVote<'a>>) -> Self {
        Self { votes, bootstrap: Bootstrap::default() }
    }

    /// The agreement of every two of `kinds` in both setups, on one turn, or on all where `turn` is `None`. In the order of `kinds`, first
    /// with ties. Two kinds of which no two votes can be compared even with ties are left out; where only ties can be compared, setup S2 is
    /// [`Statistic::Undefined`].
    ///
    /// # Errors
    ///
    /// [`Error::SelfComparison`] for a vote on a model and itself; those of a [`Bootstrap`] that cannot be drawn.
    pub fn statistics(&self, kinds: &[&'a str], turn: Option<u32>) -> Result<Vec<VoteStatistic<'a>>, Error> {
        let of = |kind: &str| -> Vec<Vote<'a>> {
            let votes = self.votes.iter().filter(|known| known.kind == kind).map(|known| known.vote);
            votes.filter(|vote| turn.is_none_or(|turn| vote.turn == turn)).collect()
        };
        let votes: Vec<Vec<Vote<'a>>> = kinds.iter().map(|kind| of(kind)).collect();
        let mut found = [Vec::new(), Vec::new()];
        for (i, first) in votes.iter().enumerate() {
            for (j, second) in votes.iter().enumerate().skip(i) {
                if first.is_empty() || second.is_empty() {
                    continue;
                }
                let agreement = |ties| {
                    if i == j { annotator_agreement(first, ties) } else { judge_human_agreement(first, second, ties) }
                };
                if agreement(Ties::Counted)?.total().n == 0 {
                    continue;
                }
                for (ties, found) in [Ties::Counted, Ties::Excluded].into_iter().zip(&mut found) {
                    let agreement = agreement(ties)?;
                    let statistic = self.statistic(&agreement)?;
                    let n = agreement.total().n;
                    found.push(VoteStatistic { ties, kinds: [kinds[i], kinds[j]], n, statistic });
                }
            }
        }
        Ok(found.concat())
    }

    fn statistic(&self, agreement: &VoteAgreement<'_>) -> Result<Statistic, Error> {
        let estimate = match agreement.total().estimate() {
            Ok(estimate) => estimate,
            Err(error) => return Ok(Statistic::Undefined { reason: error.to_string() }),
        };
        let drawn = agreement.interval(&self.bootstrap);
        Ok(Statistic::Defined(Reported::drawn(drawn, "bootstrap of questions", || Ok(estimate))?))
    }
}
