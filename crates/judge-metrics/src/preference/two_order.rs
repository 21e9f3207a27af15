use std::cmp::Ordering;

use super::{Preference, Unparsed};
use crate::Error;

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
