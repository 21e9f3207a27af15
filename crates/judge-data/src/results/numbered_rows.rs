//! The rows of a file as records of one kind, each with its place and an id of its own.

use crate::rows::columns::Unseen;
use crate::rows::ids::UniqueIds;
use crate::{Columns, DatasetOptions, Error, Field, Ids, Input, Row, RowItem};

/// The rows of a file, at most so many, as `read` makes them: of the row, its place from 0, its number in the file (which is the id of a row
/// without one), and how columns are looked for. `idx` is no id unless it is chosen for one.
///
/// # Errors
/// Whatever is wrong with the file, and an id that is there twice; [`Error::NoSuchColumn`] behind the last row of a file in which no row has
/// a column that was chosen; those of `read`.
pub(crate) fn numbered_rows<T: RowItem, F: Fn(Row, usize, usize, &DatasetOptions) -> Result<T, Error>>(
    input: &Input,
    most: Option<usize>,
    columns: &Columns,
    read: F,
) -> Result<impl Iterator<Item = Result<T, Error>> + use<T, F>, Error> {
    let first = input.part().map_or(0, |part| part.first_number + part.rows.start);
    let columns = match columns.is_chosen(Field::Id) {
        true => columns.clone(),
        false => columns.clone().held_to(Field::Id, "id"),
    };
    let mut unseen = Some(Unseen::new(&columns)).filter(|_| input.part().is_none());
    let options = DatasetOptions { columns, ids: Ids::RowNumber, ..DatasetOptions::default() };
    let (mut ids, mut rows, mut place) = (UniqueIds::default(), input.rows()?, 0);
    let path = input.path().to_path_buf();
    let most = most.unwrap_or(usize::MAX);
    Ok(std::iter::from_fn(move || {
        if place == most {
            return None;
        }
        let Some(row) = rows.next() else { return unseen.take()?.error(&path).map(Err) };
        let record = row.and_then(|row| {
            unseen.iter_mut().for_each(|unseen| unseen.see(&row));
            let at = row.place().clone();
            let record = read(row, place, first + place, &options)?;
            ids.check(&record.id(), &at)?;
            Ok(record)
        });
        place += 1;
        Some(record)
    }))
}

/// A field of a record, or why it cannot be read: it costs the record what needs it.
pub(crate) fn split<T>(found: Result<T, String>) -> (Option<T>, Option<String>) {
    match found {
        Ok(value) => (Some(value), None),
        Err(why) => (None, Some(why)),
    }
}
