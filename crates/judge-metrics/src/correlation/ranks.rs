use crate::Error;
use crate::input::check_finite;

/// Ranks 1 to n, ties sharing the average of the ranks they span (`scipy.stats.rankdata`, method `average`).
///
/// `values`: n finite numbers; -0 and +0 are equal. An empty slice has no ranks and gives an empty vector. O(n log n).
///
/// # Errors
///
/// [`Error::NonFinite`] for a NaN or an infinity, which have no place in an order of scores.
///
/// ```
/// assert_eq!(judge_metrics::correlation::average_ranks(&[0.3, 0.1, 0.3, 0.9])?, [2.5, 1.0, 2.5, 4.0]);
/// # Ok::<(), judge_metrics::Error>(())
/// ```
#[doc(alias = "rankdata")]
pub fn average_ranks(values: &[f64]) -> Result<Vec<f64>, Error> {
    check_finite("values", values)?;
    Ok(doubled_ranks(values).into_iter().map(|rank| rank as f64 / 2.0).collect())
}

/// Twice the average ranks, which are whole numbers: sums over them are exact. `values` are finite.
pub(crate) fn doubled_ranks(values: &[f64]) -> Vec<i64> {
    let mut order: Vec<(f64, usize)> = values.iter().copied().zip(0..).collect();
    // On finite numbers the total order differs from `<` only in putting -0 before +0, which stay neighbours.
    order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));

    let mut ranks = vec![0; values.len()];
    let mut before = 0;
    for tied in order.chunk_by(|a, b| a.0 == b.0) {
        let after = before + tied.len();
        for &(_, index) in tied {
            ranks[index] = (before + 1 + after) as i64;
        }
        before = after;
    }
    ranks
}
