//! Ranks that resamples share: the rows are sorted once, and a resample only counts how often each was drawn.

use crate::Error;
use crate::input::{check_count, check_varying_pair};

/// Two columns ranked once, for Spearman's correlation of many resamples of their rows: where
/// [`spearman`](crate::correlation::spearman) sorts, this counts.
///
/// The ranks of a resample follow from how often each distinct value was drawn, so each costs O(n) and no comparison.
/// What it returns has the same bits as [`spearman`](crate::correlation::spearman) of the same rows.
#[derive(Debug, Clone)]
pub struct RankedPair {
    /// Of each row, which of the distinct values it has, counted in ascending order, in x and in y.
    codes: Vec<[u32; 2]>,
    /// How many distinct values there are.
    distinct: [usize; 2],
}

impl RankedPair {
    /// `x`, `y`: 2 ≤ n < 2³¹ finite numbers each; only their order counts. O(n log n).
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`], [`Error::TooFewItems`], [`Error::TooManyItems`], [`Error::NonFinite`]; [`Error::Constant`] where all of
    /// `x` or all of `y` is one value.
    pub fn new(x: &[f64], y: &[f64]) -> Result<Self, Error> {
        check_varying_pair(x, y)?;
        check_few(x.len())?;
        let ((x, distinct_x), (y, distinct_y)) = (codes(x), codes(y));
        Ok(Self { codes: x.into_iter().zip(y).map(|(x, y)| [x, y]).collect(), distinct: [distinct_x, distinct_y] })
    }

    /// Number of rows.
    #[expect(clippy::len_without_is_empty, reason = "there are at least two rows")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Spearman's correlation of some of the rows, given by their indices, in any order, with repetition.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewItems`] for fewer than two rows, [`Error::TooManyItems`] for 2³¹ or more, [`Error::OutOfRange`] for an index that no
    /// row has, [`Error::Undefined`] where the rows have one value in a column.
    pub fn spearman(&self, rows: &[usize]) -> Result<f64, Error> {
        check_count(2, rows.len())?;
        check_few(rows.len())?;
        let mut ranks = self.distinct.map(|distinct| vec![0_i64; distinct]);
        let [x, y] = &mut ranks;
        for (index, &row) in rows.iter().enumerate() {
            let Some(&[code_x, code_y]) = self.codes.get(row) else {
                let high = (self.codes.len() - 1) as f64;
                return Err(Error::OutOfRange {
                    argument: "rows",
                    index: Some(index),
                    value: row as f64,
                    low: 0.0,
                    high,
                });
            };
            // Codes count up to the number of distinct values.
            x[code_x as usize] += 1;
            y[code_y as usize] += 1;
        }
        let n = rows.len() as i64;
        let (xx, yy) = (ranks_of_counts(x, n), ranks_of_counts(y, n));
        if xx == 0 || yy == 0 {
            let reason = "all rows have the same value in a column";
            return Err(Error::Undefined { statistic: "Spearman's correlation", reason });
        }
        let xy: i128 = rows
            .iter()
            .map(|&row| {
                let [code_x, code_y] = self.codes[row];
                i128::from(x[code_x as usize] * y[code_y as usize])
            })
            .sum();
        // As in `spearman`: one root of the product of two exact sums.
        Ok((xy as f64 / (xx as f64 * yy as f64).sqrt()).clamp(-1.0, 1.0))
    }
}

/// Twice a rank less twice the mean rank is below n: under this limit the product of two fits an `i64`.
fn check_few(found: usize) -> Result<(), Error> {
    let limit = i32::MAX as usize;
    if found <= limit { Ok(()) } else { Err(Error::TooManyItems { limit, found }) }
}

/// Turns how often each distinct value occurs into twice its average rank less twice the mean rank; returns the sum of the squares over
/// all n items.
pub(crate) fn ranks_of_counts(counts: &mut [i64], n: i64) -> i128 {
    let (mut before, mut squares) = (0, 0_i128);
    for count in counts {
        let rank = 2 * before + *count + 1 - (n + 1);
        squares += i128::from(*count) * i128::from(rank * rank);
        before += *count;
        *count = rank;
    }
    squares
}

/// Each value's number among the distinct ones in ascending order, and how many those are. All are finite.
fn codes(values: &[f64]) -> (Vec<u32>, usize) {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_unstable_by(|&a, &b| values[a as usize].total_cmp(&values[b as usize]));
    let mut codes = vec![0; values.len()];
    let mut distinct = 0;
    for tied in order.chunk_by(|&a, &b| values[a as usize] == values[b as usize]) {
        for &row in tied {
            codes[row as usize] = distinct;
        }
        distinct += 1;
    }
    (codes, distinct as usize)
}
