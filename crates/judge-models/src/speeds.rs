//! How fast products and attention are beside what the kernel's instructions could do, for the
//! benchmark `products`. Not part of the API (feature `bench`).
//!
//! This file owns what is timed, how often and in which order; the timed code is
//! `engine/packed/rate.rs` and `engine/packed/limits.rs`. Limits are measured anew in turn with
//! everything else, so that all rates are of the same machine in the same state.

use crate::engine::packed::{Attention, Product, Supported, rate_in_registers, rate_near};
use crate::{Error, Kernel};

/// Products that are timed, `[d_in, d_out]`: those of a block of Qwen3-0.6B, and the largest of an
/// 8B model.
const SHAPES: [[usize; 2]; 5] = [[1024, 4096], [1024, 6144], [3072, 1024], [2048, 1024], [4096, 14336]];

/// Rows of activations: a full pass, and texts being written, sixteen and one.
const ROWS: [usize; 3] = [1024, 16, 1];

/// Lengths in positions of the sequences whose attention is timed.
const POSITIONS: [usize; 2] = [512, 2048];

/// Operations per second, each the best of some tries that took turns with the limits, so that a
/// busy machine spoils none of them alone. A multiply-add counts as two operations. All of rayon's
/// threads work.
#[derive(Clone, Debug)]
pub struct Speeds {
    /// The kernel, as `--kernel` names it.
    pub kernel: Kernel,
    /// The matrix unit on what is in its registers; `None` if the kernel does not use it.
    pub registers: Option<f64>,
    /// The kernel's own block of a product, rows and weights in the nearest cache.
    pub near: f64,
    /// Products of packed weights: rows, `[d_in, d_out]`, and their rate, packing of the
    /// activations included.
    pub products: Vec<(usize, [usize; 2], f64)>,
    /// Attention of Qwen3-0.6B's heads to a sequence of so many positions; only what a query sees
    /// counts.
    pub attention: Vec<(usize, f64)>,
}

/// Times everything `tries` times and keeps the best rates. `kernel` `None` is the fastest that the
/// processor has. With 0 tries all rates are 0.
///
/// # Errors
/// [`Error::NoKernel`] if the processor lacks the kernel.
pub fn speeds(kernel: Option<Kernel>, tries: usize) -> Result<Speeds, Error> {
    let kernel = Supported::choose(kernel)?;
    let mut speeds =
        Speeds { kernel: kernel.kernel(), registers: None, near: 0.0, products: Vec::new(), attention: Vec::new() };
    let limits = |speeds: &mut Speeds| {
        speeds.near = speeds.near.max(rate_near(kernel));
        speeds.registers = rate_in_registers(kernel).map(|rate| rate.max(speeds.registers.unwrap_or(0.0)));
    };
    for rows in ROWS {
        for shape in SHAPES {
            let (mut product, mut best) = (Product::new(kernel, rows, shape), 0.0_f64);
            for _ in 0..tries {
                limits(&mut speeds);
                best = best.max(product.rate());
            }
            speeds.products.push((rows, shape, best));
        }
    }
    for positions in POSITIONS {
        let (mut attention, mut best) = (Attention::new(kernel, positions), 0.0_f64);
        for _ in 0..tries {
            limits(&mut speeds);
            best = best.max(attention.rate());
        }
        speeds.attention.push((positions, best));
    }
    Ok(speeds)
}
