//! The fields that are carried or cut by name, each of which some row must have.

use std::path::{Path, PathBuf};

use super::cuts::{can_be_cut, check_once, cuttable};
use crate::rows::columns::{HEAD, OWN};
use crate::{Carry, Cut, Error, Extra, RowItem, Source, Unread};

/// Those that no row has had so far.
pub(super) struct Named<'n> {
    carried: Vec<&'n String>,
    cut: Vec<&'n Cut>,
    rows: usize,
    /// What the first row has to be carried, and to be cut.
    found: [Vec<String>; 2],
}

impl<'n> Named<'n> {
    pub(super) fn new(carry: &'n Carry, cuts: &'n [Cut]) -> Self {
        // An output has an id and people's grade of its own.
        let carried = carry.names().iter().filter(|name| !OWN.contains(&name.as_str())).collect();
        Self { carried, cut: cuts.iter().collect(), rows: 0, found: Default::default() }
    }

    fn is_empty(&self) -> bool {
        self.carried.is_empty() && self.cut.is_empty()
    }

    /// Takes note of the fields of a row.
    pub(super) fn see(&mut self, item: &mut impl RowItem) {
        if self.rows == 0 && !self.is_empty() {
            let extra = item.extra().into_iter().flat_map(Extra::iter);
            self.found = [extra.map(|(name, _)| name.to_owned()).collect(), cuttable(item)];
        }
        self.rows += 1;
        self.cut.retain(|cut| !can_be_cut(item, &cut.field));
        if let Some(extra) = item.extra() {
            self.carried.retain(|name| extra.text(name).is_none());
        }
    }

    /// Refuses those that none of the rows had; `path` is where the rows are from.
    ///
    /// # Errors
    /// [`Error::NothingToCarry`]; [`Error::NothingToCut`].
    pub(super) fn check(self, path: &Path) -> Result<(), Error> {
        let (path, rows, [found, cuttable]) = (path.to_path_buf(), self.rows, self.found);
        match (self.carried.first(), self.cut.first()) {
            (Some(&field), _) => Err(Error::NothingToCarry { path, rows, field: field.clone(), found }),
            (None, Some(cut)) => Err(Error::NothingToCut { path, rows, field: cut.field.clone(), found: cuttable }),
            (None, None) => Ok(()),
        }
    }
}

/// Checks of files whose rows become those of one job, by parts, what no part can say: that some row has each field that is carried or cut
/// by name, and that a judge can be asked about some row. Of each file the first hundred rows are read, more only until that is so; `see`
/// is told of them.
///
/// Returned are the rows that were read.
///
/// # Errors
/// [`Error::NothingToCarry`]; [`Error::NothingToCut`] and [`Error::CutTwice`]; whatever is wrong with a source or a row.
pub fn check_files<S: Source>(
    files: impl IntoIterator<Item = Result<S, Error>>,
    carry: &Carry,
    cuts: &[Cut],
    mut see: impl FnMut(&S, &S::Item),
) -> Result<Unread, Error> {
    let (mut named, mut unread, mut first) = (Named::new(carry, cuts), Unread::default(), None::<PathBuf>);
    for file in files {
        let file = file?;
        first.get_or_insert_with(|| file.path().to_path_buf());
        let file = &*file.keeping(carry);
        for (row, item) in file.items()?.step_by(file.rows_of_each()).enumerate() {
            if row >= HEAD && named.is_empty() && unread.all().is_none() {
                break;
            }
            let mut item = item?;
            see(file, &item);
            check_once(&item, cuts)?;
            named.see(&mut item);
            unread.see_item(&item, None);
        }
    }
    named.check(&first.unwrap_or_default())?;
    Ok(unread)
}
