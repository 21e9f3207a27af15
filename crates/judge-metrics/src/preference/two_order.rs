use std::cmp::Ordering;

use super::{Preference, Unparsed, check_any};
use crate::input::check_lengths;
use crate::{Error, Proportion};

/// The verdicts on one pair in both presentation orders, both about the items; `None` where the answer could not be
/// parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TwoOrder {
    /// From the order as given: the first item shown first.
    pub original: Option<Preference>,
    /// From the exchanged order, the second item shown first, mapped back to the items.
    pub swapped: Option<Preference>,
}

impl TwoOrder {
    /// Verdicts that are both about the items already.
    pub const fn new(original: Option<Preference>, swapped: Option<Preference>) -> Self {
        Self { original, swapped }
    }

    /// Verdicts as the judge gave them, `First` being the answer that was shown first: the second is mapped back.
    pub fn from_shown(shown: [Option<Preference>; 2]) -> Self {
        Self { original: shown[0], swapped: shown[1].map(Preference::swapped) }
    }

    /// The verdicts as the judge gave them, `First` being the answer that was shown first.
    pub fn shown(self) -> [Option<Preference>; 2] {
        [self.original, self.swapped.map(Preference::swapped)]
    }

    /// The same pair with its items named in the other order and each presentation under its new name. Nothing that is
    /// measured of both orders changes when pairs and gold labels are renamed so.
    #[must_use]
    pub fn renamed(self) -> Self {
        Self { original: self.swapped.map(Preference::swapped), swapped: self.original.map(Preference::swapped) }
    }

    /// MT-bench's single verdict: what both orders say, a tie where they disagree, `None` where either is unparsed.
    pub fn conservative(self) -> Option<Preference> {
        let (original, swapped) = (self.original?, self.swapped?);
        Some(if original == swapped { original } else { Preference::Tie })
    }

    fn verdicts(self) -> [Option<Preference>; 2] {
        [self.original, self.swapped]
    }

    /// The pair as it is to be counted, or `None` where it is left out.
    pub(crate) fn settled(self, unparsed: Unparsed, index: usize) -> Result<Option<Self>, Error> {
        let settled = unparsed.settle(self.verdicts(), "verdicts", index)?;
        Ok(settled.map(|[original, swapped]| Self { original, swapped }))
    }

    pub(crate) fn is_parsed(self) -> bool {
        self.original.is_some() && self.swapped.is_some()
    }
}

/// Verdicts that are both about the items already, in the order as given and in the exchanged one: `Greater` where the first item is
/// better, `None` where there is no verdict.
impl From<[Option<Ordering>; 2]> for TwoOrder {
    fn from([original, swapped]: [Option<Ordering>; 2]) -> Self {
        Self { original: original.map(Preference::from), swapped: swapped.map(Preference::from) }
    }
}

/// The same where both orders have a verdict.
impl From<[Ordering; 2]> for TwoOrder {
    fn from(orders: [Ordering; 2]) -> Self {
        orders.map(Some).into()
    }
}

/// The verdict of scores given in both orders: each item's mean over the orders is compared (FairEval's balanced
/// position calibration). Scores are `[first item, second item]`, those of the exchanged order mapped back to the
/// items.
///
/// # Errors
///
/// Those of [`Preference::from_scores`].
pub fn score_average(original: [f64; 2], swapped: [f64; 2], margin: f64) -> Result<Preference, Error> {
    let mean = |item: usize| f64::midpoint(original[item], swapped[item]);
    Preference::from_scores([mean(0), mean(1)], margin)
}

/// How the verdicts of two orders become one figure of accuracy.
///
/// Two more ways need something else than two verdicts: scores can be averaged first ([`score_average`]), and LLMBar's
/// Swap asks the judge again where the orders conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// The order as given alone.
    First,
    /// The mean of the two orders' accuracies (LLMBar).
    Average,
    /// Right only if both orders are (Auto-J).
    BothCorrect,
    /// Right if [`TwoOrder::conservative`] is: a disagreement is a tie (MT-bench).
    Conservative,
}

/// How verdicts in both orders compare with gold labels and with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TwoOrderAgreement {
    /// Pairs that are right in the order as given, of those counted (LLMBar's `correct_False`).
    pub original: Proportion,
    /// Pairs that are right in the exchanged order (`correct_True`).
    pub swapped: Proportion,
    /// Pairs that are right in both: Auto-J's agreement, LLMBar's `correct_both`.
    pub both: Proportion,
    /// Pairs whose [`TwoOrder::conservative`] verdict is right.
    pub conservative: Proportion,
    /// Pairs on which the orders agree, right or wrong: Auto-J's consistency, LLMBar's positional agreement `equal`.
    pub consistent: Proportion,
    /// Pairs with an unparsed verdict, whatever became of them.
    pub unparsed: usize,
}

