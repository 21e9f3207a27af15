//! Pooling what a layer has of each position, row by row, so that a sequence may come in pieces.

use judge_core::Pooling;

/// States that have been pooled so far.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pooling: Pooling,
    count: usize,
    /// Of `Mean`, the sums.
    sums: Vec<f64>,
    /// Of the others, the state chosen so far.
    best: Vec<f32>,
}

impl Pool {
    pub(crate) fn new(pooling: Pooling) -> Self {
        Self { pooling, count: 0, sums: Vec::new(), best: Vec::new() }
    }

    /// Takes the next position's state `[d_model]`.
    pub(crate) fn add(&mut self, row: &[f32]) {
        self.count += 1;
        match self.pooling {
            Pooling::Mean => {
                self.sums.resize(row.len(), 0.0);
                self.sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
            }
            _ if self.count == 1 => self.best = row.to_vec(),
            Pooling::Last => self.best.copy_from_slice(row),
            Pooling::Min => self.replace(row, |x, best| x < best),
            Pooling::Max => self.replace(row, |x, best| x > best),
        }
    }

    /// A NaN stays: it must not be pooled away.
    fn replace(&mut self, row: &[f32], better: fn(f32, f32) -> bool) {
        for (best, &x) in self.best.iter_mut().zip(row) {
            if x.is_nan() || better(x, *best) {
                *best = x;
            }
        }
    }

    /// The pooled state `[d_model]`; empty if there was none. Means are taken in `f64`.
    pub(crate) fn finish(self) -> Vec<f32> {
        match self.pooling {
            Pooling::Mean => self.sums.into_iter().map(|sum| (sum / self.count as f64) as f32).collect(),
            _ => self.best,
        }
    }
}
