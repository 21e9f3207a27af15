//! Dense products and factorisations. All run on the calling thread, so that no result depends on the number of cores: what is worth
//! sharing out is whole fits.
//!
//! What is owned here: the conversion from this crate's row-major matrices to faer's column-major views, products, and
//! the three factorisations that fits need (singular values, Cholesky, and in `qr` QR). What is solved with them is the
//! estimators' business.
//!
//! Nothing here checks for overflow but [`check_squares`], which each fit calls once, before anything else. If the
//! squares of all features add up to a finite number, then by Cauchy and Schwarz so does any inner product of rows or of
//! features.
//!
//! Parallelism is `Par::Seq` throughout, and scratch memory is allocated for each call.

mod qr;

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::{self, factor::LltError};
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::svd::{self, ComputeSvdVectors};
use faer::linalg::{matmul::matmul, triangular_solve};
use faer::traits::RealField;
use faer::{Accum, Mat, MatMut, MatRef, Par};

use crate::{Error, Matrix};
pub(crate) use qr::Qr;

/// The transpose of a matrix that stands row by row: one column per row.
///
/// `[n_features, n_rows]`. A view: nothing is copied.
pub(crate) fn transposed(matrix: &Matrix) -> MatRef<'_, f64> {
    MatRef::from_column_major_slice(matrix.values(), matrix.n_features(), matrix.n_rows())
}

/// A B, in place of what is in `into`.
///
/// Shapes must fit, or faer panics. O(n k m) for `[n, k]` times `[k, m]`.
pub(crate) fn multiply<T: RealField>(into: MatMut<'_, T>, left: MatRef<'_, T>, right: MatRef<'_, T>) {
    matmul(into, Accum::Replace, left, right, T::one_impl(), Par::Seq);
}

/// Adds A B to what is in `into`.
///
/// Shapes and cost as of [`multiply`].
pub(crate) fn add_product(into: MatMut<'_, f64>, left: MatRef<'_, f64>, right: MatRef<'_, f64>) {
    matmul(into, Accum::Add, left, right, 1.0, Par::Seq);
}

/// A Aᵀ, of which the lower triangle alone is filled.
///
/// Order n for an `[n, k]` matrix, in n² k operations, half those of a full product. The upper triangle is 0; whoever
/// reads whole columns has to mirror it.
pub(crate) fn lower_gram(a: MatRef<'_, f64>) -> Mat<f64> {
    let mut gram = Mat::zeros(a.nrows(), a.nrows());
    triangular::matmul(
        gram.as_mut(),
        BlockStructure::TriangularLower,
        Accum::Replace,
        a,
        BlockStructure::Rectangular,
        a.transpose(),
        BlockStructure::Rectangular,
        1.0,
        Par::Seq,
    );
    gram
}

/// Σ x y in an order that depends on the length alone, over eight sums at once.
///
/// Eight independent sums let the compiler use vector instructions, which a single sum forbids; their number is fixed, so
/// that the result is the same on every machine. Callers pass equal lengths; others are not noticed.
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    let (x_chunks, x_rest) = x.as_chunks::<8>();
    let (y_chunks, y_rest) = y.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (x, y) in x_chunks.iter().zip(y_chunks) {
        for ((sum, x), y) in sums.iter_mut().zip(x).zip(y) {
            *sum += x * y;
        }
    }
    let rest: f64 = x_rest.iter().zip(y_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f64>() + rest
}

/// [`Error::Overflow`] where the squares of the features do not add up to a finite number: no product of rows can then be trusted.
///
/// The error names the feature at which the running total over features stops being finite. O(n_rows n_features).
pub(crate) fn check_squares(features: &Matrix) -> Result<(), Error> {
    let mut squares = vec![0.0; features.n_features()];
    for row in features.rows() {
        squares.iter_mut().zip(row).for_each(|(sum, value)| *sum += value * value);
    }
    let mut total = 0.0;
    // Totals that are finite for every feature may still overflow together.
    let overflows = |squares: &f64| {
        total += squares;
        !f64::is_finite(total)
    };
    match squares.iter().position(overflows) {
        Some(feature) => Err(Error::Overflow { feature }),
        None => Ok(()),
    }
}

