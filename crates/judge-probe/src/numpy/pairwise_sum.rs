//! NumPy's order of summation. Everything else sums as it likes.
//!
//! It serves means that scikit-learn compares, such as a grid search's mean scores or the evenness of stratified groups:
//! which of two equal candidates comes first hangs on the last bit. It is not for speed or accuracy, though the error
//! grows with log n and not with n.

/// The sum as NumPy orders it along a contiguous axis. Where scikit-learn compares means that may tie, the last bit decides.
///
/// Below 8 values one after another; up to 128 in eight sums, added up as a tree, and the rest after them; above, by
/// halves of which the first is a multiple of 8. This is `pairwise_sum` in NumPy's `loops_utils.h.src`, and 128 its
/// `PW_BLOCKSIZE`.
///
/// It holds for contiguous values in double precision alone: along another axis NumPy adds row to row.
pub(crate) fn pairwise_sum(values: &[f64]) -> f64 {
    match values.len() {
        0..8 => values.iter().sum(),
        8..=128 => {
            let (eights, rest) = values.as_chunks::<8>();
            let mut sums = [0.0; 8];
            for eight in eights {
                sums.iter_mut().zip(eight).for_each(|(sum, value)| *sum += value);
            }
            let [a, b, c, d, e, f, g, h] = sums;
            rest.iter().fold(((a + b) + (c + d)) + ((e + f) + (g + h)), |sum, value| sum + value)
        }
        n => {
            let half = n / 2 - n / 2 % 8;
            pairwise_sum(&values[..half]) + pairwise_sum(&values[half..])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pairwise_sum;

    /// `(1 / numpy.arange(1, n + 1)).sum()` of NumPy 2.4.6.
    #[test]
    fn the_last_bit_is_numpys() {
        for (n, expected) in [
            (1, 1.0),
            (7, 2.5928571428571425),
            (8, 2.7178571428571425),
            (13, 3.180133755133755),
            (128, 5.433147092589173),
            (129, 5.440899030573669),
            (300, 6.282663880299504),
            (1000, 7.485470860550345),
        ] {
            let values: Vec<f64> = (1..=n).map(|i| 1.0 / f64::from(i)).collect();
            assert_eq!(pairwise_sum(&values).to_bits(), f64::to_bits(expected), "{n}");
        }
    }
}
