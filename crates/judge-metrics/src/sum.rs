//! Pairwise summation: the rounding error grows with log n where a running sum's grows with n.

/// Below this length a running sum is exact enough and faster.
const BLOCK: usize = 128;

pub(crate) fn sum(values: &[f64]) -> f64 {
    if values.len() <= BLOCK {
        return values.iter().sum();
    }
    let (left, right) = values.split_at(values.len() / 2);
    sum(left) + sum(right)
}

/// Sum of products; both slices have the same length.
pub(crate) fn dot(x: &[f64], y: &[f64]) -> f64 {
    if x.len() <= BLOCK {
        return x.iter().zip(y).map(|(x, y)| x * y).sum();
    }
    let middle = x.len() / 2;
    let ((x0, x1), (y0, y1)) = (x.split_at(middle), y.split_at(middle));
    dot(x0, y0) + dot(x1, y1)
}
