use std::collections::HashMap;
use std::collections::hash_map::Entry;

use judge_core::ItemId;

use crate::{Error, Place, Row};

/// The `id` of a row.
pub(crate) fn id_of(row: &Row) -> Result<ItemId, Error> {
    row.required("id", "a string or a whole number")
}

/// Refuses an id that was there before. Holds the ids, nothing else.
#[derive(Debug, Default)]
pub(crate) struct UniqueIds(HashMap<ItemId, usize>);

impl UniqueIds {
    pub(crate) fn check(&mut self, id: &ItemId, place: &Place) -> Result<(), Error> {
        match self.0.entry(id.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(place.line);
                Ok(())
            }
            Entry::Occupied(entry) => {
                let id = match id {
                    ItemId::Integer(number) => number.to_string(),
                    ItemId::Text(text) => format!("{text:?}"),
                };
                Err(Error::DuplicateId { place: place.clone(), id, first_line: *entry.get() })
            }
        }
    }
}

/// One number or several.
pub(crate) const NUMBERS: &str = "a number or a non-empty list of numbers";

#[derive(serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(f64),
    Many(Vec<f64>),
}

impl OneOrMany {
    /// `None` for an empty list.
    pub(crate) fn into_vec(self) -> Option<Vec<f64>> {
        match self {
            Self::One(value) => Some(vec![value]),
            Self::Many(values) => Some(values).filter(|v| !v.is_empty()),
        }
    }
}

/// The mean, in the order given; `None` for none.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() { None } else { Some(values.iter().sum::<f64>() / values.len() as f64) }
}