/// Singular values in falling order, as many as the lesser of rows and features, and as many right singular vectors, one after another.
///
/// [`Error::NoDecomposition`].
///
/// The features are taken as they are, so the caller centres them. They are decomposed transposed, which makes their
/// right vectors the left ones. Vectors are orthonormal and `[n_features]` each; their signs are arbitrary.
pub(crate) fn right_singular_vectors(features: &Matrix) -> Result<(Vec<f64>, Vec<f64>), Error> {
    let columns = transposed(features);
    let (n_features, n_rows) = columns.shape();
    let size = n_features.min(n_rows);
    let (mut values, mut vectors) = (Diag::zeros(size), Mat::zeros(n_features, size));
    let (left, right) = (ComputeSvdVectors::Thin, ComputeSvdVectors::No);
    let scratch = svd::svd_scratch::<f64>(n_features, n_rows, left, right, Par::Seq, Default::default());
    let stack = &mut MemBuffer::new(scratch);
    let (into, stack) = (Some(vectors.as_mut()), MemStack::new(stack));
    svd::svd(columns, values.as_mut(), into, None, Par::Seq, stack, Default::default())
        .map_err(|_| Error::NoDecomposition { n_rows, n_features })?;
    let values = values.column_vector().iter().copied().collect();
    Ok((values, vectors.col_iter().flat_map(|column| column.iter().copied()).collect()))
}

/// The first pivot that is 0, negative or NaN but for rounding.
#[derive(Debug, PartialEq)]
pub(crate) struct NotPositiveDefinite {
    /// Its position on the diagonal, from 0. Of a Gram matrix: the first vector that is a combination of those before it.
    pub(crate) pivot: usize,
}

/// L Lᵀ = A for a symmetric positive definite A: the only such factorisation of this crate.
///
/// Holds L, 0 above the diagonal. In double precision, but where A⁻¹ is wanted roughly and often.
pub(crate) struct Cholesky<T = f64>(Mat<T>);

impl<T: RealField + Copy + Into<f64>> Cholesky<T> {
    /// Reads the lower triangle. A pivot counts as 0 up to `rounding` times the diagonal entry it is left of: what rounding of A's own
    /// entries may leave where nothing is. With `rounding` 0 only what has no factorisation is refused.
    ///
    /// A is consumed: the factor takes its place. O(order³ / 3).
    pub(crate) fn new(mut a: Mat<T>, rounding: f64) -> Result<Self, NotPositiveDefinite> {
        let order = a.nrows();
        let diagonal: Vec<f64> = (0..order).map(|i| a[(i, i)].into()).collect();
        let scratch = llt::factor::cholesky_in_place_scratch::<T>(order, Par::Seq, Default::default());
        // No regularisation: the default leaves pivots as they are and stops at one that is not positive.
        let factored = llt::factor::cholesky_in_place(
            a.as_mut(),
            Default::default(),
            Par::Seq,
            MemStack::new(&mut MemBuffer::new(scratch)),
            Default::default(),
        );
        // Columns before one that fails are done; one of them may have been left with rounding alone and spoilt the others.
        let n_done = match factored {
            Ok(_) => order,
            Err(LltError::NonPositivePivot { index }) => index.min(order),
        };
        // The square of L's diagonal entry is the pivot. NaN compares as false and so is refused.
        let stands = |i: usize| a[(i, i)].into() * a[(i, i)].into() > rounding * diagonal[i];
        if let Some(pivot) = (0..n_done).find(|&i| !stands(i)).or((n_done < order).then_some(n_done)) {
            return Err(NotPositiveDefinite { pivot });
        }
        // faer works above the diagonal and leaves its remains there.
        for column in 1..order {
            a.col_as_slice_mut(column)[..column].fill(T::zero_impl());
        }
        Ok(Self(a))
    }

    /// Replaces B by A⁻¹ B.
    ///
    /// B has as many rows as A, and any number of columns. O(order²) for each column.
    pub(crate) fn solve(&self, mut b: MatMut<'_, T>) {
        triangular_solve::solve_lower_triangular_in_place(self.0.as_ref(), b.as_mut(), Par::Seq);
        triangular_solve::solve_upper_triangular_in_place(self.0.transpose(), b.as_mut(), Par::Seq);
    }
}

impl Cholesky {
    /// Replaces B by L⁻ᵀ B.
    ///
    /// The second half of [`solve`](Self::solve).
    fn solve_transposed(&self, b: MatMut<'_, f64>) {
        triangular_solve::solve_upper_triangular_in_place(self.0.transpose(), b, Par::Seq);
    }

