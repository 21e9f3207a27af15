//! Coordinates of columns in an orthonormal basis of what they span, by the cheaper of two factorisations that is exact enough.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::{householder, qr::no_pivoting};
use faer::{Conj, Mat, MatRef, Par};

use super::{Cholesky, lower_gram, multiply};

/// Q R = A of more rows than columns, Q's columns orthonormal as far as a tolerance asks.
///
/// It exists for any A, also where columns depend on each other.
pub(crate) struct Qr<'a> {
    a: MatRef<'a, f64>,
    factors: Factors,
}

enum Factors {
    /// Q = A R⁻¹, with Rᵀ the factor of Aᵀ A, and 0 above its diagonal.
    ///
    /// Shifted Cholesky QR (Fukaya et al., SIAM Journal on Scientific Computing 42, 2020): with a shift s of the diagonal
    /// [A; √s I] R⁻¹ is orthonormal, and Q alone where columns do not all but depend on each other. Q R is A all the same.
    Cholesky(Cholesky),
    /// Householder reflections, without pivoting.
    Householder {
        r_transposed: Mat<f64>,
        /// As LAPACK's `geqrf` leaves them: below the diagonal.
        vectors: Mat<f64>,
        coefficients: Mat<f64>,
    },
}

impl<'a> Qr<'a> {
    /// Rᵀ R may differ from Aᵀ A by `tolerance`, in the spectral norm.
    ///
    /// Where that is more than rounding, inner products of the columns are factored, in n_columns² (n_rows + n_columns / 3) operations, and
    /// else a copy of A, in 2 n_columns² (n_rows − n_columns / 3) (Golub and Van Loan, *Matrix Computations*, sections 4.2 and 5.2). With a
    /// tolerance of 0 it is always the copy.
    pub(crate) fn new(a: MatRef<'a, f64>, tolerance: f64) -> Self {
        let factors = of_gram(a, tolerance).map_or_else(|| of_reflections(a), Factors::Cholesky);
        Self { a, factors }
    }

    /// Rᵀ: 0 above the diagonal, and column by column in memory.
    pub(crate) fn r_transposed(&self) -> MatRef<'_, f64> {
        match &self.factors {
            Factors::Cholesky(factor) => factor.0.as_ref(),
            Factors::Householder { r_transposed, .. } => r_transposed.as_ref(),
        }
    }

    /// Q B, for a B with as many rows as R.
    ///
    /// `[n_rows of A, n_columns of B]`. Q itself is never formed.
    pub(crate) fn q_times(&self, b: MatRef<'_, f64>) -> Mat<f64> {
        let mut product = Mat::zeros(self.a.nrows(), b.ncols());
        match &self.factors {
            Factors::Cholesky(factor) => {
                let mut of_columns = b.to_owned();
                factor.solve_transposed(of_columns.as_mut());
                multiply(product.as_mut(), self.a, of_columns.as_ref());
            }
            Factors::Householder { vectors, coefficients, .. } => {
                product.as_mut().subrows_mut(0, b.nrows()).copy_from(b);
                let scratch = householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<f64>(
                    vectors.nrows(),
                    coefficients.nrows(),
                    b.ncols(),
                );
                householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
                    vectors.as_ref(),
                    coefficients.as_ref(),
                    Conj::No,
                    product.as_mut(),
                    Par::Seq,
                    MemStack::new(&mut MemBuffer::new(scratch)),
                );
            }
        }
        product
    }
}

