//! Labels that the caller pinned: a list without repetition, in which each label given has a place.

use std::fmt::Display;

use crate::Error;
use crate::input::check_count;

/// At least two labels, none twice.
pub(crate) fn check_labels<L: PartialEq + Display>(labels: &[L]) -> Result<(), Error> {
    check_count(2, labels.len())?;
    match (1..labels.len()).find(|&index| labels[..index].contains(&labels[index])) {
        Some(index) => Err(Error::DuplicateLabel { index, label: labels[index].to_string() }),
        None => Ok(()),
    }
}

/// Where a label stands in the list.
pub(crate) fn place<L: PartialEq + Display>(
    labels: &[L],
    argument: &'static str,
    index: usize,
    label: &L,
) -> Result<usize, Error> {
    labels.iter().position(|known| known == label).ok_or_else(|| {
        let known = labels.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Error::UnknownLabel { argument, index, found: label.to_string(), known }
    })
}
