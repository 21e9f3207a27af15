//! Which response of a pair is better.

use std::cmp::Ordering;

use judge_core::verdict::likelier;
use serde::{Deserialize, Serialize};

use crate::Row;
use crate::rows::grades::Given;

/// What preferences of people are read from, in words.
pub(crate) const PREFERENCES: &str = "\"A\", \"B\" or \"tie\", or a list of them and nulls";

/// The preference that a JSON value is; `None` for what is none.
pub(crate) fn choice(json: &str) -> Option<Ordering> {
    serde_json::from_str::<PairVerdict>(json).ok()?.ordering()
}

/// What each rater prefers by the `human` of a row, in the rater's place, and the first thing that is no preference, in words: it is left
/// out. Empty where nobody prefers anything.
pub fn preferred(row: &Row) -> (Vec<Option<Ordering>>, Option<String>) {
    let given = row.value("human").map(|json| Given::of(json, choice).of_column("human", PREFERENCES));
    given.unwrap_or_default()
}

/// Which response of a pair is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PairVerdict {
    /// The first.
    A,
    /// The second.
    B,
    /// Neither.
    #[serde(rename = "tie")]
    Tie,
    /// The orders disagree.
    #[serde(rename = "inconsistent")]
    Inconsistent,
}

/// `Greater`: the first response is better.
impl From<Ordering> for PairVerdict {
    fn from(order: Ordering) -> Self {
        match order {
            Ordering::Greater => Self::A,
            Ordering::Less => Self::B,
            Ordering::Equal => Self::Tie,
        }
    }
}

impl PairVerdict {
    /// The verdict that a text is.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        serde_json::from_value(text.into()).ok()
    }

    /// The response that a preference for the first one is for.
    pub(crate) fn of_preference(preference: f64) -> Self {
        likelier(preference).into()
    }

    /// `Greater` if the first response is better; `None` where the orders disagree.
    pub fn ordering(self) -> Option<Ordering> {
        match self {
            Self::A => Some(Ordering::Greater),
            Self::B => Some(Ordering::Less),
            Self::Tie => Some(Ordering::Equal),
            Self::Inconsistent => None,
        }
    }
}

/// The gold label of a pair: what more than half of its raters say, a tie being one of the three things that they can say. `None` where
/// nothing is said by so many, and for nobody.
pub fn majority(verdicts: &[Ordering]) -> Option<Ordering> {
    let count = |wanted: Ordering| verdicts.iter().filter(|&&verdict| verdict == wanted).count();
    verdicts.iter().copied().find(|&verdict| 2 * count(verdict) > verdicts.len())
}

/// A choice as a preference for the first response: 1, 0, or ½ for a tie.
pub(crate) fn preference(choice: Ordering) -> f64 {
    match choice {
        Ordering::Greater => 1.0,
        Ordering::Equal => 0.5,
        Ordering::Less => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raters_who_are_split_say_no_tie() {
        use Ordering::{Equal, Greater, Less};
        let split: [&[Ordering]; 4] =
            [&[], &[Greater, Less], &[Greater, Greater, Less, Equal], &[Greater, Less, Equal]];
        assert_eq!(split.map(majority), [None; 4]);
        let agreed: [&[Ordering]; 3] = [&[Equal, Less, Equal], &[Greater, Equal, Greater], &[Less]];
        assert_eq!(agreed.map(majority), [Some(Equal), Some(Greater), Some(Less)]);
    }

    #[test]
    fn what_rounding_leaves_of_one_half_is_a_tie() {
        let verdicts = [0.5 - 1e-16, 0.5 + 2e-16, 0.5 - 1e-11, 0.5 + 1e-11].map(PairVerdict::of_preference);
        assert_eq!(verdicts, [PairVerdict::Tie, PairVerdict::Tie, PairVerdict::B, PairVerdict::A]);
    }
}
