//! The checks every statistic makes of what it is given, and of what its arithmetic leaves.

use crate::Error;

/// Two sides of equal length, at least `required` items each, all finite.
pub(crate) fn check_paired(x: &[f64], y: &[f64], required: usize) -> Result<(), Error> {
    check_columns(("x", x), ("y", y), required)
}

/// The same of columns with names of their own.
pub(crate) fn check_columns(
    (x_name, x): (&'static str, &[f64]),
    (y_name, y): (&'static str, &[f64]),
    required: usize,
) -> Result<(), Error> {
    check_lengths(y_name, y.len(), x_name, x.len())?;
    check_count(required, x.len())?;
    check_finite(x_name, x)?;
    check_finite(y_name, y)
}

/// Each number above the one before it.
pub(crate) fn check_ascending(argument: &'static str, values: &[f64]) -> Result<(), Error> {
    match values.windows(2).position(|pair| pair[0] >= pair[1]) {
        Some(before) => Err(Error::NotAscending { argument, index: before + 1 }),
        None => Ok(()),
    }
}

/// No number below the one before it.
pub(crate) fn check_not_descending(argument: &'static str, values: &[f64]) -> Result<(), Error> {
    match values.windows(2).position(|pair| pair[0] > pair[1]) {
        Some(before) => Err(Error::NotAscending { argument, index: before + 1 }),
        None => Ok(()),
    }
}

/// At least `required` items.
pub(crate) fn check_count(required: usize, found: usize) -> Result<(), Error> {
    if found < required { Err(Error::TooFewItems { required, found }) } else { Ok(()) }
}

/// At least `required` items, in at least as many clusters.
pub(crate) fn check_clusters(required: usize, items: usize, found: usize) -> Result<(), Error> {
    check_count(required, items)?;
    if found < required { Err(Error::TooFewClusters { required, found }) } else { Ok(()) }
}

/// `argument` has as many items as `other`.
pub(crate) fn check_lengths(
    argument: &'static str,
    found: usize,
    other: &'static str,
    expected: usize,
) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(Error::LengthMismatch { argument, found, other, expected }) }
}

pub(crate) fn check_finite(argument: &'static str, values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => Err(Error::NonFinite { argument, index, value: values[index] }),
        None => Ok(()),
    }
}

/// At least two different values among `values`, which are finite.
pub(crate) fn check_varies(argument: &'static str, values: &[f64]) -> Result<(), Error> {
    match values.split_first() {
        Some((&first, rest)) if rest.iter().all(|&value| value == first) => {
            Err(Error::Constant { argument, value: first })
        }
        _ => Ok(()),
    }
}

/// Two columns as of [`check_paired`], of two items or more, neither of them constant.
pub(crate) fn check_varying_pair(x: &[f64], y: &[f64]) -> Result<(), Error> {
    check_paired(x, y, 2)?;
    check_varies("x", x)?;
    check_varies("y", y)
}

/// A number from `low` to `high`, both included, which NaN never is; `index` where it is one of a column.
pub(crate) fn check_range(
    argument: &'static str,
    index: Option<usize>,
    value: f64,
    [low, high]: [f64; 2],
) -> Result<(), Error> {
    if (low..=high).contains(&value) { Ok(()) } else { Err(Error::OutOfRange { argument, index, value, low, high }) }
}

/// All numbers of a column from the first of `ends` to the second.
pub(crate) fn check_each_in(argument: &'static str, values: &[f64], ends: [f64; 2]) -> Result<(), Error> {
    values.iter().enumerate().try_for_each(|(index, &value)| check_range(argument, Some(index), value, ends))
}

/// A finite number of a column, from 0 to `most`.
pub(crate) fn check_amount(argument: &'static str, index: usize, value: f64, most: f64) -> Result<(), Error> {
    if !value.is_finite() {
        return Err(Error::NonFinite { argument, index, value });
    }
    check_range(argument, Some(index), value, [0.0, most])
}

pub(crate) fn check_level(level: f64) -> Result<(), Error> {
    if level > 0.0 && level < 1.0 { Ok(()) } else { Err(Error::LevelOutOfRange { level }) }
}

/// `value`, unless the arithmetic that led to it left the range of finite numbers.
pub(crate) fn in_range(statistic: &'static str, value: f64) -> Result<f64, Error> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(Error::Undefined { statistic, reason: "its arithmetic exceeds the largest finite number" })
    }
}

/// A power of two that brings values of this magnitude near 1, so that their squares neither overflow nor vanish; 1 where they would not
/// anyway, so that ordinary values keep their bits. For statistics that do not depend on the unit.
pub(crate) fn unit_of(largest: f64) -> f64 {
    match largest {
        _ if largest == 0.0 || (1e-100..1e100).contains(&largest) => 1.0,
        _ => 2f64.powi(-(largest.log2().floor() as i32).clamp(-1_000, 1_000)),
    }
}
