//! The names that a model takes, compared with those that a file has.
//!
//! Used by [`Store::check`](super::Store::check) before anything is read, and by
//! [`Store::finish`](super::Store::finish) after everything was.

use std::collections::BTreeSet;

use crate::Error;

/// Compares two sets of names; duplicates and order do not matter.
///
/// # Errors
/// [`Error::TensorNames`] if `expected` has a name that is not in `available`, or if `available`
/// has one that is neither in `expected` nor `redundant`. Both lists are complete and sorted, so
/// one look at the error shows whether a folder is another model or only has other prefixes.
pub(super) fn compare<'a>(
    expected: impl IntoIterator<Item = &'a str>,
    available: impl IntoIterator<Item = &'a str>,
    redundant: impl Fn(&str) -> bool,
) -> Result<(), Error> {
    let expected: BTreeSet<&str> = expected.into_iter().collect();
    let available: BTreeSet<&str> = available.into_iter().collect();
    let missing: Vec<String> = expected.difference(&available).map(|&name| name.to_owned()).collect();
    let unused: Vec<String> =
        available.difference(&expected).filter(|name| !redundant(name)).map(|&name| name.to_owned()).collect();
    if missing.is_empty() && unused.is_empty() { Ok(()) } else { Err(Error::TensorNames { missing, unused }) }
}
