//! The names that a model takes against those that a file has.

use std::collections::BTreeSet;

use crate::Error;

/// Fails if `expected` names a tensor that is not `available`, or if one is available that it does not name and that is not `redundant`; lists both.
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
