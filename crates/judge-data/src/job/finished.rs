use std::path::PathBuf;

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
    /// Whatever is wrong before the first of them; then, for a row, [`Error::OtherRow`] if it is not that of the item in its place, and
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
                Some(Err(Error::OtherRow { path: self.output.clone(), expected, found }))
            }
        }))
    }
}

/// A row that names its item names the right one.
fn beside<I: RowItem>(item: I, row: Row) -> Result<(I, Row), Error> {
    match optional_id_of(&row)? {
        Some(found) if found != item.id() => {
            Err(Error::OtherRow { path: row.place().path.clone(), expected: Some(item.id()), found: Some(found) })
        }
        _ => Ok((item, row)),
    }
}
