//! Which of two items is better: the verdict of a pairwise judge, how often it agrees with people, and what the order
//! of presentation does to it.
//!
//! A judge that is shown two answers says which is better, says that they are equal, or says something no parser
//! understands. The first two are a [`Preference`], always about the *items*; a verdict on an exchanged presentation is
//! mapped back with [`Preference::swapped`]. The third is `None`, and what becomes of it is the caller's choice of an
//! [`Unparsed`] policy, because benchmarks differ and each choice changes the headline. Results carry counts, so that
//! the choice can be seen.
//!
//! | question | here |
//! |---|---|
//! | one order or both, compared with gold labels: accuracy, Auto-J's strict agreement and consistency, LLMBar's average | [`PairComparison`](crate::comparison::PairComparison) |
//! | probabilities instead of verdicts, averaged over both orders | [`PairReading`] |
//! | one order alone: what its place adds, learned from pairs without gold labels | [`place_offset`] |
//! | votes of several people on several pairs of models, MT-bench's way | [`judge_human_agreement`], [`annotator_agreement`] |
//!
//! A pairwise judge's verdicts arrive as [`Ordering`]s of the two answers, or as the probability that
//! the first is better. Both convert, with no letters to decode and no type of the judge's crate:
//!
//! ```
//! use std::cmp::Ordering::{self, Equal, Greater, Less};
//! use judge_metrics::bias::position::order_effect;
//! use judge_metrics::preference::{Preference, Ties, TwoOrder, Unparsed, Vote, judge_human_agreement};
//!
//! // Per pair both orders, each about the answers as they were given: `Greater` says that the first one is better.
//! let orders: [[Option<Ordering>; 2]; 3] = [[Some(Greater), Some(Greater)], [Some(Less), Some(Greater)], [None, Some(Equal)]];
//! let effect = order_effect(&orders.map(TwoOrder::from), Unparsed::Wrong)?;
//! assert_eq!((effect.consistent, effect.n), (1, 3));
//!
//! // The same as votes.
//! let vote = |annotator, verdict: Ordering| Vote {
//!     question: "q1", models: ["a", "b"], turn: 1, annotator, preference: verdict.into(),
//! };
//! let agreement = judge_human_agreement(&[vote("judge", Greater)], &[vote("ann", Greater)], Ties::Counted)?;
//! assert_eq!(agreement.total().count, 1);
//!
//! // The probability that the first answer is better, as a verdict.
//! assert_eq!(Preference::from_probability(0.55, 0.1)?, Preference::Tie);
//! # Ok::<(), judge_metrics::Error>(())
//! ```
//!
//! The direction of an order effect is a bias of the judge: see [`bias`](crate::bias).

mod place;
mod reading;
mod two_order;
mod votes;

pub use place::{place_offset, place_pull};
pub(crate) use reading::sign;
pub use reading::{PairReading, mean_log_odds};
pub use two_order::TwoOrder;
pub use votes::{QuestionAgreement, Ties, Vote, VoteAgreement, annotator_agreement, judge_human_agreement};

use std::cmp::Ordering;
use std::fmt;

use crate::Error;
use crate::input::{check_count, check_finite, check_lengths, check_range};
use crate::means::largest;

/// A verdict on a pair of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Preference {
    /// The first item of the pair is better.
    First,
    /// The second item is better.
    Second,
    /// Neither is.
    Tie,
}

impl Preference {
    /// The verdict on the same two items named in the other order: what maps a verdict on an exchanged presentation
    /// back.
    pub const fn swapped(self) -> Self {
        match self {
            Self::First => Self::Second,
            Self::Second => Self::First,
            Self::Tie => Self::Tie,
        }
    }

    /// The verdict of two absolute scores: a tie unless they differ by more than `margin` (JudgeLM 0, MT-bench's single
    /// grades 0.1). What rounding alone adds to a margin above 0 does not count: with 0.1, 3.1 and 3.0 are a tie, as 7.1 and 7.0 are.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`] for a score, [`Error::OutOfRange`] for a `margin` that is negative or not finite.
    pub fn from_scores(scores: [f64; 2], margin: f64) -> Result<Self, Error> {
        check_finite("scores", &scores)?;
        check_range("margin", None, margin, [0.0, f64::MAX])?;
        let [first, second] = scores;
        let rounding = if margin > 0.0 { 4.0 * f64::EPSILON * largest(&scores) } else { 0.0 };
        Ok(if (first - second).abs() - margin <= rounding {
            Self::Tie
        } else if first > second {
            Self::First
        } else {
            Self::Second
        })
    }

