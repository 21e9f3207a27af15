//! Random samples of the populations that are simulated.

use std::f64::consts::TAU;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::simulations::Simulation;

/// A stream of random numbers of its own for each sample.
pub(crate) struct Draw(ChaCha8Rng);

impl Draw {
    pub(crate) fn new(seed: u64, simulation: &Simulation, run: usize) -> Self {
        // The line's name and size, not its place in the list: a line that is added changes no other.
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        for (i, byte) in simulation.name.bytes().chain(simulation.n.to_le_bytes()).enumerate() {
            key[8 + i % 24] = key[8 + i % 24].wrapping_mul(31).wrapping_add(byte);
        }
        let mut stream = ChaCha8Rng::from_seed(key);
        stream.set_stream(run as u64);
        Self(stream)
    }

    /// Uniform in (0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal (Box and Muller, 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }

    pub(crate) fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// An index drawn with the given probabilities.
    pub(crate) fn category(&mut self, probabilities: &[f64]) -> usize {
        let mut left = self.uniform();
        let hit = probabilities.iter().position(|p| {
            left -= p;
            left < 0.0
        });
        hit.unwrap_or(probabilities.len() - 1)
    }

    /// Two columns of n normal numbers with correlation `rho`.
    pub(crate) fn correlated(&mut self, n: usize, rho: f64) -> (Vec<f64>, Vec<f64>) {
        (0..n)
            .map(|_| {
                let (x, noise) = (self.normal(), self.normal());
                (x, rho * x + (1.0 - rho * rho).sqrt() * noise)
            })
            .unzip()
    }
}
