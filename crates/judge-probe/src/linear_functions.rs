//! Linear functions of rows, the one product that every prediction goes through.
//!
//! Each value is an inner product over its own row in a fixed order, and not a block of a matrix product, whose summation may depend on how many
//! rows there are: a row's score must be the same alone and in a batch of a thousand.

use crate::products::dot;
use crate::{Error, Matrix};

/// `[n_rows, n_functions]`: coefficients `[n_functions, n_features]` times each row, and the intercept. A row's values do not depend on the
/// other rows, in any bit.
///
/// [`Error::FeatureCount`]; [`Error::NonFiniteFeature`] where a value overflows.
pub(crate) fn linear_functions(features: &Matrix, coefficients: &Matrix, intercepts: &[f64]) -> Result<Matrix, Error> {
    features.check_features(coefficients.n_features())?;
    let of_row =
        |row| coefficients.rows().zip(intercepts).map(move |(function, intercept)| dot(row, function) + intercept);
    Matrix::new(features.rows().flat_map(of_row).collect(), coefficients.n_rows())
}

/// The position of the first of the greatest values, of which there must be one and none NaN.
pub(crate) fn first_greatest(values: &[f64]) -> usize {
    let greater = |best: usize, i: usize| if values[i] > values[best] { i } else { best };
    (1..values.len()).fold(0, greater)
}
