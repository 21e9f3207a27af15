//! Rows in as few coordinates as hold them, so that fitting costs what the lesser of rows and features costs. Probes have a few hundred rows of
//! some thousand features.
//!
//! It changes coordinates and no more: losses, penalties and intercepts are the solvers'.

use faer::{Mat, MatRef};

use crate::products::{Qr, check_squares, transposed};
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
    pub(crate) fn points(&self, with_ones: bool) -> MatRef<'_, f64> {
        let n_coordinates = self.points.nrows() - 1;
        self.points.as_ref().subrows(0, n_coordinates + usize::from(with_ones))
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
