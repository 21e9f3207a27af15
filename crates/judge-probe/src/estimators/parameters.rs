//! Checks of what fitted things are made of, and of the settings that several estimators have.

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

/// [`Error::InvalidC`], [`Error::InvalidTol`]: both are finite and above 0.
pub(crate) fn check_c_and_tol(c: f64, tol: f64) -> Result<(), Error> {
    if !(c.is_finite() && c > 0.0) {
        return Err(Error::InvalidC { c });
    }
    if !(tol.is_finite() && tol > 0.0) {
        return Err(Error::InvalidTol { tol });
    }
    Ok(())
}
