//! Short convolutions of channels over positions.

use burn::tensor::{DType, Tensor};
use cubecl::prelude::*;

use crate::tensors::{burn, contiguous, empty, spread};

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    channels: usize,
    /// Positions that are seen.
    taps: usize,
    is_biased: bool,
    is_activated: bool,
}

/// Each channel of `rows` `[batch, taps - 1 + seq, channels]` convolved alone, `y[t] = Σ_k weights[c, k] · rows[t + k]`, from the oldest
/// position to the newest: `[batch, seq, channels]`. `weights` are `[channels · taps]`, a bias `[channels]`; with `is_activated` it is
/// `silu(y + bias)`. Everything is f32.
pub fn conv(rows: Tensor<3>, weights: Tensor<1>, bias: Option<Tensor<1>>, is_activated: bool) -> Tensor<3> {
    let ([batch, all, channels], [numbers]) = (rows.dims(), weights.dims());
    let taps = numbers / channels;
    let seq = all + 1 - taps;
    let (rows, weights) = (contiguous(rows), contiguous(weights));
    let out = empty(&rows, [batch, seq, channels], DType::F32);
    let numbers = batch * seq * channels;
    if numbers == 0 {
        return burn(out);
    }
    let kind = Kind { channels, taps, is_biased: bias.is_some(), is_activated };
    // What there is none of is not read, as in `heads.rs`.
    let bias = bias.map_or_else(|| weights.clone(), contiguous);
    let (count, dim) = spread(&rows.client, numbers);
    let client = rows.client.clone();
    // SAFETY: units beyond the last number end at once; the others read rows of their own sequence, of which there are `taps - 1` more.
    unsafe {
        convolve_rows::launch_unchecked(
            &client,
            count,
            dim,
            rows.into_buffer_arg(),
            weights.into_buffer_arg(),
            bias.into_buffer_arg(),
            out.clone().into_buffer_arg(),
            numbers as u32,
            seq as u32,
            kind,
        );
    }
    burn(out)
}

#[cube(launch_unchecked)]
fn convolve_rows(
    rows: &[f32],
    weights: &[f32],
    bias: &[f32],
    out: &mut [f32],
    numbers: u32,
    seq: u32,
    #[comptime] kind: Kind,
) {
    let place = ABSOLUTE_POS;
    if place >= numbers as usize {
        terminate!();
    }
    let (channels, taps) = comptime!((kind.channels, kind.taps));
    let channel = place % channels;
    let sequence = place / channels / seq as usize;
    let start = place + sequence * comptime!((taps - 1) * channels);
    let mut sum = 0.0f32;
    #[unroll]
    for tap in 0..taps {
        sum += weights[channel * taps + tap] * rows[start + tap * channels];
    }
    if comptime!(kind.is_biased) {
        sum += bias[channel];
    }
    if comptime!(kind.is_activated) {
        sum = sum / (1.0f32 + (-sum).exp());
    }
    out[place] = sum;
}
