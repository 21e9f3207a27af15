//! Random numbers, the same ones for each seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

pub(crate) struct Draw(ChaCha8Rng);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// In [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * 2_f64.powi(-53)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    /// Box and Muller (1958); half a step is added, since 0 has no logarithm.
    pub(crate) fn normal(&mut self) -> f64 {
        let half_a_step = 2_f64.powi(-54);
        let radius = (-2.0 * (self.uniform() + half_a_step).ln()).sqrt();
        radius * (std::f64::consts::TAU * (self.uniform() + half_a_step)).cos()
    }
}
