//! Does length decide? People like longer answers too, so a judge is compared with them on the same pairs.

use super::EqualOpportunity;
use crate::estimate::Spread;
use crate::input::{check_count, check_finite, check_lengths};
use crate::preference::{Preference, Unparsed};
use crate::{Error, Estimate, Proportion};

/// How often the longer of two answers is chosen, by a judge and by people.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LengthPreference {
    /// The judge's choices of the longer answer, among its decisive verdicts on pairs of different lengths.
    pub judge: Proportion,
    /// The same of people.
    pub human: Proportion,
    /// The judge's choices of the longer answer where it and people decide differently: ½ if length plays no part.
    pub judge_when_they_differ: Proportion,
    /// Pairs with an unparsed verdict, whatever became of them.
    pub unparsed: usize,
    /// Pairs on which both decide and lengths differ, by who chose the longer one: `[people][judge]`, 0 no, 1 yes.
    both: [[usize; 2]; 2],
}

/// Counts who chooses the longer answer.
///
/// `lengths` are those of the first and the second answer, in any unit. Ties, pairs of equal lengths and
/// unparsed verdicts take no part, kept or dropped.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::NonFinite`], [`Error::TooFewItems`] for no pair, [`Error::Unparsed`] under [`Unparsed::Refused`].
///
/// ```
/// use judge_metrics::bias::verbosity::length_preference;
/// use judge_metrics::preference::{Preference::{First, Second, Tie}, Unparsed};
///
/// let lengths = [[100.0, 50.0], [30.0, 80.0], [60.0, 60.0], [10.0, 90.0], [70.0, 20.0]];
/// let judge = [First, Second, First, Second, First].map(Some);
/// let human = [First, First, Second, Second, Tie];
/// let found = length_preference(&lengths, &human, &judge, Unparsed::Refused)?;
/// assert_eq!((found.judge.count, found.judge.n), (4, 4));
/// assert_eq!((found.human.count, found.human.n), (2, 3));
/// assert_eq!((found.judge_when_they_differ.count, found.judge_when_they_differ.n), (1, 1));
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn length_preference(
    lengths: &[[f64; 2]],
    human: &[Preference],
    judge: &[Option<Preference>],
    unparsed: Unparsed,
) -> Result<LengthPreference, Error> {
    check_pairs(lengths, human.len(), "human")?;
    check_lengths("judge", judge.len(), "lengths", lengths.len())?;
    let mut found = LengthPreference::default();
    found.unparsed = unparsed.settle_each([("judge", judge)], |row, [judge]| {
        let [first, second] = lengths[row];
        let (human, longer) = (human[row], if first > second { Preference::First } else { Preference::Second });
        if first == second {
            return;
        }
        let judge = judge.filter(|verdict| verdict.is_decisive());
        if let Some(judge) = judge {
            found.judge.add(judge == longer);
        }
        if human.is_decisive() {
            found.human.add(human == longer);
            if let Some(judge) = judge {
                found.both[usize::from(human == longer)][usize::from(judge == longer)] += 1;
                if judge != human {
                    found.judge_when_they_differ.add(judge == longer);
                }
            }
        }
    })?;
    Ok(found)
}

impl LengthPreference {
    /// How much more often the judge chooses the longer answer than people do, on pairs that both decide, in [-1, 1], with Newcombe's
    /// interval of the difference of paired proportions (1998, method 10).
    ///
    /// # Errors
    ///
    /// [`Error::Undefined`] where both decide on no pair.
    pub fn excess(&self) -> Result<Estimate, Error> {
        let [[neither, judge_only], [human_only, both]] = self.both;
        let n = neither + judge_only + human_only + both;
        let judge = Proportion { count: judge_only + both, n };
        let human = Proportion { count: human_only + both, n };
        // The correlation of the two choices, corrected for continuity where it is positive.
        let [a, b, c, d] = [both, judge_only, human_only, neither].map(|count| count as f64);
        let margins = (a + b) * (c + d) * (a + c) * (b + d);
        let phi = if margins == 0.0 {
            0.0
        } else {
            let product = a * d - b * c;
            let corrected = if product > 0.0 { (product - n as f64 / 2.0).max(0.0) } else { product };
            corrected / margins.sqrt()
        };
        let difference = judge.estimate()? - human.estimate()?;
        let excess = Estimate::new("the excess of longer answers", difference, n)?;
        Ok(excess.with_interval(Spread::Newcombe([judge, human], phi)))
    }
}

/// Equal opportunity of longer and shorter answers, the longer being the favoured ones (Saito et al., 2023). Pairs that people call a tie,
/// and those of equal lengths, take no part; a judge's tie is wrong, and so is an unparsed verdict that is kept.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::NonFinite`], [`Error::TooFewItems`] for no pair, [`Error::Unparsed`] under [`Unparsed::Refused`].
pub fn equal_opportunity(
    lengths: &[[f64; 2]],
    human: &[Preference],
    judge: &[Option<Preference>],
    unparsed: Unparsed,
) -> Result<EqualOpportunity, Error> {
    check_pairs(lengths, human.len(), "human")?;
    check_lengths("judge", judge.len(), "lengths", lengths.len())?;
    let mut found = EqualOpportunity::default();
    found.unparsed = unparsed.settle_each([("judge", judge)], |row, [judge]| {
        let [first, second] = lengths[row];
        let human = human[row];
        if first != second && human.is_decisive() {
            let longer = (human == Preference::First) == (first > second);
            let side = if longer { &mut found.favoured } else { &mut found.other };
            side.add(judge == Some(human));
        }
    })?;
    Ok(found)
}

fn check_pairs(lengths: &[[f64; 2]], found: usize, argument: &'static str) -> Result<(), Error> {
    check_lengths(argument, found, "lengths", lengths.len())?;
    check_count(1, lengths.len())?;
    lengths.iter().enumerate().try_for_each(|(row, pair)| check_finite("lengths", pair).map_err(Error::in_row(row)))
}
