//! What blocks without keys remember of a sequence, and the causal convolution, channel by channel, that they have in common.

use std::mem;

use rayon::prelude::*;

use super::vector::worth_a_task;
use crate::arch::{BlockSpec, ConvSpec, DeltaSpec};
use crate::engine::block::Conv;

/// All that one block knows of a sequence's past.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Memory {
    /// The last rows of channels before the convolution, the oldest first: `[kernel - 1, channels]`.
    pub(super) recent: Vec<f32>,
    /// Of a delta rule, `[n_value_heads, key_dim, value_dim]`.
    pub(super) heads: Vec<f32>,
}

impl Memory {
    /// That of a sequence that has not begun, in this block.
    pub(crate) fn new(block: &BlockSpec) -> Self {
        let [recent, heads] = Self::sizes(block).map(|size| vec![0.0; size]);
        Self { recent, heads }
    }

    /// How many numbers it has.
    pub(crate) fn size(block: &BlockSpec) -> usize {
        Self::sizes(block).iter().sum()
    }

    fn sizes(block: &BlockSpec) -> [usize; 2] {
        match (&block.delta, &block.conv) {
            (Some(DeltaSpec { shape, .. }), _) => {
                [(shape.kernel - 1) * shape.channels(), shape.d_value() * shape.key_dim]
            }
            (None, Some(conv)) => [(conv.kernel - 1) * conv.channels, 0],
            (None, None) => [0, 0],
        }
    }

    /// Keeps the last rows of channels: those at the beginning of rows that are `stride` apart come after what is there.
    pub(super) fn remember(&mut self, rows: &[f32], stride: usize, channels: usize) {
        let (before, count) = (self.recent.len() / channels, rows.len() / stride);
        let old = mem::take(&mut self.recent);
        let old_rows = old.chunks_exact(channels).skip(count.min(before));
        let new_rows = rows.chunks_exact(stride).skip(count.saturating_sub(before)).map(|row| &row[..channels]);
        self.recent = old_rows.chain(new_rows).flatten().copied().collect();
    }
}

/// The weights of a convolution, `[channels, kernel]`, as [`convolve`] takes them: `[kernel, channels]`, those of the oldest position first.
pub(super) fn taps(weights: &[f32], kernel: usize) -> Vec<f32> {
    (0..kernel).flat_map(|tap| weights.iter().skip(tap).step_by(kernel).copied()).collect()
}

/// What the convolution gives at a position: `out` `[channels]`. Rows are `stride` apart and begin with their channels; `recent` are those before them.
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

/// The gated short convolution, see [`ConvSpec`], of successive positions of one sequence, `[count, 3 * channels]`: `out` gets what those from `first` on give,
/// as many as it has room for, `[keep, channels]`.
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
