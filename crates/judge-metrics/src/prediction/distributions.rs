//! What counts as a probability, a distribution, and a table of them.

use crate::Error;
use crate::input::{check_amount, check_count, check_lengths};
use crate::sum::sum;

/// How far the sum of a distribution may be from 1: softmax in single precision strays by about 1e-7.
pub(crate) const SUM_TOLERANCE: f64 = 1e-6;

/// Numbers in [0, 1].
pub(crate) fn check_probabilities(argument: &'static str, values: &[f64]) -> Result<(), Error> {
    values.iter().enumerate().try_for_each(|(index, &value)| check_amount(argument, index, value, 1.0))
}

/// One or more probabilities that sum to 1 within [`SUM_TOLERANCE`]. An entry may exceed 1 by as much.
pub(crate) fn check_distribution(argument: &'static str, values: &[f64]) -> Result<(), Error> {
    check_count(1, values.len())?;
    let clamped: Vec<f64> =
        values.iter().map(|&value| if value > 1.0 && value <= 1.0 + SUM_TOLERANCE { 1.0 } else { value }).collect();
    check_probabilities(argument, &clamped)?;
    let sum = sum(values);
    if (sum - 1.0).abs() <= SUM_TOLERANCE { Ok(()) } else { Err(Error::NotADistribution { argument, sum }) }
}

/// Two distributions over the same labels.
pub(crate) fn check_distributions(p: &[f64], q: &[f64]) -> Result<(), Error> {
    check_lengths("q", q.len(), "p", p.len())?;
    check_distribution("p", p)?;
    check_distribution("q", q)
}

/// A distribution per item, all over the same labels, and the index of the label observed for each. Returns the number
/// of labels.
pub(crate) fn check_table<R: AsRef<[f64]>>(distributions: &[R], observed: &[usize]) -> Result<usize, Error> {
    check_lengths("observed", observed.len(), "distributions", distributions.len())?;
    let Some(first) = distributions.first() else {
        return Err(Error::TooFewItems { required: 1, found: 0 });
    };
    let width = first.as_ref().len();
    for (row, distribution) in distributions.iter().enumerate() {
        let distribution = distribution.as_ref();
        check_lengths("distributions", distribution.len(), "the first row", width).map_err(Error::in_row(row))?;
        check_distribution("distributions", distribution).map_err(Error::in_row(row))?;
    }
    match observed.iter().position(|&label| label >= width) {
        Some(index) => Err(Error::UnknownLabel {
            argument: "observed",
            index,
            found: observed[index].to_string(),
            known: format!("0 to {}", width - 1),
        }),
        None => Ok(width),
    }
}
