//! Pairs of rows that resamples share: the rows are sorted once, and a resample only counts how often each was drawn.

use crate::Error;
use crate::correlation::pairs::{PairCounts, Ties};
use crate::correlation::tree::BinaryIndexedTree;
use crate::input::check_varying_pair;

/// Two columns sorted once, for the pairs of many resamples of their rows: where [`PairCounts::new`] sorts, this counts. Same numbers.
///
/// A resample costs O(n) and O(log m) for each of its different rows, m being the smaller of the numbers of values in `x` and in `y`.
pub(crate) struct SortedPairs {
    /// Which cell each row lies in.
    cell_of_row: Vec<u32>,
    /// Each pair of values that some row has, by their numbers in ascending order: first of the column with more values, then of the other
    /// from 1.
    cells: Vec<[u32; 2]>,
    /// Values of the column with fewer.
    fewer: usize,
    /// Whether it is `x` that has fewer.
    x_has_fewer: bool,
}

impl SortedPairs {
    /// `x`, `y`: 2 ≤ n < 2³² finite numbers each; only their order counts. O(n log n).
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::NonFinite`], [`Error::Constant`] as those of Kendall's correlation;
    /// [`Error::TooManyItems`].
    pub(crate) fn new(x: &[f64], y: &[f64]) -> Result<Self, Error> {
        check_varying_pair(x, y)?;
        let limit = u32::MAX as usize;
        if x.len() > limit {
            return Err(Error::TooManyItems { limit, found: x.len() });
        }
        let (values_x, values_y) = (distinct(x), distinct(y));
        let x_has_fewer = values_x.len() < values_y.len();
        let ((many, values), (few, fewer)) =
            if x_has_fewer { ((y, values_y), (x, values_x)) } else { ((x, values_x), (y, values_y)) };
        let number = |values: &[f64], value: f64| values.partition_point(|known| *known < value) as u32;
        let of_row: Vec<[u32; 2]> =
            many.iter().zip(few).map(|(&a, &b)| [number(&values, a), number(&fewer, b) + 1]).collect();
        let mut cells = of_row.clone();
        cells.sort_unstable();
        cells.dedup();
        let cell_of_row = of_row.iter().map(|cell| cells.partition_point(|known| known < cell) as u32).collect();
        Ok(Self { cell_of_row, cells, fewer: fewer.len(), x_has_fewer })
    }

    /// How the pairs of some of the rows fall, at least two, given by their indices below n, in any order, with repetition.
    pub(crate) fn counts(&self, rows: &[usize]) -> PairCounts {
        let mut counts = vec![0_u32; self.cells.len()];
        rows.iter().for_each(|&row| counts[self.cell_of_row[row] as usize] += 1);
        // Of the column with fewer values, rows that the other column puts lower.
        let mut lower = BinaryIndexedTree::new(self.fewer);
        let mut of_few = vec![0_usize; self.fewer];
        // Rows drawn of each value of the other column, and of the last of them the cells that are not in the tree yet.
        let mut of_many = Vec::with_capacity(self.cells.len());
        let mut pending: Vec<(usize, i64)> = Vec::with_capacity(self.fewer);
        let (mut size, mut before, mut both, mut discordant) = (0_i64, 0_i64, 0_u64, 0_i64);
        let mut last = None;
        for (&[many, few], &count) in self.cells.iter().zip(&counts).filter(|(_, count)| **count > 0) {
            if last != Some(many) {
                pending.drain(..).for_each(|(few, count)| lower.add(few, count));
                of_many.push(size as usize);
                before += size;
                (size, last) = (0, Some(many));
            }
            let (few, count) = (few as usize, i64::from(count));
            discordant += count * (before - lower.count_to(few));
            pending.push((few, count));
            of_few[few - 1] += count as usize;
            size += count;
            both += (count * (count - 1) / 2) as u64;
        }
        of_many.push(size as usize);
        let ties = |sizes: &[usize]| Ties::new(sizes.iter().copied().filter(|&size| size > 0));
        let (many, few) = (ties(&of_many), ties(&of_few));
        let (x, y) = if self.x_has_fewer { (few, many) } else { (many, few) };
        PairCounts::of(rows.len() as u64, discordant as u64, x, y, both)
    }
}

/// The different values, ascending; -0 and +0 are one.
fn distinct(values: &[f64]) -> Vec<f64> {
    let mut values: Vec<f64> = values.iter().map(|value| value + 0.0).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlation::{KendallTest, kendall_tau_b, kendall_tau_c, somers_d};
    use crate::groups::take;
    use crate::resampling::Bootstrap;

    /// Whatever the numbers of values, and whichever column has fewer.
    #[test]
    fn resamples_have_the_bits_of_correlations_of_their_rows() {
        let draws = Bootstrap { resamples: 40, ..Bootstrap::default() };
        for (n, levels_x, levels_y) in [(2, 2, 2), (5, 2, 3), (30, 3, 40), (30, 40, 3), (60, 1_000, 1_000), (200, 5, 5)]
        {
            let column = |seed: u64, levels: usize| -> Vec<f64> {
                let rows = Bootstrap { seed, ..draws }.rows(levels, n);
                (0..n)
                    .map(|row| rows[row % levels] as f64 - 2.0 + row as f64 / (3 * n) as f64 * f64::from(levels > 50))
                    .collect()
            };
            let (x, y) = (column(1, levels_x), column(2, levels_y));
            let Ok(sorted) = SortedPairs::new(&x, &y) else {
                assert!(kendall_tau_b(&x, &y, KendallTest::Auto).is_err());
                continue;
            };
            for resample in 0..draws.resamples {
                let rows = draws.rows(n, resample);
                let (x, y) = (take(&x, &rows), take(&y, &rows));
                let counts = sorted.counts(&rows);
                let Ok(tau_b) = kendall_tau_b(&x, &y, KendallTest::Asymptotic) else {
                    assert!(counts.check_varies().is_err_and(|error| error.is_undefined()));
                    continue;
                };
                assert_eq!(counts.check_varies(), Ok(()));
                assert_eq!(counts.tau_b(), tau_b.estimate);
                assert_eq!(counts.tau_c(), kendall_tau_c(&x, &y, KendallTest::Asymptotic).unwrap().estimate);
                assert_eq!(counts.somers_d_given_x(), somers_d(&x, &y).unwrap().estimate);
                assert_eq!(counts.somers_d_given_y(), somers_d(&y, &x).unwrap().estimate);
            }
        }
    }
}
