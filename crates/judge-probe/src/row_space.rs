//! Rows in as few coordinates as hold them, so that fitting costs what the lesser of rows and features costs. Probes have a few hundred rows of
//! some thousand features.
//!
//! It changes coordinates, multiplies by them and no more: losses, penalties and intercepts are the solvers'.

use std::ops::Range;

use faer::traits::RealField;
use faer::{Mat, MatRef};

use crate::products::{Qr, add_product, check_squares, multiply, transposed};
use crate::{Error, Matrix};

/// The rows in coordinates that lose nothing: with fewer rows than features those of an orthonormal basis of the space that the rows span,
/// which the optimal coefficients lie in. Products, and so the penalty too, stay what they were.
///
/// A QR factorisation finds them without squaring the spread of the features' scales, as inner products of rows would.
pub(crate) struct RowSpace {
    /// `[n_coordinates + 1, n_rows]`: a column per row, its last entry 1, what the intercept multiplies.
    /// n_coordinates is the lesser of n_rows and n_features.
    points: Mat<f64>,
    /// `None` where the coordinates are the features themselves.
    basis: Option<Qr>,
}

impl RowSpace {
    /// [`Error::Overflow`] where the squares of the features do not add up to a finite number.
    ///
    /// O(m² (n_rows + n_features)) for the lesser m of the two, once for all settings that share the features.
    pub(crate) fn new(features: &Matrix) -> Result<Self, Error> {
        check_squares(features)?;
        let columns = transposed(features);
        let (n_features, n_rows) = columns.shape();
        let one = |coordinates: usize, row: usize| row == coordinates;
        if n_rows < n_features {
            let basis = Qr::new(columns);
            let points = Mat::from_fn(n_rows + 1, n_rows, |i, row| if one(n_rows, i) { 1.0 } else { basis.r(i, row) });
            Ok(Self { points, basis: Some(basis) })
        } else {
            let points =
                Mat::from_fn(n_features + 1, n_rows, |i, row| if one(n_features, i) { 1.0 } else { columns[(i, row)] });
            Ok(Self { points, basis: None })
        }
    }

    /// `[n_coordinates + 1, n_rows]`, or without the ones below.
    pub(crate) fn points(&self, with_ones: bool) -> Points<'_> {
        let n_coordinates = self.points.nrows() - 1;
        Points {
            values: self.points.as_ref().subrows(0, n_coordinates + usize::from(with_ones)),
            n_coordinates,
            triangular: self.basis.is_some(),
        }
    }

    /// Coefficients of the features, row by row `[n_columns, n_features]`, of those of the coordinates, `[n_coordinates, n_columns]`.
    ///
    /// The intercept is no coordinate here: the caller passes the penalised ones alone.
    pub(crate) fn of_features(&self, coefficients: MatRef<'_, f64>) -> Vec<f64> {
        let restored = self.basis.as_ref().map(|basis| basis.q_times(coefficients));
        let coefficients = restored.as_ref().map_or(coefficients, Mat::as_ref);
        coefficients.col_iter().flat_map(|column| column.iter().copied()).collect()
    }
}

/// Coordinates that products take together: enough for products of matrices to run at full speed, few enough that little is multiplied by the
/// zeros of a triangle.
const BLOCK: usize = 96;

/// The rows as the solvers see them, `[n_coordinates, n_rows]`, with or without a last coordinate of ones.
///
/// In coordinates of a basis they are the factorisation's triangle, and products leave out what is 0 in it: a third of the
/// operations of a Gram matrix of rectangles remains, and half of the others'.
#[derive(Clone, Copy)]
pub(crate) struct Points<'a> {
    values: MatRef<'a, f64>,
    /// Without the ones.
    n_coordinates: usize,
    /// Coordinate i is 0 in rows before row i.
    triangular: bool,
}