    /// The verdict that a probability of the first item amounts to: a tie unless it is more than `margin` from ½.
    ///
    /// `p` counts half of a tie's probability. It is in [0, 1], `margin` in [0, ½]: with 0 a tie is p = ½ exactly.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`] and [`Error::OutOfRange`].
    pub fn from_probability(p: f64, margin: f64) -> Result<Self, Error> {
        for (argument, value, high) in [("p", p, 1.0), ("margin", margin, 0.5)] {
            check_finite(argument, &[value])?;
            check_range(argument, None, value, [0.0, high])?;
        }
        Self::from_scores([p, 0.5], margin)
    }

    /// The share of a win that goes to the first item: 1, 0, or ½ for a tie.
    pub const fn credit(self) -> f64 {
        match self {
            Self::First => 1.0,
            Self::Second => 0.0,
            Self::Tie => 0.5,
        }
    }

    /// Whether one of the items is better.
    pub const fn is_decisive(self) -> bool {
        !matches!(self, Self::Tie)
    }
}

/// `first`, `second`, `tie`: verdicts are labels wherever labels are asked for.
impl fmt::Display for Preference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::First => "first",
            Self::Second => "second",
            Self::Tie => "tie",
        })
    }
}

/// `Greater`: the first item is better. `Equal`: a tie.
impl From<Ordering> for Preference {
    fn from(verdict: Ordering) -> Self {
        match verdict {
            Ordering::Greater => Self::First,
            Ordering::Less => Self::Second,
            Ordering::Equal => Self::Tie,
        }
    }
}

/// How the first item compares with the second.
impl From<Preference> for Ordering {
    fn from(verdict: Preference) -> Self {
        match verdict {
            Preference::First => Self::Greater,
            Preference::Second => Self::Less,
            Preference::Tie => Self::Equal,
        }
    }
}

/// What becomes of a verdict that could not be parsed. There is no default: published numbers differ by this choice
/// alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unparsed {
    /// An [`Error::Unparsed`] that names the first one (Auto-J's scorer stops too).
    Refused,
    /// The pair is left out, in both orders (MT-bench).
    Dropped,
    /// It counts as a tie (PandaLM; JudgeLM's predictions).
    Tie,
    /// It is never right and agrees with nothing, not even with another unparsed verdict.
    Wrong,
    /// It is never right, but two unparsed verdicts agree with each other, as two nulls do in LLMBar.
    OwnLabel,
}

impl Unparsed {
    /// The verdicts on one item as they are to be counted, or `None` where the item is left out.
    pub(crate) fn settle<const K: usize>(
        self,
        verdicts: [Option<Preference>; K],
        argument: &'static str,
        index: usize,
    ) -> Result<Option<[Option<Preference>; K]>, Error> {
        if verdicts.iter().all(Option::is_some) {
            return Ok(Some(verdicts));
        }
        match self {
            Self::Refused => Err(Error::Unparsed { argument, index }),
            Self::Dropped => Ok(None),
            Self::Tie => Ok(Some(verdicts.map(|verdict| verdict.or(Some(Preference::Tie))))),
            Self::Wrong | Self::OwnLabel => Ok(Some(verdicts)),
        }
    }

    /// Visits the verdicts of `K` runs on each item that counts, settled, with its index; returns on how many items a verdict is unparsed,
    /// whatever becomes of them. Runs come with the names of their parameters.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`] for runs of different lengths, [`Error::TooFewItems`] for no item, [`Error::Unparsed`] under
    /// [`Unparsed::Refused`].
    pub(crate) fn settle_each<const K: usize>(
        self,
        runs: [(&'static str, &[Option<Preference>]); K],
        mut visit: impl FnMut(usize, [Option<Preference>; K]),
    ) -> Result<usize, Error> {
        let (first, verdicts) = runs[0];
        for (argument, others) in runs {
            check_lengths(argument, others.len(), first, verdicts.len())?;
        }
        check_count(1, verdicts.len())?;
        let mut unparsed = 0;
        for index in 0..verdicts.len() {
            let found = runs.map(|(_, verdicts)| verdicts[index]);
            let missing = found.iter().position(Option::is_none);
            unparsed += usize::from(missing.is_some());
            if let Some(settled) = self.settle(found, runs[missing.unwrap_or(0)].0, index)? {
                visit(index, settled);
            }
        }
        Ok(unparsed)
    }

    /// Whether two settled verdicts agree.
    pub(crate) fn agree(self, a: Option<Preference>, b: Option<Preference>) -> bool {
        a == b && (a.is_some() || self == Self::OwnLabel)
    }
}