impl TwoOrderAgreement {
    /// The accuracy, in [0, 1], by one way of resolving two orders. `BothCorrect` is at most that of either order, and
    /// `Average` lies between the two.
    ///
    /// For an interval take the [`Proportion`]'s own, or, for `Average`, whose two orders are not independent, a
    /// [`Bootstrap`](crate::resampling::Bootstrap) over pairs.
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] if every pair was dropped.
    pub fn accuracy(&self, resolution: Resolution) -> Result<f64, Error> {
        match resolution {
            Resolution::First => self.original.estimate(),
            Resolution::Average => Ok(f64::midpoint(self.original.estimate()?, self.swapped.estimate()?)),
            Resolution::BothCorrect => self.both.estimate(),
            Resolution::Conservative => self.conservative.estimate(),
        }
    }
}

/// Compares verdicts in both orders with gold labels: `verdicts[i]` and `gold[i]` are about the same pair.
///
/// The policy is applied to each pair before anything is counted; [`Unparsed::Dropped`] leaves a pair out if either
/// order is unparsed. Sources: Auto-J's `pairwise` evaluation (Li et al., 2023), LLMBar's (Zeng et al., 2024).
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`] for no pair, [`Error::Unparsed`] under [`Unparsed::Refused`].
///
/// ```
/// use judge_metrics::preference::{Preference::*, Resolution, TwoOrder, Unparsed, two_order_agreement};
///
/// // As the judge answered, "first" and "second" being places on the page.
/// let shown = [[Some(First), Some(Second)], [Some(First), Some(First)], [Some(Second), None]];
/// let verdicts = shown.map(TwoOrder::from_shown);
/// let agreement = two_order_agreement(&[First, First, Second], &verdicts, Unparsed::Wrong)?;
/// assert_eq!((agreement.both.count, agreement.consistent.count, agreement.both.n), (1, 1, 3));
/// assert_eq!(agreement.accuracy(Resolution::Average)?, 2.0 / 3.0);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn two_order_agreement(
    gold: &[Preference],
    verdicts: &[TwoOrder],
    unparsed: Unparsed,
) -> Result<TwoOrderAgreement, Error> {
    check_lengths("gold", gold.len(), "verdicts", verdicts.len())?;
    check_any(verdicts)?;
    let mut result = TwoOrderAgreement {
        original: Proportion::default(),
        swapped: Proportion::default(),
        both: Proportion::default(),
        conservative: Proportion::default(),
        consistent: Proportion::default(),
        unparsed: 0,
    };
    for (index, (&pair, &gold)) in verdicts.iter().zip(gold).enumerate() {
        result.unparsed += usize::from(!pair.is_parsed());
        let Some(pair) = pair.settled(unparsed, index)? else { continue };
        let right = pair.verdicts().map(|verdict| verdict == Some(gold));
        result.original.add(right[0]);
        result.swapped.add(right[1]);
        result.both.add(right[0] && right[1]);
        result.conservative.add(pair.conservative() == Some(gold));
        result.consistent.add(unparsed.agree(pair.original, pair.swapped));
    }
    Ok(result)
}

/// How verdicts in one order compare with gold labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SingleOrderAgreement {
    /// Pairs that are right, of those counted.
    pub correct: Proportion,
    /// Pairs whose verdict is unparsed, whatever became of them.
    pub unparsed: usize,
}

/// Compares verdicts given in one order, or by scoring each item alone, with gold labels (Auto-J's `single` evaluation,
/// accuracy in PandaLM and JudgeLM). Here [`Unparsed::OwnLabel`] is the same as [`Unparsed::Wrong`].
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`] for no pair, [`Error::Unparsed`] under [`Unparsed::Refused`].
pub fn single_order_agreement(
    gold: &[Preference],
    verdicts: &[Option<Preference>],
    unparsed: Unparsed,
) -> Result<SingleOrderAgreement, Error> {
    check_lengths("gold", gold.len(), "verdicts", verdicts.len())?;
    check_any(verdicts)?;
    let mut correct = Proportion::default();
    let unparsed =
        unparsed.settle_each("verdicts", verdicts, |index, verdict| correct.add(verdict == Some(gold[index])))?;
    Ok(SingleOrderAgreement { correct, unparsed })
}
