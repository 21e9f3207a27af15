//! Which errors are the fault of one row, and cost that row and not the run.

use judge_core::{Reason, Unscored};

use super::Error;
use super::words::no_field;
use crate::Field;

impl Error {
    /// Why a row whose fields cannot be read has no score; `None` for what is wrong with more than the row's own fields:
    /// with the file, the ids, the disk.
    ///
    /// It names no file and no option: both belong to the command, and one row says nothing about it.
    #[must_use]
    pub fn of_row(&self) -> Option<Unscored> {
        let detail = match self {
            Self::MissingField { field: Some(Field::Id), .. } | Self::WrongType { field: Some(Field::Id), .. } => {
                return None;
            }
            Self::MissingField { field: Some(field), names, found, .. } => {
                format!("no {field} ({}), found the fields {found:?}", names.join(", "))
            }
            Self::MissingField { field: None, names, found, .. } => {
                format!("{}, found the fields {found:?}", no_field(None, names))
            }
            Self::WrongType { column, expected, found, .. } => {
                format!("expected {column:?} to be {expected}, found {found}")
            }
            Self::Turn { column, turn, expected, found, .. } => {
                format!("turn {turn} of {column:?}: expected {expected}, found {found}")
            }
            Self::AmbiguousColumns { field, first, second, .. } => {
                format!("{first:?} and {second:?} may both be the {field}")
            }
            Self::ColumnMoved { field, column, before, before_line, .. } => {
                format!("expected the {field} in {before:?}, as on line {before_line}, found it in {column:?}")
            }
            Self::MixedFormats { expected, found, .. } => {
                format!("expected one of the {expected} that the file began with, found the fields of the kind {found}")
            }
            Self::BothFields { first, second, .. } => {
                format!("has both {first:?} and {second:?}, expected one of them")
            }
            _ => return None,
        };
        Some(Unscored::new(Reason::Missing, detail))
    }

    /// What is wrong with a field, in the words of [`of_row`](Self::of_row) where it is one row's fault.
    pub(crate) fn in_row(&self) -> String {
        self.of_row().map_or_else(|| self.to_string(), |why| why.detail)
    }
}