    /// The factor with its entries in single precision, half the memory to read.
    ///
    /// It is one of some positive definite matrix, whatever the rounding: entries change by a part of 2⁻²⁴ each, which L's
    /// condition can enlarge, the root of A's. They must lie within that precision's range, as those of a matrix with a
    /// diagonal of 1 do.
    pub(crate) fn rounded(&self) -> Cholesky<f32> {
        Cholesky(Mat::from_fn(self.0.nrows(), self.0.ncols(), |i, j| self.0[(i, j)] as f32))
    }
}

impl Cholesky<f32> {
    /// Replaces B by A⁻¹ B as [`solve`](Self::solve) does, for numbers of any size: each column is rounded in units of its greatest.
    pub(crate) fn solve_roughly(&self, mut b: MatMut<'_, f64>) {
        let greatest = |values: faer::ColRef<'_, f64>| values.iter().fold(0.0, |most, value| value.abs().max(most));
        // A column of zeros stays one.
        let units: Vec<f64> =
            b.as_ref().col_iter().map(greatest).map(|most| if most > 0.0 { most } else { 1.0 }).collect();
        let mut rounded = Mat::from_fn(b.nrows(), b.ncols(), |i, column| (b[(i, column)] / units[column]) as f32);
        self.solve(rounded.as_mut());
        for (column, unit) in units.into_iter().enumerate() {
            let values = b.as_mut().col_mut(column).iter_mut().zip(rounded.col_as_slice(column));
            values.for_each(|(value, &solved)| *value = f64::from(solved) * unit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pivot_without_substance_is_named() {
        // Of the Gram matrix of columns of which one is a combination of those before it, or all but so.
        let gram = |almost: f64| {
            let columns = |i: usize, j: usize| match j {
                3 => ((i * 37) % 11) as f64 - ((i * 53) % 7) as f64 + almost * ((i % 2) as f64),
                1 => ((i * 37) % 11) as f64,
                2 => ((i * 53) % 7) as f64,
                j => ((i * 31 + j * j) % 13) as f64,
            };
            let columns = Mat::from_fn(40, 6, columns);
            lower_gram(columns.transpose())
        };
        let rounding = 40.0 * f64::EPSILON;
        assert_eq!(Cholesky::new(gram(0.0), rounding).err(), Some(NotPositiveDefinite { pivot: 3 }));
        assert!(Cholesky::new(gram(1e-3), rounding).is_ok());
        assert_eq!(Cholesky::new(Mat::<f64>::zeros(2, 2), 0.0).err(), Some(NotPositiveDefinite { pivot: 0 }));
        let negative = Mat::from_fn(3, 3, |i, j| if i != j { 0.0 } else { [1.0, 4.0, -1.0][i] });
        assert_eq!(Cholesky::new(negative, 0.0).err(), Some(NotPositiveDefinite { pivot: 2 }));
        let nan = Mat::from_fn(2, 2, |i, _| if i == 0 { 1.0 } else { f64::NAN });
        assert_eq!(Cholesky::new(nan, 0.0).err(), Some(NotPositiveDefinite { pivot: 1 }));

        let factor = Cholesky::new(gram(1.0), rounding).ok().map(|factor| {
            let mut x = Mat::from_fn(6, 1, |i, _| i as f64);
            factor.solve(x.as_mut());
            x
        });
        let (a, x) = (gram(1.0), factor.unwrap());
        for i in 0..6 {
            let entry = |j: usize| if j <= i { a[(i, j)] } else { a[(j, i)] };
            let product: f64 = (0..6).map(|j| entry(j) * x[(j, 0)]).sum();
            assert!((product - i as f64).abs() < 1e-9, "{i}: {product}");
        }
    }

    #[test]
    fn a_rounded_factor_solves_roughly_whatever_the_size() {
        // A diagonal of about 1.
        let a = |i: usize, j: usize| if i == j { 1.25 } else { 1.0 / (1 + i + j) as f64 };
        let factor = Cholesky::new(Mat::from_fn(20, 20, a), 0.0).ok().unwrap().rounded();
        let expected = |i: usize, column: usize| [1e-200, 1e200, 0.0][column] * ((i * 7) % 5) as f64;
        let product = |i: usize, column: usize| (0..20).map(|j| a(i, j) * expected(j, column)).sum::<f64>();
        let mut x = Mat::from_fn(20, 3, product);
        factor.solve_roughly(x.as_mut());
        for column in 0..3 {
            let size = [1e-200, 1e200, 1.0][column];
            for i in 0..20 {
                assert!((x[(i, column)] - expected(i, column)).abs() <= 1e-5 * size, "({i}, {column})");
            }
        }
    }
}
