use std::path::{Path, PathBuf};

use judge_core::ItemId;
use judge_core::runner::RunSummary;

use super::Source;
use crate::rows::ids::optional_id_of;
use crate::{Counts, Error, Row, RowItem, Rows};

/// A job whose rows are all in place, unless it was ended before.
#[derive(Debug)]
pub struct Finished<'j, S> {
    /// What became of the rows.
    pub counts: Counts,
    /// What was done this time; `None` if nothing was left to do.
    pub summary: Option<RunSummary>,
    pub(super) source: &'j S,
    pub(super) output: PathBuf,
}

impl<S: Source> Finished<'_, S> {
    /// The rows that were written, each beside what it was made of.
    ///
    /// # Errors
    /// Whatever is wrong before the first of them; then, for a row, [`Error::Content`] if it is not that of the item in its place, and
    /// whatever is wrong with either.
    pub fn rows(&self) -> Result<impl Iterator<Item = Result<(S::Item, Row), Error>>, Error> {
        let mut items = self.source.items()?;
        let mut rows = Rows::open(&self.output)?;
        Ok(std::iter::from_fn(move || match (items.next(), rows.next()) {
            (None, None) => None,
            (Some(Err(error)), _) | (_, Some(Err(error))) => Some(Err(error)),
            (Some(Ok(item)), Some(Ok(row))) => Some(beside(item, row)),
            (item, row) => {
                let expected = item.and_then(Result::ok).map(|item| item.id());
                let found = row.and_then(|row| optional_id_of(&row.ok()?).ok()?);
                Some(Err(other_row(&self.output, expected, found)))
            }
        }))
    }
}

/// A row that names its item names the right one.
fn beside<I: RowItem>(item: I, row: Row) -> Result<(I, Row), Error> {
    match optional_id_of(&row)? {
        Some(found) if found != item.id() => Err(other_row(&row.place().path, Some(item.id()), Some(found))),
        _ => Ok((item, row)),
    }
}

/// The error for a row of another item than the one in its place.
fn other_row(path: &Path, expected: Option<ItemId>, found: Option<ItemId>) -> Error {
    let of = |id: Option<ItemId>| id.map_or_else(|| "none".to_owned(), |id| format!("that of item {id}"));
    let found = format!("{}; was the input or the output changed?", of(found));
    Error::content(path, "row", of(expected), found)
}
