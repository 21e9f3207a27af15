//! Symmetric positive definite systems.

/// The first pivot that is 0, negative or NaN but for rounding.
#[derive(Debug, PartialEq)]
pub(crate) struct NotPositiveDefinite {
    pub(crate) pivot: usize,
}

/// Replaces `b` by x with A x = b. `a` is A row by row, of which the lower triangle counts and is overwritten; the order is that
/// of `b`. A pivot counts as 0 below `rounding` times the diagonal it is left of.
pub(crate) fn solve(mut a: Vec<f64>, b: &mut [f64], rounding: f64) -> Result<(), NotPositiveDefinite> {
    let n = b.len();
    // A = L Lᵀ, row by row, so that every inner product runs over two contiguous stretches.
    for i in 0..n {
        let (above, row) = a.split_at_mut(i * n);
        for (j, above) in above.chunks_exact(n).enumerate() {
            row[j] = (row[j] - dot(&row[..j], &above[..j])) / above[j];
        }
        let pivot = row[i] - dot(&row[..i], &row[..i]);
        if pivot.is_nan() || pivot <= rounding * row[i] {
            return Err(NotPositiveDefinite { pivot: i });
        }
        row[i] = pivot.sqrt();
    }
    // L z = b, then Lᵀ x = z by columns of Lᵀ, which are rows of L.
    for (i, row) in a.chunks_exact(n).enumerate() {
        b[i] = (b[i] - dot(&row[..i], &b[..i])) / row[i];
    }
    for (i, row) in a.chunks_exact(n).enumerate().rev() {
        b[i] /= row[i];
        let x = b[i];
        b[..i].iter_mut().zip(row).for_each(|(z, l)| *z -= l * x);
    }
    Ok(())
}

pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}
