//! Random draws that are the same on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A keyed stream of draws: the same `(seed, stream)` gives the same draws on every platform.
///
/// Only integer arithmetic and exactly rounded floating-point operations are used (no `ln`, no `cos`), so that the data are the
/// same bytes everywhere; the ranges and distributions of the `rand` crate do not promise that across its releases.
#[derive(Debug, Clone)]
pub struct Draw {
    rng: ChaCha8Rng,
}

impl Draw {
    /// The stream number `stream` of `seed`. Streams of one seed are independent.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self { rng }
    }

    /// A uniform integer in `0..n`; 0 if `n` is 0 or 1.
    pub fn below(&mut self, n: usize) -> usize {
        // Multiply-shift; its bias is below n / 2^64.
        ((u128::from(self.rng.next_u64()) * n as u128) >> 64) as usize
    }

    /// A uniform integer in `low..=high`; `low` if the range is empty.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let width = usize::try_from(high - low + 1).unwrap_or(1);
        low + self.below(width) as i64
    }

    /// A uniform number in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// One of `choices`, which must not be empty.
    pub fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    /// Puts `values` in a random order (Fisher–Yates).
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for end in (1..values.len()).rev() {
            values.swap(end, self.below(end + 1));
        }
    }

    /// An index drawn with the given non-negative weights, of which at least one must be positive.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let mut left = self.unit() * weights.iter().sum::<f64>();
        for (index, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return index;
            }
        }
        weights.len() - 1
    }

    /// A draw with mean 0 and variance 1, close to normal: the sum of twelve uniform draws minus 6 (Irwin–Hall).
    pub fn noise(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}
