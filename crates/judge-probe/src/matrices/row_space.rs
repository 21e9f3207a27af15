//! Rows in as few coordinates as hold them, so that fitting costs what the lesser of rows and features costs. Probes have a few hundred
//! rows of some thousand features.
//!
//! It changes coordinates, multiplies by them and no more: losses, penalties and intercepts are the solvers'.

use std::ops::Range;

use faer::traits::RealField;
use faer::{Mat, MatRef};

use crate::estimators::labels::EncodedLabels;
use crate::estimators::parameters::check_c_and_tol;
use crate::matrices::products::{Qr, add_product, check_squares, multiply, transposed};
use crate::{ClassWeight, Error, Matrix};

/// The rows in coordinates that lose nothing: with fewer rows than features those of an orthonormal basis of the space that the rows span,
/// which the optimal coefficients lie in. Products, and so the penalty too, stay what they were, as far as the fits' [`Exactness`] asks.
pub(crate) struct RowSpace<'a> {
    /// `[n_features, n_rows]`.
    columns: MatRef<'a, f64>,
    /// `None` where the coordinates are the features themselves.
    basis: Option<Qr<'a>>,
}

/// What a fit asks of the coordinates: those of its settings that say how far inner products of rows may be off.
pub(crate) struct Exactness {
    pub(crate) c: f64,
    pub(crate) class_weight: ClassWeight,
    pub(crate) tol: f64,
}

impl Exactness {
    /// [`Error::OutOfRange`]: both are finite and above 0.
    pub(crate) fn check(&self) -> Result<(), Error> {
        check_c_and_tol(self.c, self.tol)
    }

    /// By how much inner products of rows may be off, in the spectral norm, without moving the minimum by more than half of `tol`: of a
    /// mean over rows of a loss, weighted by what their class counts over the sum S, and ‖W‖² / (2 c S). `None` for settings that are out
    /// of range.
    ///
    /// Adding d to the square of every row gives each a feature of its own, √d. At the minimum W = Σ αᵢ xᵢ with
    /// |αᵢ| ≤ √2 c sᵢ, for a loss whose slope is at most √2 and a row of weight sᵢ; without its own feature the function of
    /// row i changes by tᵢ = d αᵢ. To first order that cancels against the penalty of these features in the dual bound, and
    /// half the curvature times tᵢ² remains, at most tᵢ² / 4 ≤ (c sᵢ d)² / 2. Any symmetric change of norm d does the same.
    fn tolerance(&self, labels: &EncodedLabels) -> Option<f64> {
        let greatest = self.class_weight.of_classes(&labels.counts).into_iter().fold(0.0, f64::max);
        self.check().is_ok().then(|| self.tol.sqrt() / (self.c * greatest))
    }
}

impl<'a> RowSpace<'a> {
    /// Coordinates of the features and positions of the labels for some fits that share them, exact enough for the strictest. Settings that
    /// are out of range ask for nothing: they are refused by the fits.
    ///
    /// O(m² (n_rows + n_features)) for the lesser m of the two.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`], [`Error::OneClass`]; [`Error::Overflow`] where the squares of the features do not add up to a finite number.
    pub(crate) fn with_labels(
        features: &'a Matrix,
        labels: &[i64],
        fits: impl IntoIterator<Item = Exactness>,
    ) -> Result<(Self, EncodedLabels), Error> {
        let labels = EncodedLabels::new(features, labels)?;
        check_squares(features)?;
        let tolerance = fits.into_iter().filter_map(|fit| fit.tolerance(&labels)).fold(f64::INFINITY, f64::min);
        let columns = transposed(features);
        let basis = (features.n_rows() < features.n_features()).then(|| Qr::new(columns, tolerance));
        Ok((Self { columns, basis }, labels))
    }

    /// One fit of each setting to labels and coordinates that they share, in their order.
    pub(crate) fn fit_each<S, F>(
        settings: &[S],
        features: &'a Matrix,
        labels: &[i64],
        exactness: impl Fn(&S) -> Exactness,
        fit: impl Fn(&S, &Self, &EncodedLabels) -> Result<F, Error>,
    ) -> Vec<Result<F, Error>> {
        let data = Self::with_labels(features, labels, settings.iter().map(exactness));
        let fit = |settings: &S| match &data {
            Ok((space, labels)) => fit(settings, space, labels),
            Err(error) => Err(error.clone()),
        };
        settings.iter().map(fit).collect()
    }

