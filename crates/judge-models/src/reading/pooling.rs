//! Pooling what a layer has of each position, row by row, so that a sequence may come in pieces.
//!
//! Engines add a sequence's rows in the order of its positions. Each coordinate is pooled for
//! itself and in that order, in `f64` for means, so the result does not depend on how a prompt was
//! cut. A pool may be cloned where sequences part: each continues from what they share.

use judge_core::request::Pooling;

/// The rows of a sequence's first positions, pooled: states `[d_model]`, or entropies `[n_heads]`.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    /// How rows become one.
    pooling: Pooling,
    /// Rows so far.
    count: usize,
    /// For `Mean`, the sums of each coordinate; else empty.
    sums: Vec<f64>,
    /// For the other poolings, the row so far: the first, the last, or the extremes of each
    /// coordinate. Empty before the first row, and for `Mean`.
    best: Vec<f32>,
}

impl Pool {
    /// A pool of no rows.
    pub(crate) fn new(pooling: Pooling) -> Self {
        Self { pooling, count: 0, sums: Vec::new(), best: Vec::new() }
    }

    /// Takes the next position's row. All rows have the same width.
    pub(crate) fn add(&mut self, row: &[f32]) {
        self.count += 1;
        match self.pooling {
            Pooling::Mean => {
                self.sums.resize(row.len(), 0.0);
                self.sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
            }
            _ if self.count == 1 => self.best = row.to_vec(),
            Pooling::First => {}
            Pooling::Last => self.best.copy_from_slice(row),
            Pooling::Min => self.replace(row, |x, best| x < best),
            Pooling::Max => self.replace(row, |x, best| x > best),
        }
    }

    /// Takes the coordinates of a row that are better than those so far. A NaN replaces any number
    /// and stays: it must not be pooled away, so that the reading is refused.
    fn replace(&mut self, row: &[f32], better: fn(f32, f32) -> bool) {
        for (best, &x) in self.best.iter_mut().zip(row) {
            if x.is_nan() || better(x, *best) {
                *best = x;
            }
        }
    }

    /// The pooled row; empty if there was none. Means are rounded to `f32` here.
    pub(crate) fn finish(self) -> Vec<f32> {
        match self.pooling {
            Pooling::Mean => self.sums.into_iter().map(|sum| (sum / self.count as f64) as f32).collect(),
            _ => self.best,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pooling_is_over_positions() {
        let pool = |states: &[f32], pooling| {
            let mut pool = Pool::new(pooling);
            states.chunks_exact(2).for_each(|row| pool.add(row));
            pool.finish()
        };
        let states = [1.0, -2.0, 3.0, 0.5, -4.0, 6.0]; // [3, 2]
        assert_eq!(pool(&states, Pooling::First), [1.0, -2.0]);
        assert_eq!(pool(&states, Pooling::Last), [-4.0, 6.0]);
        assert_eq!(pool(&states, Pooling::Mean), [0.0, 1.5]);
        assert_eq!(pool(&states, Pooling::Min), [-4.0, -2.0]);
        assert_eq!(pool(&states, Pooling::Max), [3.0, 6.0]);
        assert!(pool(&[1.0, 0.0, f32::NAN, 0.0, 2.0, 0.0], Pooling::Max)[0].is_nan());
    }
}
