//! The state space of Mamba-2 over packed rows; [`MambaSpec`] has its formulas.
//!
//! Owns the recurrence for successive positions of one sequence. The convolution in front of it and
//! the memory are in `conv.rs`; the projections before and after it are products of the block.
//! `block_ops.rs` makes a [`Scan`] for each pass and block, and runs it once for each span.
//!
//! ```text
//! row of the first projection, `MambaShape::width`:   [ z | x | B | C | dt ]
//!                                                          └channels┘
//!
//! mix     x, B, C = silu(conv(x, B, C) + bias)                            by position
//! head    S *= decay;  S += B ⊗ t x;  o = CᵀS + d x                       by head
//! run     gate by silu(z) and norm, in the order of `GatedNorm`           by position
//! ```
//!
//! A head's positions are taken one after another in the order of the sequence, whatever pass they
//! come in. Together with the memory this gives a sequence the same bits if it is cut, or continues
//! from a shared prefix. Heads and spans are computed in parallel. Everything is f32.

use std::ops::Range;

use judge_arch::{GatedNorm, MambaShape, MambaSpec};
use judge_kernels::vector::{self, Turn, silu, worth_a_task};
use judge_kernels::widest::widest;
use rayon::prelude::*;

use super::conv::{Memory, convolve, taps};
use super::delta::softplus;
use crate::engine::block::Mamba;

/// A block's state space with its weights prepared, ready for rows.
pub(crate) struct Scan<'a> {
    /// Numbers and sizes of its heads.
    shape: MambaShape,
    /// Taps of the convolution, `[kernel, channels]`, the oldest position's first.
    conv: Vec<f32>,
    /// `-exp(a_log)` of each head, `[n_heads]`: never positive.
    rates: Vec<f32>,
    /// The weights as they are stored.
    weights: &'a Mamba<Vec<f32>>,
    /// The least time that passes at a position.
    least_time: f32,
    /// Where the norm of the output is, if there is one.
    norm: Option<GatedNorm>,
    /// Added to the mean square in that norm.
    eps: f32,
}

impl<'a> Scan<'a> {
    /// Prepares the weights of one block. `eps` is the model's `norm_eps`.
    pub(crate) fn new(spec: &MambaSpec, weights: &'a Mamba<Vec<f32>>, eps: f32) -> Self {
        Self {
            shape: spec.shape,
            conv: taps(&weights.conv, spec.shape.kernel),
            rates: weights.a_log.iter().map(|&a| -libm::expf(a)).collect(),
            weights,
            least_time: spec.least_time,
            norm: spec.norm.as_ref().map(|(_, place)| *place),
            eps,
        }
    }

    /// Takes successive positions of one sequence, `rows` `[count, width]`, whose past is in
    /// `memory`, and moves the memory behind all of them. `keep` are the positions whose result is
    /// wanted, counted from the first row; theirs goes to `out`, `[keep, d_inner]`.
    pub(crate) fn run(&self, memory: &mut Memory, rows: &[f32], keep: Range<usize>, out: &mut [f32]) {
        let MambaShape { head_dim, d_state, .. } = self.shape;
        let (width, d_inner) = (self.shape.width(), self.shape.d_inner());
        let channels = rows.get(d_inner..).unwrap_or_default();
        let mixed = self.mix(&memory.recent, channels);
        let heads = memory.heads.par_chunks_exact_mut(d_state * head_dim).enumerate();
        let given: Vec<Vec<f32>> =
            heads.map(|(head, state)| self.head(head, state, &mixed, rows, keep.clone())).collect();
        let gates = rows[keep.start * width..keep.end * width].par_chunks_exact(width);
        let out = out.par_chunks_exact_mut(d_inner).with_min_len(worth_a_task(width));
        out.zip(gates).enumerate().for_each(|(at, (out, row))| {
            for (out, given) in out.chunks_exact_mut(head_dim).zip(&given) {
                out.copy_from_slice(&given[at * head_dim..][..head_dim]);
            }
            self.gate(out, &row[..d_inner]);
        });
        memory.remember(channels, width, self.shape.channels());
    }

    /// Gates what the heads give at one position, and norms it where there is a norm: `out` and `gates`
    /// are `[d_inner]`.
    fn gate(&self, out: &mut [f32], gates: &[f32]) {
        let norm = |out: &mut [f32]| {
            let group = self.shape.d_inner() / self.shape.n_groups;
            let weights = self.weights.norm.iter().flat_map(|weights| weights.chunks_exact(group));
            out.chunks_exact_mut(group).zip(weights).for_each(|(out, weight)| {
                vector::norm_rotate(out, group, Some((weight, self.eps)), None, Turn::default());
            });
        };
        if self.norm == Some(GatedNorm::BeforeGate) {
            norm(out);
        }
        widest(
            #[inline(always)]
            || out.iter_mut().zip(gates).for_each(|(out, &gate)| *out *= silu(gate)),
        );
        if self.norm == Some(GatedNorm::AfterGate) {
            norm(out);
        }
    }

