use std::collections::HashMap;
use std::collections::hash_map::Entry;

use judge_core::ItemId;

use crate::{Error, Place, Row};

/// What a row without an id is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ids {
    /// Nothing: it is an error, but in tables and in files of chosen and rejected replies where no row has a place for one: there by its number.
    #[default]
    Required,
    /// By its number in the file, from 0.
    RowNumber,
}

const EXPECTED: &str = "a string or a whole number";

/// The `id` of a row of this project's own files.
pub(crate) fn id_of(row: &Row) -> Result<ItemId, Error> {
    row.required("id", EXPECTED)
}

/// The same where a row may be without one.
pub(crate) fn optional_id_of(row: &Row) -> Result<Option<ItemId>, Error> {
    row.optional("id", EXPECTED)
}

/// Refuses an id that was there before.
///
/// Holds 16 bytes of each id's BLAKE3 hash and its line, whatever the ids' length. That two ids of 10⁹ share them has a
/// probability of 10⁻²¹.
#[derive(Debug, Default)]
pub(crate) struct UniqueIds(HashMap<u128, usize>);

impl UniqueIds {
    pub(crate) fn check(&mut self, id: &ItemId, place: &Place) -> Result<(), Error> {
        match self.0.entry(digest(id)) {
            Entry::Vacant(entry) => {
                entry.insert(place.line);
                Ok(())
            }
            Entry::Occupied(entry) => {
                Err(Error::DuplicateId { place: place.clone(), id: id.to_string(), first_line: *entry.get() })
            }
        }
    }
}

/// An id as text, a number's digits or the text itself.
pub(crate) fn plain(id: &ItemId) -> String {
    match id {
        ItemId::Integer(number) => number.to_string(),
        ItemId::Text(text) => text.clone(),
    }
}

fn digest(id: &ItemId) -> u128 {
    let mut hasher = blake3::Hasher::new();
    match id {
        ItemId::Integer(number) => hasher.update(b"i").update(&number.to_le_bytes()),
        ItemId::Text(text) => hasher.update(b"t").update(text.as_bytes()),
    };
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    u128::from_le_bytes(bytes)
}

/// What one rater gave or several did in a row that this project wrote, of whom some may have said nothing of this item: scores, as a rule.
#[derive(serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum Raters<T = f64> {
    One(T),
    Many(Vec<Option<T>>),
}

impl<T> Raters<T> {
    /// What is there, in order.
    pub(crate) fn into_given(self) -> Vec<T> {
        match self {
            Self::One(value) => vec![value],
            Self::Many(values) => values.into_iter().flatten().collect(),
        }
    }
}

/// The mean, in the order given; `None` for none.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() { None } else { Some(values.iter().sum::<f64>() / values.len() as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_its_text_are_two_ids() {
        let mut ids = UniqueIds::default();
        let place = |line| Place { path: "f".into(), line };
        ids.check(&ItemId::from(1_u64), &place(1)).unwrap();
        ids.check(&ItemId::from("1"), &place(2)).unwrap();
        ids.check(&ItemId::from(""), &place(3)).unwrap();
        let again = ids.check(&ItemId::from("1"), &place(9)).unwrap_err();
        assert_eq!(again.to_string(), "f, line 9: the id \"1\" appears twice, first on line 2");
    }
}