    /// With a last coordinate of ones, which the intercept multiplies, or without.
    pub(crate) fn points(&self, with_ones: bool) -> Points<'_> {
        Points {
            values: self.basis.as_ref().map_or(self.columns, |basis| basis.r_transposed().transpose()),
            with_ones,
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

/// Coordinates that products take together: enough for products of matrices to run at full speed, few enough that little is multiplied by
/// the zeros of a triangle.
const BLOCK: usize = 96;

/// The rows as the solvers see them, `[n_coordinates, n_rows]`, with or without a last coordinate of ones.
///
/// In coordinates of a basis they are the factorisation's triangle, and products leave out what is 0 in it: a third of the
/// operations of a Gram matrix of rectangles remains, and half of the others'.
#[derive(Clone, Copy)]
pub(crate) struct Points<'a> {
    /// Without the ones, `[n_penalised, n_rows]`.
    values: MatRef<'a, f64>,
    with_ones: bool,
    /// If true, coordinate i is 0 in rows before row i, and the values of a coordinate are neighbours in memory; if false, those of a row
    /// are.
    triangular: bool,
}

impl Points<'_> {
    /// Coordinates, the ones among them, and rows.
    pub(crate) fn shape(&self) -> (usize, usize) {
        (self.n_penalised() + usize::from(self.with_ones), self.values.ncols())
    }

    /// Coordinates without the ones: what a penalty bounds.
    pub(crate) fn n_penalised(&self) -> usize {
        self.values.nrows()
    }

    /// The first row in which a coordinate from this one on is not 0.
    fn first_row(&self, coordinate: usize) -> usize {
        if self.triangular { coordinate } else { 0 }
    }

    /// Neighbouring coordinates, the first row in which one of them is not 0, and their values from there on. The ones are not among them.
    fn blocks(&self) -> impl Iterator<Item = (Range<usize>, usize, MatRef<'_, f64>)> {
        let (n_penalised, n_rows) = self.values.shape();
        (0..n_penalised).step_by(BLOCK).map(move |start| {
            let (block, from) = (start..n_penalised.min(start + BLOCK), self.first_row(start));
            let values = self.values.submatrix(start, from, block.len(), n_rows - from);
            (block, from, values)
        })
    }

    /// The linear functions of the rows, `[n_columns, n_rows]`, whose coefficients are `[n_coordinates, n_columns]`.
    pub(crate) fn functions(&self, coefficients: MatRef<'_, f64>) -> Mat<f64> {
        let (n_rows, n_columns) = (self.values.ncols(), coefficients.ncols());
        // The intercepts, where there are some.
        let ones = coefficients.subrows(self.n_penalised(), usize::from(self.with_ones));
        // Either way the points enter as they lie in memory, which products of few columns are fast with.
        if self.triangular {
            let mut functions = Mat::from_fn(n_rows, n_columns, |_, column| ones.col(column).iter().sum());
            for (block, from, values) in self.blocks() {
                let coefficients = coefficients.subrows(block.start, block.len());
                add_product(functions.as_mut().subrows_mut(from, n_rows - from), values.transpose(), coefficients);
            }
            functions.transpose().to_owned()
        } else {
            let mut functions = Mat::from_fn(n_columns, n_rows, |column, _| ones.col(column).iter().sum());
            add_product(functions.as_mut(), coefficients.subrows(0, self.n_penalised()).transpose(), self.values);
            functions
        }
    }

    /// `[n_coordinates, n_columns]`: the sum over rows of the points, times what stands for each row, `[n_columns, n_rows]`.
    ///
    /// It carries derivatives by the functions of rows over to derivatives by coefficients.
    pub(crate) fn weighted_sum(&self, of_rows: MatRef<'_, f64>) -> Mat<f64> {
        let ((n_coordinates, n_rows), n_columns) = (self.shape(), of_rows.nrows());
        let of_rows = of_rows.transpose().to_owned();
        let mut sum = Mat::zeros(n_coordinates, n_columns);
        for (block, from, values) in self.blocks() {
            let of_rows = of_rows.subrows(from, n_rows - from);
            multiply(sum.as_mut().subrows_mut(block.start, block.len()), values, of_rows);
        }
        for i in self.n_penalised()..n_coordinates {
            (0..n_columns).for_each(|column| sum[(i, column)] = of_rows.col_as_slice(column).iter().sum());
        }
        sum
    }