    /// The channels `x, B, C` behind the convolution, `[count, channels]`. `rows` are `width` apart and
    /// begin with the channels of the first position; `recent` are those before it.
    fn mix(&self, recent: &[f32], rows: &[f32]) -> Vec<f32> {
        let (width, channels) = (self.shape.width(), self.shape.channels());
        let mut mixed = vec![0.0; rows.len().div_ceil(width) * channels];
        let each = mixed.par_chunks_exact_mut(channels).with_min_len(worth_a_task(width)).enumerate();
        each.for_each(|(position, out)| {
            convolve(&self.conv, recent, (rows, width), position, out);
            if let Some(bias) = &self.weights.conv_bias {
                vector::add(out, bias);
            }
            widest(
                #[inline(always)]
                || out.iter_mut().for_each(|x| *x = silu(*x)),
            );
        });
        mixed
    }

    /// Runs one head over all positions and returns what it gives at those in `keep`,
    /// `[keep, head_dim]`, not yet gated. `state` is the head's `[d_state, head_dim]` and moves on.
    /// `mixed` comes from [`mix`](Self::mix); `rows` are the block's, for `dt`.
    fn head(&self, head: usize, state: &mut [f32], mixed: &[f32], rows: &[f32], keep: Range<usize>) -> Vec<f32> {
        let MambaShape { n_heads, head_dim, n_groups, d_state, .. } = self.shape;
        let (width, d_inner, d_groups) = (self.shape.width(), self.shape.d_inner(), self.shape.d_groups());
        let group = head / (n_heads / n_groups) * d_state;
        let mut given = vec![0.0; keep.len() * head_dim];
        let (mut change, mut rest) = (vec![0.0; head_dim], vec![0.0; head_dim]);
        let positions = mixed.chunks_exact(self.shape.channels()).zip(rows.chunks_exact(width)).enumerate();
        for (position, (mixed, row)) in positions {
            let x = &mixed[head * head_dim..][..head_dim];
            let b = &mixed[d_inner + group..][..d_state];
            let c = &mixed[d_inner + d_groups + group..][..d_state];
            let time = softplus(row[width - n_heads + head] + self.weights.dt_bias[head]).max(self.least_time);
            let decay = libm::expf(self.rates[head] * time);
            let out = match keep.contains(&position) {
                true => &mut given[(position - keep.start) * head_dim..][..head_dim],
                false => rest.as_mut_slice(),
            };
            step(state, [x, b, c], [decay, time, self.weights.d[head]], &mut change, out);
        }
        given
    }
}

