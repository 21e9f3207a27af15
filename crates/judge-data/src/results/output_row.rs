use judge_core::{ItemId, Unscored};
use serde::Serialize;

use crate::{Carry, Error, Extra, Fate, Human};

/// What a judge says in a row: the fields between what people said and those that are carried.
pub trait Judged: Serialize {
    /// Every field of such a row that no carried one may be called: what is written, `id` and `human` among them.
    const KNOWN: &'static [&'static str];

    /// Why there is no verdict; `None` for a row that has one.
    fn unscored(&self) -> Option<&Unscored>;
}

/// A row of a judge: `{"id", "human"?, …what it says…, …fields that are carried…}`.
///
/// What a judge says is `J`: [`SingleRow`](crate::SingleRow), [`PairRow`](crate::PairRow) and [`LabelRow`](crate::LabelRow) are such rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OutputRow<J> {
    /// The item.
    pub id: ItemId,
    /// What people said.
    #[serde(skip_serializing_if = "Human::is_empty")]
    pub human: Human,
    /// What the judge says.
    #[serde(flatten)]
    pub judged: J,
    /// All other fields.
    #[serde(flatten)]
    pub extra: Extra,
}

impl<J: Judged> OutputRow<J> {
    /// The fields of a row's own, which no other field may be called.
    pub const KNOWN: &'static [&'static str] = J::KNOWN;

    /// A row, and what became of the item.
    ///
    /// # Errors
    /// [`Error::FieldClash`] for a carried field that the row has one of its own for.
    pub fn of(id: ItemId, human: Human, judged: J, extra: Extra, carry: &Carry) -> Result<(Self, Fate), Error> {
        let fate = Fate { unscored: judged.unscored().map(|unscored| unscored.reason), graded: !human.is_empty() };
        let extra = carry.of_row(extra, J::KNOWN)?;
        Ok((Self { id, human, judged, extra }, fate))
    }
}
