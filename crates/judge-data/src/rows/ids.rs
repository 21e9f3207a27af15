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
        match self.first(id, place.line) {
            None => Ok(()),
            Some(first_line) => Err(Error::DuplicateId { place: place.clone(), id: id.to_string(), first_line }),
        }
    }

    /// The same for a row that is on no line of a file; refuses an id too that could not be written.
    pub(crate) fn check_row(&mut self, id: &ItemId, row: usize) -> Result<(), Error> {
        serde_json::to_value(id).map_err(Error::serialize)?;
        match self.first(id, row) {
            None => Ok(()),
            Some(first) => Err(Error::RepeatedRow {
                id: id.to_string(),
                first: format!("row {first}"),
                second: format!("row {row} (from 0)"),
            }),
        }
    }

    /// Where this id was first, if it was there before; else it is first here.
    pub(crate) fn first(&mut self, id: &ItemId, here: usize) -> Option<usize> {
        match self.0.entry(digest(id)) {
            Entry::Vacant(entry) => {
                entry.insert(here);
                None
            }
            Entry::Occupied(entry) => Some(*entry.get()),
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

/// The mean of what raters gave, or of a judge's samples, finite numbers; `None` for none.
///
/// Ranks ask whether two means are equal. So this is the number nearest to the mean of the decimal digits, whatever their order; of numbers
/// that no 15 decimals write the order does not matter either. It is `judge_metrics::means::mean_of_raters`, which this crate cannot use.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    let (first, n) = (*values.first()?, values.len() as f64);
    if values.iter().all(|&value| value == first) {
        return Some(first);
    }
    for digits in 0..=15 {
        // As whole numbers of this unit the values have an exact sum, and the quotient is rounded once.
        let unit = 10_f64.powi(digits);
        let whole = values.iter().map(|value| (value * unit).round());
        let is_exact = |(whole, value): (f64, &f64)| whole.abs() <= 2_f64.powi(53) / n && whole / unit == *value;
        if whole.clone().zip(&values).all(is_exact) {
            return Some(whole.sum::<f64>() / (n * unit));
        }
    }
    values.sort_unstable_by(f64::total_cmp);
    // Shares, since a sum may be too large.
    Some(values.iter().map(|value| value / n).sum())
}

/// The mean of what is in the places of raters; `None` for nothing.
pub(crate) fn mean_of_places(raters: &[Option<f64>]) -> Option<f64> {
    mean(raters.iter().flatten().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_does_not_depend_on_the_order_of_raters() {
        let means = [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.2, 0.2, 0.2]].map(mean);
        assert_eq!((means, mean([])), ([Some(0.2); 3], None));
        assert_eq!(
            (mean([0.1, 0.2, -0.3]), mean([1e308, 1e308]), mean([3.0, 4.0])),
            (Some(0.0), Some(1e308), Some(3.5))
        );
    }

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