/// One position of one head: `S = decay * S + b ⊗ time x`, then `out = cᵀS + d x`.
///
/// `state` is `S`, `[d_state, head_dim]` row-major; `b` and `c` are `[d_state]`, `x`, `change` and `out`
/// `[head_dim]`. `change` is a buffer; what it holds does not matter. The sum runs over the coordinates
/// of `c` in ascending order.
fn step(state: &mut [f32], [x, b, c]: [&[f32]; 3], [decay, time, d]: [f32; 3], change: &mut [f32], out: &mut [f32]) {
    widest(
        #[inline(always)]
        || {
            change.iter_mut().zip(x).for_each(|(change, x)| *change = time * x);
            out.fill(0.0);
            for ((row, &b), &c) in state.chunks_exact_mut(x.len()).zip(b).zip(c) {
                for ((s, change), out) in row.iter_mut().zip(&*change).zip(&mut *out) {
                    *s = decay * *s + b * change;
                    *out += c * *s;
                }
            }
            out.iter_mut().zip(x).for_each(|(out, x)| *out += d * x);
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::packed::cases::{check_cuts, numbers};

    fn specs() -> impl Iterator<Item = MambaSpec> {
        let norms = [None, Some(GatedNorm::AfterGate), Some(GatedNorm::BeforeGate)];
        let shapes = [(1, 1, 1, 1, 2), (3, 5, 1, 7, 4), (4, 9, 2, 16, 3), (6, 17, 3, 4, 5)];
        shapes.into_iter().flat_map(move |(n_heads, head_dim, n_groups, d_state, kernel)| {
            norms.map(|norm| MambaSpec {
                shape: MambaShape { n_heads, head_dim, n_groups, d_state, kernel },
                least_time: if n_groups > 1 { 0.3 } else { 0.0 },
                conv: "conv".to_owned(),
                conv_bias: norm.map(|_| "bias".to_owned()),
                dt_bias: "dt_bias".to_owned(),
                a_log: "a_log".to_owned(),
                d: "d".to_owned(),
                norm: norm.map(|place| ("norm".to_owned(), place)),
            })
        })
    }

    fn nothing(shape: MambaShape) -> Memory {
        let (recent, heads) = ((shape.kernel - 1) * shape.channels(), shape.d_inner() * shape.d_state);
        Memory { recent: vec![0.0; recent], heads: vec![0.0; heads] }
    }

    fn weights(spec: &MambaSpec) -> Mamba<Vec<f32>> {
        let shape = spec.shape;
        Mamba {
            conv: numbers(1, shape.channels() * shape.kernel),
            conv_bias: spec.conv_bias.as_ref().map(|_| numbers(2, shape.channels())),
            dt_bias: numbers(3, shape.n_heads),
            a_log: numbers(4, shape.n_heads),
            d: numbers(5, shape.n_heads),
            norm: spec.norm.as_ref().map(|_| numbers(6, shape.d_inner())),
        }
    }

    /// The definition, in f64: `[count, d_inner]`.
    fn by_definition(spec: &MambaSpec, weights: &Mamba<Vec<f32>>, rows: &[f32], eps: f64) -> Vec<f64> {
        let MambaShape { n_heads, head_dim, n_groups, d_state, kernel } = spec.shape;
        let (width, channels, d_inner) = (spec.shape.width(), spec.shape.channels(), spec.shape.d_inner());
        let silu = |x: f64| x / (1.0 + (-x).exp());
        let (mut states, mut out) = (vec![0.0; d_inner * d_state], Vec::new());
        for position in 0..rows.len() / width {
            let row: Vec<f64> = rows[position * width..][..width].iter().map(|&x| f64::from(x)).collect();
            let mixed: Vec<f64> = (0..channels)
                .map(|channel| {
                    let taps = (0..kernel).filter(|tap| position + tap + 1 >= kernel);
                    let tap = |tap| {
                        let at = (position + tap + 1 - kernel) * width + d_inner + channel;
                        f64::from(weights.conv[channel * kernel + tap]) * f64::from(rows[at])
                    };
                    let bias = weights.conv_bias.as_ref().map_or(0.0, |bias| f64::from(bias[channel]));
                    silu(taps.map(tap).sum::<f64>() + bias)
                })
                .collect();
            let mut given = Vec::new();
            for head in 0..n_heads {
                let time = (row[width - n_heads + head] + f64::from(weights.dt_bias[head])).exp().ln_1p();
                let time = time.max(f64::from(spec.least_time));
                let decay = (-f64::from(weights.a_log[head]).exp() * time).exp();
                let group = d_inner + head * n_groups / n_heads * d_state;
                for coordinate in 0..head_dim {
                    let x = mixed[head * head_dim + coordinate];
                    let state = &mut states[(head * head_dim + coordinate) * d_state..][..d_state];
                    let mut sum = f64::from(weights.d[head]) * x;
                    for (n, s) in state.iter_mut().enumerate() {
                        *s = *s * decay + mixed[group + n] * time * x;
                        sum += mixed[group + n_groups * d_state + n] * *s;
                    }
                    given.push(sum);
                }
            }
            let place = spec.norm.as_ref().map(|(_, place)| *place);
            let gate = |given: &mut Vec<f64>| given.iter_mut().zip(&row).for_each(|(x, &z)| *x *= silu(z));
            if place != Some(GatedNorm::BeforeGate) {
                gate(&mut given);
            }
            if let Some(weights) = &weights.norm {
                for (group, weights) in given.chunks_mut(d_inner / n_groups).zip(weights.chunks(d_inner / n_groups)) {
                    let mean = group.iter().map(|x| x * x).sum::<f64>() / group.len() as f64;
                    let of = |(x, &w): (&mut f64, &f32)| *x *= f64::from(w) / (mean + eps).sqrt();
                    group.iter_mut().zip(weights).for_each(of);
                }
            }
            if place == Some(GatedNorm::BeforeGate) {
                gate(&mut given);
            }
            out.extend(given);
        }
        out
    }

    #[test]
    fn it_is_its_definition_and_the_same_bits_however_a_sequence_is_cut() {
        const COUNT: usize = 23;
        for spec in specs() {
            let weights = weights(&spec);
            let scan = Scan::new(&spec, &weights, 1e-6);
            let rows = numbers(7, COUNT * spec.shape.width());
            let expected = by_definition(&spec, &weights, &rows, 1e-6);
            let run = |memory: &mut Memory, rows: &[f32], keep, out: &mut [f32]| scan.run(memory, rows, keep, out);
            check_cuts(&spec, &nothing(spec.shape), (&rows, COUNT), &expected, run);
        }
    }
}
