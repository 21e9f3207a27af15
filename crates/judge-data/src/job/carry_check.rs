//! What is said of fields that are to be carried before any work.

use std::path::Path;

use crate::rows::columns::OWN;
use crate::{Carry, Error, RowItem};

/// Says before any work what cannot be carried: a field that the output has itself, and one that no row of the input has.
#[derive(Debug)]
pub(crate) struct CarryCheck<'c> {
    carry: &'c Carry,
    /// The fields of the output's own.
    known: &'static [&'static str],
    /// Those of the names that no row has had so far.
    absent: Vec<&'c str>,
    rows: usize,
    /// The fields of the first row that can be carried.
    found: Vec<String>,
}

impl<'c> CarryCheck<'c> {
    /// For an output whose rows have these fields of their own.
    pub(crate) fn new(carry: &'c Carry, known: &'static [&'static str]) -> Self {
        // An output has an id and people's grade of its own.
        let absent = carry.names().iter().map(String::as_str).filter(|name| !OWN.contains(name)).collect();
        Self { carry, known, absent, rows: 0, found: Vec::new() }
    }

    /// Takes note of a row.
    ///
    /// # Errors
    /// [`Error::FieldClash`].
    pub(crate) fn see(&mut self, item: &impl RowItem) -> Result<(), Error> {
        if let Some(extra) = item.extra() {
            self.absent.retain(|name| extra.text(name).is_none());
            if self.rows == 0 {
                self.found = extra.iter().map(|(name, _)| name.to_owned()).collect();
            }
            self.carry.check(extra, self.known)?;
        }
        self.rows += 1;
        Ok(())
    }

    /// After the last row.
    ///
    /// # Errors
    /// [`Error::NothingToCarry`] for a field that no row had. Of a part of a file that is nothing unusual.
    pub(crate) fn finish(self, path: &Path, is_part: bool) -> Result<(), Error> {
        match self.absent.first().filter(|_| self.rows > 0 && !is_part) {
            None => Ok(()),
            Some(&field) => Err(Error::NothingToCarry {
                path: path.to_path_buf(),
                rows: self.rows,
                field: field.to_owned(),
                found: self.found,
            }),
        }
    }
}
