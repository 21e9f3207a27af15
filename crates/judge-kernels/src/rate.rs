//! How fast products of packed weights are on this machine: a yardstick for forward passes.
//!
//! `engine/rate.rs` offers [`product_rate`] to users, for the CPU. The time to pack the activations counts, as it does in a pass.

use std::time::Instant;

use half::bf16;

use super::kernel::Kernel;
use super::lines::Lines;
use super::pack::PackedLinear;
use super::supported::{NoKernel, Supported};
use super::tile::{LANES, Word};
use crate::numbers::Numbers;

/// Operations per second that products of packed bf16 weights reach with rayon's threads: the best
/// of 8 tries at 1024 rows by 3072 by 3072. A multiply-add counts as two operations. No forward
/// pass is faster than its weights' products at this rate. `None` is the fastest kernel that the
/// processor has.
///
/// # Errors
/// [`NoKernel`] if the processor lacks the kernel.
pub fn product_rate(kernel: Option<Kernel>) -> Result<f64, NoKernel> {
    const ROWS_OF_X: usize = 1024;
    const WIDTH: usize = 3072;
    // Small whole numbers, so that nothing overflows and no number is subnormal. All rows of the weights are equal.
    let mut matrix = PackedLinear::zeros(Supported::choose(kernel)?, Word::Pair, WIDTH, WIDTH);
    let panel: Vec<bf16> = (0..LANES * WIDTH).map(|i| bf16::from_f32((i % WIDTH % 17) as f32 - 8.0)).collect();
    for first in (0..WIDTH).step_by(LANES) {
        matrix.fill(first, Numbers::Bf16(&panel[..LANES.min(WIDTH - first) * WIDTH]));
    }
    let mut x = Lines::zeros(ROWS_OF_X * WIDTH);
    x.iter_mut().enumerate().for_each(|(i, x)| *x = (i % 13) as f32 - 6.0);
    // The first try is slower: it touches fresh memory.
    let (mut out, mut scratch) = (Lines::zeros(ROWS_OF_X * WIDTH), Lines::default());
    let mut rate = || {
        let start = Instant::now();
        matrix.apply(&x, ROWS_OF_X, &mut out, &mut scratch);
        (2 * ROWS_OF_X * WIDTH * WIDTH) as f64 / start.elapsed().as_secs_f64()
    };
    Ok((0..8).map(|_| rate()).fold(0.0, f64::max))
}