/// The factor of Aᵀ A with a shift of its diagonal; `None` where shift and rounding may be beyond the tolerance, or the shift was not
/// enough.
///
/// Roundings of sums of n_rows and n_columns numbers add up as the root of how many there are, as a rule; Fukaya's shift
/// covers the worst case, thousands of times as much. Where ours is too small, there is no factor, and no harm done.
fn of_gram(a: MatRef<'_, f64>, tolerance: f64) -> Option<Cholesky> {
    let greatest = a.col_iter().map(|column| column.squared_norm_l2()).fold(0.0, f64::max);
    let shift = 16.0 * ((a.nrows() + a.ncols()) as f64).sqrt() * f64::EPSILON * greatest;
    if 2.0 * shift >= tolerance {
        return None;
    }
    let mut gram = lower_gram(a.transpose());
    for i in 0..a.ncols() {
        gram[(i, i)] += shift;
    }
    Cholesky::new(gram, 0.0).ok()
}

fn of_reflections(a: MatRef<'_, f64>) -> Factors {
    let (n_rows, n_columns) = a.shape();
    let mut factors = a.to_owned();
    let block = no_pivoting::factor::recommended_block_size::<f64>(n_rows, n_columns);
    let mut coefficients = Mat::zeros(block, n_columns.min(n_rows));
    let scratch =
        no_pivoting::factor::qr_in_place_scratch::<f64>(n_rows, n_columns, block, Par::Seq, Default::default());
    no_pivoting::factor::qr_in_place(
        factors.as_mut(),
        coefficients.as_mut(),
        Par::Seq,
        MemStack::new(&mut MemBuffer::new(scratch)),
        Default::default(),
    );
    let r = |row: usize, column: usize| if row <= column { factors[(row, column)] } else { 0.0 };
    let r_transposed = Mat::from_fn(n_columns, n_columns, |i, j| r(j, i));
    Factors::Householder { r_transposed, vectors: factors, coefficients }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: &Mat<f64>, expected: &Mat<f64>, bound: f64) {
        assert_eq!(found.shape(), expected.shape());
        let off = (found - expected).norm_max();
        assert!(off <= bound, "off by {off}");
    }

    /// More rows than columns; the last but one column is the second one again, and the last all but so.
    fn dependent() -> Mat<f64> {
        let number = |i: usize, j: usize| ((i * 37 + j * 101 + i * j * 7) % 23) as f64 / 11.0 - 1.0;
        Mat::from_fn(40, 25, |i, j| number(i, if j < 23 { j } else { 1 }) + if j == 24 { 1e-9 * i as f64 } else { 0.0 })
    }

    #[test]
    fn both_factorisations_multiply_to_what_they_were_made_of() {
        let a = dependent();
        let independent = a.as_ref().subcols(0, 12).to_owned();
        for tolerance in [0.0, f64::INFINITY] {
            for a in [&a, &independent] {
                let qr = Qr::new(a.as_ref(), tolerance);
                assert_eq!(matches!(qr.factors, Factors::Householder { .. }), tolerance == 0.0);
                let r_transposed = qr.r_transposed();
                close(&(r_transposed * r_transposed.transpose()), &(a.transpose() * a), 1e-11);
                close(&qr.q_times(r_transposed.transpose()), a, 1e-11);
                for j in 0..a.ncols() {
                    assert!((0..j).all(|i| r_transposed[(i, j)] == 0.0));
                }
            }
            let q = Qr::new(independent.as_ref(), tolerance).q_times(Mat::<f64>::identity(12, 12).as_ref());
            close(&(q.transpose() * &q), &Mat::identity(12, 12), 1e-10);
        }
    }

    #[test]
    fn inner_products_are_factored_where_rounding_is_tolerated() {
        let reflects =
            |a: &Mat<f64>, tolerance| matches!(Qr::new(a.as_ref(), tolerance).factors, Factors::Householder { .. });
        let a = dependent();
        assert!(!reflects(&a, 1e-10));
        assert!(reflects(&a, 1e-15));
        // A row as long as 1e6 times the others.
        let spread = Mat::from_fn(40, 25, |i, j| a[(i, j)] * if i == 0 { 1e6 } else { 1.0 });
        assert!(reflects(&spread, 1e-10));
        // Whatever is tolerated, inner products of nothing have no factor.
        assert!(reflects(&Mat::zeros(3, 2), f64::INFINITY));
    }
}