impl Points<'_> {
    /// Coordinates, the ones among them, and rows.
    pub(crate) fn shape(&self) -> (usize, usize) {
        self.values.shape()
    }

    /// Coordinates without the ones: what a penalty bounds.
    pub(crate) fn n_penalised(&self) -> usize {
        self.n_coordinates
    }

    /// Neighbouring coordinates, the first row in which one of them is not 0, and their values from there on.
    fn blocks(&self) -> impl Iterator<Item = (Range<usize>, usize, MatRef<'_, f64>)> {
        let (n_coordinates, triangular) = (self.n_coordinates, self.triangular);
        let of_basis = (0..n_coordinates)
            .step_by(BLOCK)
            .map(move |start| (start..n_coordinates.min(start + BLOCK), if triangular { start } else { 0 }));
        let ones = n_coordinates..self.values.nrows();
        of_basis.chain((!ones.is_empty()).then_some((ones, 0))).map(|(block, from)| {
            let values = self.values.subrows(block.start, block.len()).subcols(from, self.values.ncols() - from);
            (block, from, values)
        })
    }

    /// The linear functions of the rows, `[n_columns, n_rows]`, whose coefficients are `[n_coordinates, n_columns]`.
    pub(crate) fn functions(&self, coefficients: MatRef<'_, f64>) -> Mat<f64> {
        let (n_rows, n_columns) = (self.values.ncols(), coefficients.ncols());
        let mut functions = Mat::zeros(n_columns, n_rows);
        for (block, from, values) in self.blocks() {
            let coefficients = coefficients.subrows(block.start, block.len());
            add_product(functions.as_mut().subcols_mut(from, n_rows - from), coefficients.transpose(), values);
        }
        functions
    }

    /// `[n_coordinates, n_columns]`: the sum over rows of the points, times what stands for each row, `[n_columns, n_rows]`.
    ///
    /// It carries derivatives by the functions of rows over to derivatives by coefficients.
    pub(crate) fn weighted_sum(&self, of_rows: MatRef<'_, f64>) -> Mat<f64> {
        let ((n_coordinates, n_rows), n_columns) = (self.values.shape(), of_rows.nrows());
        let mut sum = Mat::zeros(n_coordinates, n_columns);
        for (block, from, values) in self.blocks() {
            let of_rows = of_rows.subcols(from, n_rows - from);
            multiply(sum.as_mut().subrows_mut(block.start, block.len()), values, of_rows.transpose());
        }
        sum
    }

    /// The diagonal of P diag(weights) Pᵀ, `[n_coordinates]`, for weights `[n_rows]`.
    pub(crate) fn gram_diagonal(&self, weights: &[f64]) -> Vec<f64> {
        let mut diagonal = vec![0.0; self.values.nrows()];
        for (values, weight) in self.values.col_iter().zip(weights) {
            diagonal.iter_mut().zip(values.iter()).for_each(|(sum, value)| *sum += weight * value * value);
        }
        diagonal
    }

    /// S⁻¹ P diag(weights) Pᵀ S⁻¹, of which the lower triangle counts, for weights of 0 or more, `[n_rows]`, and the diagonal of S, `[n_coordinates]`.
    ///
    /// As a Gram matrix of S⁻¹ P times the roots of the weights, whose entries `round` brings into the precision of the
    /// products.
    pub(crate) fn lower_gram<T: RealField>(&self, weights: &[f64], scale: &[f64], round: impl Fn(f64) -> T) -> Mat<T> {
        let (n_coordinates, n_rows) = self.values.shape();
        let mut weighted = Mat::zeros(n_coordinates, n_rows);
        for (row, weight) in weights.iter().enumerate() {
            let root = weight.sqrt();
            let values = weighted.col_as_slice_mut(row).iter_mut().zip(self.values.col(row).iter().zip(scale));
            values.for_each(|(to, (value, scale))| *to = round(value * root / scale));
        }
        let mut gram = Mat::zeros(n_coordinates, n_coordinates);
        for (block, from, _) in self.blocks() {
            let rows = |coordinates: Range<usize>| {
                weighted.submatrix(coordinates.start, from, coordinates.len(), n_rows - from)
            };
            let into = gram.as_mut().submatrix_mut(block.start, 0, block.len(), block.end);
            multiply(into, rows(block.clone()), rows(0..block.end).transpose());
        }
        gram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without a pattern that products could hide.
    fn number(i: usize, j: usize) -> f64 {
        ((i * 37 + j * 101 + i * j * 7) % 23) as f64 / 11.0 - 1.0
    }

    fn close(found: &Mat<f64>, expected: impl Fn(usize, usize) -> f64) {
        for (j, column) in found.col_iter().enumerate() {
            for (i, value) in column.iter().enumerate() {
                assert!((value - expected(i, j)).abs() < 1e-10, "({i}, {j}): {value} and {}", expected(i, j));
            }
        }
    }

    #[test]
    fn products_by_blocks_are_those_of_whole_matrices() -> Result<(), Error> {
        // More coordinates than two blocks: those of a basis, a triangle, and the features themselves.
        for (n_rows, n_features) in [(2 * BLOCK + 5, 2 * BLOCK + 40), (2 * BLOCK + 40, 2 * BLOCK + 5), (3, 2)] {
            let rows = (0..n_rows).map(|i| (0..n_features).map(|j| number(i, j)).collect::<Vec<_>>());
            let space = RowSpace::new(&Matrix::from_rows(rows)?)?;
            for with_ones in [false, true] {
                let points = space.points(with_ones);
                let ((n_coordinates, _), p) = (points.shape(), points.values);
                assert_eq!(points.n_penalised() + usize::from(with_ones), n_coordinates);
                let coefficients = Mat::from_fn(n_coordinates, 3, number);
                close(&points.functions(coefficients.as_ref()), |column, row| {
                    (0..n_coordinates).map(|i| coefficients[(i, column)] * p[(i, row)]).sum()
                });
                let of_rows = Mat::from_fn(3, n_rows, number);
                close(&points.weighted_sum(of_rows.as_ref()), |i, column| {
                    (0..n_rows).map(|row| p[(i, row)] * of_rows[(column, row)]).sum()
                });
                let weights: Vec<f64> = (0..n_rows).map(|row| number(row, 5).abs()).collect();
                let scale: Vec<f64> = (0..n_coordinates).map(|i| 1.0 + i as f64).collect();
                let gram = points.lower_gram(&weights, &scale, |value| value);
                for (i, square) in points.gram_diagonal(&weights).into_iter().enumerate() {
                    assert!((square / scale[i].powi(2) - gram[(i, i)]).abs() < 1e-10, "{i}");
                }
                close(&gram, |i, j| {
                    let sum: f64 = (0..n_rows).map(|row| p[(i, row)] * weights[row] * p[(j, row)]).sum();
                    // Only the lower triangle counts.
                    if i < j { gram[(i, j)] } else { sum / (scale[i] * scale[j]) }
                });
            }
        }
        Ok(())
    }
}
