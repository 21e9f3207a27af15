//! Linear functions of rows, the one product that every prediction goes through.
//!
//! Each value is an inner product over its own row in a fixed order, and not a block of a matrix product, whose summation may depend on how
//! many rows there are: a row's score must be the same alone and in a batch of a thousand.

use crate::matrices::products::dot;
use crate::{Error, Matrix, SparseMatrix};

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

/// The same of sparse rows: a value is the sum over the features that are not 0, ascending.
pub(crate) fn sparse_functions(
    features: &SparseMatrix,
    coefficients: &Matrix,
    intercepts: &[f64],
) -> Result<Matrix, Error> {
    let (expected, found) = (coefficients.n_features(), features.n_features());
    if found != expected {
        return Err(Error::FeatureCount { expected, found });
    }
    let mut values = Vec::with_capacity(features.n_rows() * coefficients.n_rows());
    for row in features.rows() {
        let row: Vec<(usize, f64)> = row.collect();
        let product = |function: &[f64]| row.iter().map(|&(i, value)| function[i] * value).sum::<f64>();
        values.extend(coefficients.rows().zip(intercepts).map(|(function, intercept)| product(function) + intercept));
    }
    Matrix::new(values, coefficients.n_rows())
}

/// The position of the first of the greatest values, of which there must be one and none NaN.
pub(crate) fn first_greatest(values: &[f64]) -> usize {
    let greater = |best: usize, i: usize| if values[i] > values[best] { i } else { best };
    (1..values.len()).fold(0, greater)
}