    /// The diagonal of P diag(weights) Pᵀ, `[n_coordinates]`, for weights `[n_rows]`.
    pub(crate) fn gram_diagonal(&self, weights: &[f64]) -> Vec<f64> {
        let mut diagonal = vec![0.0; self.shape().0];
        self.in_memory_order(|i, row, value| diagonal[i] += weights[row] * value * value);
        diagonal
    }

    /// S⁻¹ P diag(weights) Pᵀ S⁻¹, of which the lower triangle counts, for weights of 0 or more, `[n_rows]`, and the diagonal of S,
    /// `[n_coordinates]`.
    ///
    /// As a Gram matrix of S⁻¹ P times the roots of the weights, whose entries `round` brings into the precision of the
    /// products.
    pub(crate) fn lower_gram<T: RealField>(&self, weights: &[f64], scale: &[f64], round: impl Fn(f64) -> T) -> Mat<T> {
        let (n_coordinates, n_rows) = self.shape();
        let roots: Vec<f64> = weights.iter().map(|weight| weight.sqrt()).collect();
        // In memory as the values are.
        let (mut of_coordinates, mut of_rows);
        let mut weighted = if self.triangular {
            of_coordinates = Mat::zeros(n_rows, n_coordinates);
            of_coordinates.as_mut().transpose_mut()
        } else {
            of_rows = Mat::zeros(n_coordinates, n_rows);
            of_rows.as_mut()
        };
        self.in_memory_order(|i, row, value| weighted[(i, row)] = round(value * roots[row] / scale[i]));
        let weighted = weighted.as_ref();
        let mut gram = Mat::zeros(n_coordinates, n_coordinates);
        let blocks = self.blocks().map(|(block, from, _)| (block, from));
        for (block, from) in blocks.chain(self.with_ones.then_some((self.n_penalised()..n_coordinates, 0))) {
            let rows = |coordinates: Range<usize>| {
                weighted.submatrix(coordinates.start, from, coordinates.len(), n_rows - from)
            };
            let into = gram.as_mut().submatrix_mut(block.start, 0, block.len(), block.end);
            multiply(into, rows(block.clone()), rows(0..block.end).transpose());
        }
        gram
    }

    /// Each value but the triangle's zeros, by coordinate and row, and the ones.
    fn in_memory_order(&self, mut see: impl FnMut(usize, usize, f64)) {
        let (n_penalised, n_rows) = self.values.shape();
        if self.triangular {
            for (i, coordinate) in self.values.row_iter().enumerate() {
                coordinate.iter().enumerate().skip(self.first_row(i)).for_each(|(row, value)| see(i, row, *value));
            }
        } else {
            for (row, point) in self.values.col_iter().enumerate() {
                point.iter().enumerate().for_each(|(i, value)| see(i, row, *value));
            }
        }
        if self.with_ones {
            (0..n_rows).for_each(|row| see(n_penalised, row, 1.0));
        }
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
        // More coordinates than two blocks: those of either basis, a triangle, and the features themselves.
        let exact = || Exactness { c: 1e30, class_weight: ClassWeight::Uniform, tol: 1e-14 };
        for (n_rows, n_features, exact) in [
            (2 * BLOCK + 5, 2 * BLOCK + 40, None),
            (2 * BLOCK + 5, 2 * BLOCK + 40, Some(exact())),
            (2 * BLOCK + 40, 2 * BLOCK + 5, None),
            (3, 2, None),
        ] {
            let rows = (0..n_rows).map(|i| (0..n_features).map(|j| number(i, j)).collect::<Vec<_>>());
            let features = Matrix::from_rows(rows)?;
            let labels: Vec<i64> = (0..n_rows as i64).map(|row| row % 2).collect();
            let (space, _) = RowSpace::with_labels(&features, &labels, exact)?;
            for with_ones in [false, true] {
                let points = space.points(with_ones);
                let (n_coordinates, n_penalised) = (points.shape().0, points.n_penalised());
                assert_eq!(n_penalised + usize::from(with_ones), n_coordinates);
                let value = |i, row| if i < n_penalised { points.values[(i, row)] } else { 1.0 };
                let p = Mat::from_fn(n_coordinates, n_rows, value);
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
