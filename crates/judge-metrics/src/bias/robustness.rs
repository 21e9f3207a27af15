//! Robustness: does a verdict survive a change that should not matter, and can it be bought by one?
//!
//! The change may be a fake citation, an emoji, a majority's opinion, a suffix that says nothing (CALM; Ye et al.,
//! 2024; Chen et al., 2024; Raina et al., 2024). A judge also contradicts itself when nothing changes: report
//! [`robustness_rate`] beside the [`consistency_rate`] of repeated runs, which is its ceiling.

use crate::input::check_lengths;
use crate::means::paired_difference_of;
use crate::preference::{Preference, Unparsed, check_any};
use crate::{Error, Estimate, Proportion};

/// On how many items two runs of a judge say the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SameVerdict {
    /// Items with the same verdict, of those counted.
    pub same: Proportion,
    /// Items with an unparsed verdict in either run, whatever became of them.
    pub unparsed: usize,
}

/// Robustness rate (CALM): the share of items whose verdict, about the items, is the same after the perturbation.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`] for no item, [`Error::Unparsed`] under [`Unparsed::Refused`].
pub fn robustness_rate(
    original: &[Option<Preference>],
    perturbed: &[Option<Preference>],
    unparsed: Unparsed,
) -> Result<SameVerdict, Error> {
    same_verdict(("original", original), ("perturbed", perturbed), unparsed)
}

/// Consistency rate (CALM): the share of items whose verdict is the same when the same question is put again, the noise
/// floor of [`robustness_rate`].
///
/// # Errors
///
/// Those of [`robustness_rate`].
pub fn consistency_rate(
    original: &[Option<Preference>],
    repeated: &[Option<Preference>],
    unparsed: Unparsed,
) -> Result<SameVerdict, Error> {
    same_verdict(("original", original), ("repeated", repeated), unparsed)
}

fn same_verdict(original: Run<'_>, other: Run<'_>, unparsed: Unparsed) -> Result<SameVerdict, Error> {
    let mut same = Proportion::default();
    let unparsed = for_each_pair(original, other, unparsed, |[a, b]| same.add(unparsed.agree(a, b)))?;
    Ok(SameVerdict { same, unparsed })
}

/// A run's parameter name and verdicts.
type Run<'a> = (&'static str, &'a [Option<Preference>]);

/// Visits the settled verdicts on each item that counts; returns how many items have an unparsed one.
fn for_each_pair(
    a: Run<'_>,
    b: Run<'_>,
    unparsed: Unparsed,
    mut visit: impl FnMut([Option<Preference>; 2]),
) -> Result<usize, Error> {
    check_lengths(b.0, b.1.len(), a.0, a.1.len())?;
    check_any(a.1)?;
    let mut without = 0;
    for (index, pair) in a.1.iter().zip(b.1).map(|(&a, &b)| [a, b]).enumerate() {
        without += usize::from(pair.contains(&None));
        let argument = if pair[0].is_none() { a.0 } else { b.0 };
        if let Some(pair) = unparsed.settle(pair, argument, index)? {
            visit(pair);
        }
    }
    Ok(without)
}

/// What a perturbation did to absolute scores: mean of `perturbed` − `original` over items, with Student's t interval.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`] for fewer than 2 items, [`Error::NonFinite`]; [`Error::Undefined`]
/// if differences overflow.
///
/// ```
/// use judge_metrics::bias::robustness::score_shift;
///
/// let shift = score_shift(&[3.0, 4.0, 2.0, 5.0], &[4.0, 4.0, 4.0, 5.0])?;
/// assert_eq!(shift.estimate, 0.75);
/// assert!(shift.interval(0.95)?.low < 0.0, "four items do not tell it from none");
/// # Ok::<(), judge_metrics::Error>(())
/// ```
pub fn score_shift(original: &[f64], perturbed: &[f64]) -> Result<Estimate, Error> {
    paired_difference_of(("original", original), ("perturbed", perturbed))
}

/// How often an attack wins over a verdict that stood against it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AttackSuccess {
    /// Items won over, of those whose verdict was against the target before the attack.
    pub rate: Proportion,
    /// Items with an unparsed verdict before or after, whatever became of them.
    pub unparsed: usize,
}

/// Attack success rate: of the items whose verdict `before` is against the target, the share whose verdict `after` is
/// for it.
///
/// The target of the attack is the *first* item of every pair ([`Preference::swapped`] names them so). A verdict is
/// against it if the second item wins: a tie before is not at risk, and a tie after is no success. An unparsed verdict
/// is neither against nor for the target, be it a tie, wrong or its own label, so before the attack it is not at risk
/// and after it no success.
///
/// If no verdict stood against the target, `rate` is a share of nothing, and says so when asked for its estimate.
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`] for no item, [`Error::Unparsed`] under [`Unparsed::Refused`].
pub fn attack_success(
    before: &[Option<Preference>],
    after: &[Option<Preference>],
    unparsed: Unparsed,
) -> Result<AttackSuccess, Error> {
    let mut rate = Proportion::default();
    let unparsed = for_each_pair(("before", before), ("after", after), unparsed, |[before, after]| {
        if before == Some(Preference::Second) {
            rate.add(after == Some(Preference::First));
        }
    })?;
    Ok(AttackSuccess { rate, unparsed })
}
