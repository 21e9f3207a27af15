//! How fast products of packed weights are on this machine: a yardstick for forward passes.
//!
//! `engine/rate.rs` offers [`product_rate`] to users, for the CPU; `speeds.rs` (feature `bench`)
//! times [`Product`]s of other shapes beside the limits of `limits.rs`. The time to pack the
//! activations counts, as it does in a pass.

use std::time::Instant;

use half::bf16;

use super::kernel::Kernel;
use super::lines::Lines;
use super::pack::PackedLinear;
use super::supported::Supported;
use super::tile::{LANES, Word};
use crate::Error;
use crate::weights::Numbers;

/// Operations per second that products of packed bf16 weights reach with rayon's threads: the best
/// of 8 tries at 1024 rows by 3072 by 3072. A multiply-add counts as two operations. No forward
/// pass is faster than its weights' products at this rate. `None` is the fastest kernel that the
/// processor has.
///
/// # Errors
/// [`Error::NoKernel`] if the processor lacks the kernel.
pub(crate) fn product_rate(kernel: Option<Kernel>) -> Result<f64, Error> {
    let mut product = Product::new(Supported::choose(kernel)?, 1024, [3072, 3072]);
    Ok((0..8).map(|_| product.rate()).fold(0.0, f64::max))
}

/// A product of activations with packed bf16 weights that can be timed repeatedly. Its numbers are
/// small whole ones, so that nothing overflows and no number is subnormal.
pub(crate) struct Product {
    /// Rows of activations.
    rows: usize,
    /// `[d_in, d_out]`.
    shape: [usize; 2],
    /// The weights; all rows are equal.
    matrix: PackedLinear,
    /// Activations, `[rows, d_in]`.
    x: Lines<f32>,
    /// The result, `[rows, d_out]`.
    out: Lines<f32>,
    /// Memory of the product, which the first try allocates.
    scratch: Lines<u32>,
}

impl Product {
    /// Prepares `[rows, d_in]` activations and weights of `shape`, which is `[d_in, d_out]`.
    pub(crate) fn new(kernel: Supported, rows: usize, shape: [usize; 2]) -> Self {
        let [d_in, d_out] = shape;
        let mut matrix = PackedLinear::zeros(kernel, Word::Pair, d_out, d_in);
        let row: Vec<bf16> = (0..d_in).map(|i| bf16::from_f32((i % 17) as f32 - 8.0)).collect();
        let at_once: Vec<bf16> = row.iter().copied().cycle().take(LANES * d_in).collect();
        for first in (0..d_out).step_by(LANES) {
            matrix.fill(first, Numbers::Bf16(&at_once[..LANES.min(d_out - first) * d_in]));
        }
        let mut x = Lines::zeros(rows * d_in);
        x.iter_mut().enumerate().for_each(|(i, x)| *x = (i % 13) as f32 - 6.0);
        Self { rows, shape, matrix, x, out: Lines::zeros(rows * d_out), scratch: Lines::default() }
    }

    /// Multiplies once and returns operations per second. The first try is slower: it touches fresh
    /// memory.
    pub(crate) fn rate(&mut self) -> f64 {
        let start = Instant::now();
        self.matrix.apply(&self.x, self.rows, &mut self.out, &mut self.scratch);
        (2 * self.rows * self.shape[0] * self.shape[1]) as f64 / start.elapsed().as_secs_f64()
    }
}
