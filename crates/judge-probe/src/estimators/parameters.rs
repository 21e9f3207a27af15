//! Checks of what fitted things are made of, of the settings that several estimators have, and of lists that go together row by row.

use crate::Error;

/// [`Error::ClassOrder`] unless the classes ascend.
pub(crate) fn check_ascending(classes: &[i64]) -> Result<(), Error> {
    match classes.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => Err(Error::ClassOrder { before: pair[0], after: pair[1] }),
        None => Ok(()),
    }
}

/// [`Error::ParameterCount`] for another number of them than expected.
pub(crate) fn check_count(name: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::ParameterCount { name, expected, found }) }
}

/// [`Error::InvalidParameter`] for the first value that is out of its range.
pub(crate) fn check_each(name: &'static str, values: &[f64], is_in_range: impl Fn(f64) -> bool) -> Result<(), Error> {
    match values.iter().position(|&value| !is_in_range(value)) {
        Some(index) => Err(Error::InvalidParameter { name, index, value: values[index] }),
        None => Ok(()),
    }
}

/// [`Error::RowCount`] unless there is one of these for each row.
pub(crate) fn check_rows(n_rows: usize, what: &'static str, found: usize) -> Result<(), Error> {
    if found == n_rows { Ok(()) } else { Err(Error::RowCount { n_rows, what, found }) }
}

/// [`Error::OutOfRange`] unless the setting is finite and above 0.
pub(crate) fn check_positive(setting: &'static str, found: f64) -> Result<(), Error> {
    let range = "be a positive finite number";
    if found.is_finite() && found > 0.0 { Ok(()) } else { Err(Error::OutOfRange { setting, range, found }) }
}

/// [`Error::OutOfRange`] unless both are finite and above 0.
pub(crate) fn check_c_and_tol(c: f64, tol: f64) -> Result<(), Error> {
    check_positive("c", c)?;
    check_positive("tol", tol)
}

/// [`Error::OutOfRange`] unless the strength of a penalty is finite and at least 0.
pub(crate) fn check_alpha(found: f64) -> Result<(), Error> {
    let (setting, range) = ("alpha", "be a finite number of at least 0");
    if found.is_finite() && found >= 0.0 { Ok(()) } else { Err(Error::OutOfRange { setting, range, found }) }
}
