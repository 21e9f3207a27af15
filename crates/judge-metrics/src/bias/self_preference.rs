//! Self-preference: does a judge favour its own output, beyond what it is worth?
//!
//! In every pair here the *first* item is the judge's own output ([`Preference::swapped`] names them so), and human
//! verdicts on the same pairs say what it is worth.

use super::EqualOpportunity;
use crate::input::check_lengths;
use crate::means::paired_difference_of;
use crate::preference::{Preference, Unparsed};
use crate::{Error, Estimate, Proportion, sum};

/// Win rates of a judge's own output, a tie counting half.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SelfEnhancement {
    /// By the judge's own verdicts, in [0, 1].
    pub judge: f64,
    /// By people's.
    pub human: f64,
    /// Judge − human, in [−1, 1], within pairs; its interval takes the pairs as independent.
    pub excess: Estimate,
    /// Pairs with an unparsed verdict, whatever became of them.
    pub unparsed: usize,
}

/// Self-enhancement as MT-bench shows it (Zheng et al., 2023, section 3.3): the win rate that a judge gives its own
/// output, less the one that people give it on the same pairs.
///
/// An unparsed verdict that is kept without being a tie ([`Unparsed::Wrong`], [`Unparsed::OwnLabel`]) is no win for the
/// judge's output.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`] if fewer than 2 pairs are left, [`Error::Unparsed`] under
/// [`Unparsed::Refused`].
pub fn self_enhancement(
    human: &[Preference],
    judge: &[Option<Preference>],
    unparsed: Unparsed,
) -> Result<SelfEnhancement, Error> {
    let (mut by_judge, mut by_human) = (Vec::new(), Vec::new());
    check_lengths("human", human.len(), "judge", judge.len())?;
    let unparsed = unparsed.settle_each([("judge", judge)], |index, [judge]| {
        by_judge.push(judge.map_or(0.0, Preference::credit));
        by_human.push(human[index].credit());
    })?;
    let excess = paired_difference_of(("human", &by_human), ("judge", &by_judge))?;
    let mean = |credits: &[f64]| sum::sum(credits) / credits.len() as f64;
    Ok(SelfEnhancement { judge: mean(&by_judge), human: mean(&by_human), excess, unparsed })
}

/// Self-preference as a violation of equal opportunity (Wataoka et al., 2024, section 3): P(judge picks own | people
/// prefer own) − P(judge picks other | people prefer other). The favoured answer of the result is the judge's own.
///
/// Pairs that people call a tie take no part; a judge's tie picks neither, and so does an unparsed verdict that is
/// kept.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`] for no pair, [`Error::Unparsed`] under [`Unparsed::Refused`].
///
/// ```
/// use judge_metrics::bias::self_preference::equal_opportunity;
/// use judge_metrics::preference::{Preference::*, Unparsed};
///
/// let human = [First, First, First, Second, Second, Second, Second, Tie];
/// let judge = [First, First, First, First, First, Second, Tie, First].map(Some);
/// let bias = equal_opportunity(&human, &judge, Unparsed::Refused)?;
/// assert_eq!(bias.difference()?.estimate, 1.0 - 0.25);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn equal_opportunity(
    human: &[Preference],
    judge: &[Option<Preference>],
    unparsed: Unparsed,
) -> Result<EqualOpportunity, Error> {
    let (mut favoured, mut other) = (Proportion::default(), Proportion::default());
    check_lengths("human", human.len(), "judge", judge.len())?;
    let unparsed = unparsed.settle_each([("judge", judge)], |index, [judge]| match human[index] {
        Preference::First => favoured.add(judge == Some(Preference::First)),
        Preference::Second => other.add(judge == Some(Preference::Second)),
        Preference::Tie => {}
    })?;
    Ok(EqualOpportunity { favoured, other, unparsed })
}
