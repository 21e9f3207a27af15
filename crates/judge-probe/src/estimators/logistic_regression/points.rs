//! The rows that a fit multiplies by: in coordinates of a `RowSpace`, or as they are where most features are 0.
//!
//! Sparse rows are never made dense and no matrix of coordinates by coordinates is formed from them: products cost what the
//! values that are not 0 cost.

use faer::{Mat, MatRef};

use crate::SparseMatrix;
use crate::matrices::row_space::{self, RowSpace};

/// What is learnt from.
#[allow(clippy::large_enum_variant, reason = "a fit has one of them")]
pub(super) enum Features<'a> {
    /// Of dense rows.
    Dense(RowSpace<'a>),
    /// The coordinates are the features themselves. Squares cannot overflow: rows have length 1.
    Sparse(&'a SparseMatrix),
}

impl Features<'_> {
    /// With a last coordinate of ones, which the intercept multiplies, or without.
    pub(super) fn points(&self, with_ones: bool) -> Points<'_> {
        match self {
            Self::Dense(space) => Points::Dense(space.points(with_ones)),
            Self::Sparse(features) => Points::Sparse { features, with_ones },
        }
    }

    /// Coefficients of the features, row by row `[n_columns, n_features]`, of those of the coordinates, `[n_coordinates, n_columns]`.
    pub(super) fn of_features(&self, coefficients: MatRef<'_, f64>) -> Vec<f64> {
        match self {
            Self::Dense(space) => space.of_features(coefficients),
            Self::Sparse(_) => coefficients.col_iter().flat_map(|column| column.iter().copied()).collect(),
        }
    }
}

/// The rows as the solver sees them, `[n_coordinates, n_rows]`, as [`row_space::Points`].
pub(super) enum Points<'a> {
    Dense(row_space::Points<'a>),
    Sparse { features: &'a SparseMatrix, with_ones: bool },
}

impl Points<'_> {
    /// Coordinates, the ones among them, and rows.
    pub(super) fn shape(&self) -> (usize, usize) {
        match self {
            Self::Dense(points) => points.shape(),
            Self::Sparse { features, with_ones } => {
                (features.n_features() + usize::from(*with_ones), features.n_rows())
            }
        }
    }

    /// Coordinates without the ones: what the penalty bounds.
    pub(super) fn n_penalised(&self) -> usize {
        match self {
            Self::Dense(points) => points.n_penalised(),
            Self::Sparse { features, .. } => features.n_features(),
        }
    }

    /// The linear functions of the rows, `[n_columns, n_rows]`, whose coefficients are `[n_coordinates, n_columns]`.
    pub(super) fn functions(&self, coefficients: MatRef<'_, f64>) -> Mat<f64> {
        match self {
            Self::Dense(points) => points.functions(coefficients),
            Self::Sparse { features, .. } => {
                // A feature's coefficients become neighbours in memory.
                let coefficients = coefficients.transpose().to_owned();
                let mut functions = Mat::zeros(coefficients.nrows(), features.n_rows());
                for (row, of_row) in features.rows().enumerate() {
                    let functions = functions.col_as_slice_mut(row);
                    of_row
                        .chain(self.ones())
                        .for_each(|(i, value)| add(functions, coefficients.col_as_slice(i), value));
                }
                functions
            }
        }
    }

    /// `[n_coordinates, n_columns]`: the sum over rows of the points, times what stands for each row, `[n_columns, n_rows]`.
    pub(super) fn weighted_sum(&self, of_rows: &Mat<f64>) -> Mat<f64> {
        match self {
            Self::Dense(points) => points.weighted_sum(of_rows.as_ref()),
            Self::Sparse { features, .. } => {
                let mut sum = Mat::zeros(of_rows.nrows(), self.shape().0);
                for (row, of_row) in features.rows().enumerate() {
                    let weights = of_rows.col_as_slice(row);
                    of_row.chain(self.ones()).for_each(|(i, value)| add(sum.col_as_slice_mut(i), weights, value));
                }
                sum.transpose().to_owned()
            }
        }
    }

    /// The diagonal of P diag(weights) Pᵀ, `[n_coordinates]`, for weights `[n_rows]`.
    pub(super) fn gram_diagonal(&self, weights: &[f64]) -> Vec<f64> {
        match self {
            Self::Dense(points) => points.gram_diagonal(weights),
            Self::Sparse { features, .. } => {
                let mut diagonal = vec![0.0; self.shape().0];
                for (of_row, weight) in features.rows().zip(weights) {
                    of_row.chain(self.ones()).for_each(|(i, value)| diagonal[i] += weight * value * value);
                }
                diagonal
            }
        }
    }

    /// The last coordinate of a sparse row, where there is one.
    fn ones(&self) -> Option<(usize, f64)> {
        match self {
            Self::Sparse { features, with_ones: true } => Some((features.n_features(), 1.0)),
            _ => None,
        }
    }
}

/// Adds `factor` times one vector to another.
fn add(to: &mut [f64], vector: &[f64], factor: f64) {
    to.iter_mut().zip(vector).for_each(|(to, value)| *to += factor * value);
}
