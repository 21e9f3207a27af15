//! Robustness: does a verdict survive a change that should not matter, and can it be bought by one?
//!
//! The change may be a fake citation, an emoji, a majority's opinion, a suffix that says nothing (CALM; Ye et al.,
//! 2024; Chen et al., 2024; Raina et al., 2024). A judge also contradicts itself when nothing changes: report
//! [`robustness_rate`] beside that of repeated runs (CALM's consistency rate), which is its ceiling.

use crate::preference::{Preference, Unparsed};
use crate::{Error, Proportion};

/// On how many items two runs of a judge give the same verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SameVerdict {
    /// Items with the same verdict, of those counted.
    pub same: Proportion,
    /// Items with an unparsed verdict in either run, whatever became of them.
    pub unparsed: usize,
}

/// Robustness rate (CALM): the share of items whose verdict, about the items, is the same after the perturbation. Of a repeated run in the
/// place of a perturbed one it is CALM's consistency rate.
///
/// What a perturbation does to absolute scores is [`means::paired_difference`](crate::means::paired_difference).
///
/// # Errors
///
/// [`Error::LengthMismatch`], [`Error::TooFewItems`] for no item, [`Error::Unparsed`] under [`Unparsed::Refused`].
pub fn robustness_rate(
    original: &[Option<Preference>],
    perturbed: &[Option<Preference>],
    unparsed: Unparsed,
) -> Result<SameVerdict, Error> {
    let mut same = Proportion::default();
    let runs = [("original", original), ("perturbed", perturbed)];
    let without = unparsed.settle_each(runs, |_, [a, b]| same.add(unparsed.agree(a, b)))?;
    Ok(SameVerdict { same, unparsed: without })
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
    let unparsed = unparsed.settle_each([("before", before), ("after", after)], |_, [before, after]| {
        if before == Some(Preference::Second) {
            rate.add(after == Some(Preference::First));
        }
    })?;
    Ok(AttackSuccess { rate, unparsed })
}
