//! What blocks without keys remember of a sequence, and the causal convolution that they have in
//! common.
//!
//! Owns [`Memory`], the convolution channel by channel, and LFM2's gated short convolution. The
//! delta rule of Qwen3.5 and the state space of Mamba-2, which have the same convolution in front, are
//! `delta.rs` and `mamba.rs`. `kv_cache.rs` keeps a memory for each such block of a sequence, and
//! `block_ops.rs` hands it to the bodies.
//!
//! The convolution has `kernel` taps for each channel and looks back over as many positions:
//!
//! ```text
//! out[p][c] = Σ_t taps[t][c] · x[p - (kernel - 1) + t][c]      t = 0 .. kernel - 1, the oldest first
//!
//! x of     ... p-3  p-2  p-1 | p   p+1  p+2         kernel = 4
//!              └─ recent ──┘ └── rows of this pass
//! ```
//!
//! The rows before those of a pass come from the memory, in the same order of the sum. So the bits
//! do not depend on where a sequence was cut. Before the first position all numbers are 0.

use std::mem;

use judge_arch::{BlockSpec, ConvSpec};
use judge_kernels::vector::worth_a_task;
use rayon::prelude::*;

use crate::engine::block::Conv;

/// All that one block without keys knows of a sequence's past. Its size does not depend on the
/// length of the sequence. A copy serves each sequence that continues a shared prefix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Memory {
    /// The last rows of channels that the convolution took, the oldest first:
    /// `[kernel - 1, channels]`. Empty in a block with attention.
    pub(super) recent: Vec<f32>,
    /// The states of a delta rule's heads, `[n_value_heads, key_dim, value_dim]`, or of a state
    /// space's, `[n_heads, d_state, head_dim]`; empty for a short convolution.
    pub(super) heads: Vec<f32>,
}

impl Memory {
    /// The memory of a sequence that has not begun: all zeros, with the sizes of this block.
    pub(crate) fn new(block: &BlockSpec) -> Self {
        let [recent, heads] = Self::sizes(block).map(|size| vec![0.0; size]);
        Self { recent, heads }
    }

    /// How many f32 numbers the block remembers of a sequence; 0 for a block with attention.
    pub(crate) fn size(block: &BlockSpec) -> usize {
        Self::sizes(block).iter().sum()
    }

    /// Lengths of `recent` and `heads` for this block.
    fn sizes(block: &BlockSpec) -> [usize; 2] {
        if let Some(delta) = &block.delta {
            let shape = delta.shape;
            [(shape.kernel - 1) * shape.channels(), shape.d_value() * shape.key_dim]
        } else if let Some(mamba) = block.state_space() {
            let shape = mamba.shape;
            [(shape.kernel - 1) * shape.channels(), shape.d_inner() * shape.d_state]
        } else if let Some(conv) = &block.conv {
            [(conv.kernel - 1) * conv.channels, 0]
        } else {
            [0, 0]
        }
    }

    /// Moves `recent` behind new positions. `rows` are `stride` apart, and each begins with its
    /// channels as the convolution took them; what is behind those of the last row may be missing. Of
    /// the old rows those stay that are still among the last `kernel - 1`.
    pub(super) fn remember(&mut self, rows: &[f32], stride: usize, channels: usize) {
        let (before, count) = (self.recent.len() / channels, rows.len().div_ceil(stride));
        let old = mem::take(&mut self.recent);
        let old_rows = old.chunks_exact(channels).skip(count.min(before));
        let new_rows = rows.chunks(stride).skip(count.saturating_sub(before)).map(|row| &row[..channels]);
        self.recent = old_rows.chain(new_rows).flatten().copied().collect();
    }
}

/// The weights of a convolution, transposed from a checkpoint's `[channels, kernel]` to the
/// `[kernel, channels]` that [`convolve`] takes. The oldest position's come first.
pub(super) fn taps(weights: &[f32], kernel: usize) -> Vec<f32> {
    (0..kernel).flat_map(|tap| weights.iter().skip(tap).step_by(kernel).copied()).collect()
}

/// What the convolution gives at one position, `out` `[channels]`.
///
/// - `taps`: `[kernel, channels]`, see [`taps`].
/// - `recent`: the `kernel - 1` rows before the first of `rows`, `[kernel - 1, channels]`.
/// - `rows`: `stride` apart, each beginning with its channels; `position` counts from the first.
pub(super) fn convolve(
    taps: &[f32],
    recent: &[f32],
    (rows, stride): (&[f32], usize),
    position: usize,
    out: &mut [f32],
) {
    let channels = out.len();
    let before = recent.len() / channels;
    out.fill(0.0);
    for (tap, weights) in taps.chunks_exact(channels).enumerate() {
        let x = match (position + tap).checked_sub(before) {
            Some(row) => &rows[row * stride..][..channels],
            None => &recent[(position + tap) * channels..][..channels],
        };
        out.iter_mut().zip(weights).zip(x).for_each(|((out, weight), x)| *out += weight * x);
    }
}

/// The gated short convolution of LFM2, see [`ConvSpec`], for successive positions of one sequence:
/// `C * conv(B * x)`, coordinate by coordinate, in f32. `rows` are `[count, 3 * channels]`, each
/// `[B, C, x]`; `recent` holds products `B * x`.
///
/// `out` is `[keep, channels]` and gets the positions from `first` on, as many as it has room for.
/// The memory moves behind all positions, whether they are kept or not.
pub(crate) fn short_conv(
    spec: &ConvSpec,
    weights: &Conv<Vec<f32>>,
    memory: &mut Memory,
    rows: &[f32],
    first: usize,
    out: &mut [f32],
) {
    let (channels, width) = (spec.channels, 3 * spec.channels);
    let taps = taps(&weights.conv, spec.kernel);
    let mut gated = vec![0.0; rows.len() / 3];
    let each = gated.par_chunks_exact_mut(channels).with_min_len(worth_a_task(width)).zip(rows.par_chunks_exact(width));
    each.for_each(|(out, row)| {
        let (gate, x) = (&row[..channels], &row[2 * channels..]);
        out.iter_mut().zip(gate).zip(x).for_each(|((out, gate), x)| *out = gate * x);
    });
    let each = out.par_chunks_exact_mut(channels).with_min_len(worth_a_task(width)).enumerate();
    each.for_each(|(at, out)| {
        let position = first + at;
        convolve(&taps, &memory.recent, (&gated, channels), position, out);
        let gate = &rows[position * width + channels..][..channels];
        out.iter_mut().zip(gate).for_each(|(out, gate)| *out *= gate);
    });
    memory.remember(&gated, channels, channels);
}
