//! One tensor that is learnt, with its first values.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

use crate::arch::ModelSpec;

/// One tensor of the checkpoint that is being made, and the optimiser's moments of it. The three
/// lists are row-major and of the same length.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parameter {
    /// Its name in a Hugging Face folder.
    pub(super) name: String,
    /// Its shape there.
    pub(super) shape: Vec<usize>,
    /// The numbers that are learnt.
    pub(super) values: Vec<f32>,
    /// Running mean of the gradient, from 0.
    pub(super) mean: Vec<f32>,
    /// Running mean of the gradient's square, from 0.
    pub(super) square: Vec<f32>,
}

/// The first values of a tensor. Matrices get noise around 0; norms start as the identity, which is
/// 1, or 0 where the family adds an offset of 1; biases and other vectors start at 0.
pub(super) fn initial(
    config: &ModelSpec,
    init_spread: f64,
    name: &str,
    shape: &[usize],
    rng: &mut ChaCha8Rng,
) -> Vec<f32> {
    let len = shape.iter().product();
    if shape.len() == 1 {
        let is_norm = name.ends_with("norm.weight");
        // The norm of a delta rule has no offset.
        let is_plain = config.blocks.iter().flat_map(|block| &block.delta).any(|delta| delta.norm == name);
        return vec![if is_norm && (is_plain || config.norm.offset == 0.0) { 1.0 } else { 0.0 }; len];
    }
    let into_residual = name.ends_with("o_proj.weight") || name.ends_with("down_proj.weight");
    let spread = if into_residual { init_spread / (2.0 * config.n_layers() as f64).sqrt() } else { init_spread };
    let mut uniform = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    // Twelve uniform draws have variance 1: near enough to normal, and the same on every machine.
    (0..len).map(|_| (((0..12).map(|_| uniform()).sum::<f64>() - 6.0) * spread) as f32).collect()
}
