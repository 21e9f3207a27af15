//! The gated delta rule (Qwen3.5) over packed rows; [`DeltaSpec`](judge_arch::DeltaSpec) has its
//! formulas.
//!
//! Owns the rule for successive positions of one sequence. The convolution in front of it and the
//! memory are in `conv.rs`; the projections before and after it are products of the block.
//! `block_ops.rs` makes a [`Rule`] for each pass and block, and runs it once for each span.
//!
//! ```text
//! row of the first projection, `DeltaShape::width`:   [ q | k | v | z | b | a ]
//!                                                       └channels┘
//!
//! mix     q, k, v = silu(conv(q, k, v)); heads of q and k to length 1; q / sqrt(key_dim)      by position
//! head    S *= decay;  S += k ⊗ beta (v - kᵀS);  o = qᵀS                                      by value head
//! run     rms_norm(o) * norm * silu(z)                                                        by position
//! ```
//!
//! A head's positions are taken one after another in the order of the sequence, whatever pass they
//! come in. Together with the memory this gives a sequence the same bits if it is cut, or continues
//! from a shared prefix. Heads and spans are computed in parallel. Everything is f32.

use std::ops::Range;

use judge_arch::DeltaShape;
use judge_kernels::exp::exp;
use judge_kernels::vector::{self, silu, sum_of, worth_a_task};
use judge_kernels::widest::widest;
use rayon::prelude::*;

use super::conv::{Memory, convolve, taps};
use crate::engine::block::Delta;

/// Added to the squared length of a head of `q` or `k` before the root, as transformers' `l2norm`
/// does.
const EPS: f32 = 1e-6;

/// From here on `softplus(x) = ln(1 + exp(x))` is taken to be `x`, as PyTorch's softplus does by
/// default.
const STEEP: f32 = 20.0;

/// A block's rule with its weights prepared, ready for rows.
pub(crate) struct Rule<'a> {
    /// Numbers and sizes of its heads.
    shape: DeltaShape,
    /// Taps of the convolution, `[kernel, channels]`, the oldest position's first.
    conv: Vec<f32>,
    /// `-exp(a_log)` of each value head, `[n_value_heads]`: never positive.
    rates: Vec<f32>,
    /// Added to `a` before softplus, `[n_value_heads]`.
    dt_bias: &'a [f32],
    /// Weight of the norm of each head's output, `[value_dim]`, the same for all heads.
    norm: &'a [f32],
    /// Added to the mean square in that norm.
    eps: f32,
}

impl<'a> Rule<'a> {
    /// Prepares the weights of one block. `eps` is the model's `norm_eps`.
    pub(crate) fn new(shape: DeltaShape, weights: &'a Delta<Vec<f32>>, eps: f32) -> Self {
        Self {
            shape,
            conv: taps(&weights.conv, shape.kernel),
            rates: weights.a_log.iter().map(|&a| -libm::expf(a)).collect(),
            dt_bias: &weights.dt_bias,
            norm: &weights.norm,
            eps,
        }
    }

    /// Takes successive positions of one sequence, `rows` `[count, width]`, whose past is in
    /// `memory`, and moves the memory behind all of them. `keep` are the positions whose result is
    /// wanted, counted from the first row; theirs goes to `out`, `[keep, d_value]`.
    pub(crate) fn run(&self, memory: &mut Memory, rows: &[f32], keep: Range<usize>, out: &mut [f32]) {
        let DeltaShape { key_dim, value_dim, .. } = self.shape;
        let (width, channels) = (self.shape.width(), self.shape.channels());
        let mixed = self.mix(&memory.recent, rows);
        let heads = memory.heads.par_chunks_exact_mut(key_dim * value_dim).enumerate();
        let given: Vec<Vec<f32>> =
            heads.map(|(head, state)| self.head(head, state, &mixed, rows, keep.clone())).collect();
        let gates = rows[keep.start * width..keep.end * width].par_chunks_exact(width);
        let out = out.par_chunks_exact_mut(self.shape.d_value()).with_min_len(worth_a_task(width));
        out.zip(gates).enumerate().for_each(|(at, (out, row))| {
            let gates = row[channels..].chunks_exact(value_dim);
            for ((out, given), gate) in out.chunks_exact_mut(value_dim).zip(&given).zip(gates) {
                vector::rms_norm(&given[at * value_dim..][..value_dim], self.norm, self.eps, out);
                widest(
                    #[inline(always)]
                    || out.iter_mut().zip(gate).for_each(|(out, &gate)| *out *= silu(gate)),
                );
            }
        });
        memory.remember(rows, width, channels);
    }

    /// Queries, keys and values behind the convolution, `[count, channels]`, with heads of queries
    /// and keys scaled; see the head of this file. `recent` are the channels before the first row.
    fn mix(&self, recent: &[f32], rows: &[f32]) -> Vec<f32> {
        let (width, channels) = (self.shape.width(), self.shape.channels());
        let mut mixed = vec![0.0; rows.len() / width * channels];
        let each = mixed.par_chunks_exact_mut(channels).with_min_len(worth_a_task(width)).enumerate();
        each.for_each(|(position, out)| {
            convolve(&self.conv, recent, (rows, width), position, out);
            let d_key = self.shape.d_key();
            widest(
                #[inline(always)]
                || {
                    out.iter_mut().for_each(|x| *x = silu(*x));
                    let (queries, rest) = out.split_at_mut(d_key);
                    let per_query = 1.0 / (self.shape.key_dim as f32).sqrt();
                    for (heads, factor) in [(queries, per_query), (&mut rest[..d_key], 1.0)] {
                        for head in heads.chunks_exact_mut(self.shape.key_dim) {
                            let scale = factor / (sum_of(head, |x| x * x) + EPS).sqrt();
                            head.iter_mut().for_each(|x| *x *= scale);
                        }
                    }
                },
            );
        });
        mixed
    }

    /// Runs one value head over all positions and returns what it gives at those in `keep`,
    /// `[keep, value_dim]`, not yet normed. `state` is the head's `[key_dim, value_dim]` and moves
    /// on. `mixed` comes from [`mix`](Self::mix); `rows` are the block's, for `b` and `a`.
    fn head(&self, head: usize, state: &mut [f32], mixed: &[f32], rows: &[f32], keep: Range<usize>) -> Vec<f32> {
        let DeltaShape { n_key_heads, n_value_heads, key_dim, value_dim, .. } = self.shape;
        let (width, d_key) = (self.shape.width(), self.shape.d_key());
        let key_head = head / (n_value_heads / n_key_heads);
        let mut given = vec![0.0; keep.len() * value_dim];
        let (mut change, mut rest) = (vec![0.0; value_dim], vec![0.0; value_dim]);
        let positions = mixed.chunks_exact(self.shape.channels()).zip(rows.chunks_exact(width)).enumerate();
        for (position, (mixed, row)) in positions {
            let query = &mixed[key_head * key_dim..][..key_dim];
            let key = &mixed[d_key + key_head * key_dim..][..key_dim];
            let value = &mixed[2 * d_key + head * value_dim..][..value_dim];
            let [b, a] = [2, 1].map(|back| row[width - back * n_value_heads + head]);
            let x = a + self.dt_bias[head];
            let (decay, beta) = (libm::expf(self.rates[head] * softplus(x)), logistic(b));
            let out = match keep.contains(&position) {
                true => &mut given[(position - keep.start) * value_dim..][..value_dim],
                false => rest.as_mut_slice(),
            };
            step(state, [query, key, value], [decay, beta], &mut change, out);
        }
        given
    }
}

/// One position of one head: `S *= decay`, then `S += k ⊗ beta (v - kᵀS)`, then `out = qᵀS`.
///
/// `state` is `S`, `[key_dim, value_dim]` row-major; `query` and `key` are `[key_dim]`, `value`,
/// `change` and `out` `[value_dim]`. `change` is a buffer; what it holds does not matter. Sums run
/// over the coordinates of the key in ascending order.
fn step(
    state: &mut [f32],
    [query, key, value]: [&[f32]; 3],
    [decay, beta]: [f32; 2],
    change: &mut [f32],
    out: &mut [f32],
) {
    widest(
        #[inline(always)]
        || {
            change.fill(0.0);
            for (row, &k) in state.chunks_exact_mut(value.len()).zip(key) {
                for (s, known) in row.iter_mut().zip(&mut *change) {
                    *s *= decay;
                    *known += k * *s;
                }
            }
            change.iter_mut().zip(value).for_each(|(known, v)| *known = beta * (v - *known));
            out.fill(0.0);
            for ((row, &k), &q) in state.chunks_exact_mut(value.len()).zip(key).zip(query) {
                for ((s, change), out) in row.iter_mut().zip(&*change).zip(&mut *out) {
                    *s += k * change;
                    *out += q * *s;
                }
            }
        },
    );
}

/// `ln(1 + exp(x))`, or `x` from [`STEEP`] on.
pub(super) fn softplus(x: f32) -> f32 {
    if x > STEEP { x } else { libm::log1pf(libm::expf(x)) }
}

/// `sigmoid(x) = 1 / (1 + exp(-x))`.
#[inline(always)]
pub(crate) fn logistic(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::packed::cases::{check_cuts, numbers};

    fn shapes() -> impl Iterator<Item = DeltaShape> {
        [(1, 1, 1, 1, 2), (1, 3, 4, 9, 2), (2, 4, 5, 7, 4), (2, 2, 32, 17, 5)].into_iter().map(
            |(n_key_heads, n_value_heads, key_dim, value_dim, kernel)| DeltaShape {
                n_key_heads,
                n_value_heads,
                key_dim,
                value_dim,
                kernel,
            },
        )
    }

    fn nothing(shape: DeltaShape) -> Memory {
        let (recent, heads) = ((shape.kernel - 1) * shape.channels(), shape.d_value() * shape.key_dim);
        Memory { recent: vec![0.0; recent], heads: vec![0.0; heads] }
    }

    fn weights(shape: DeltaShape) -> Delta<Vec<f32>> {
        Delta {
            conv: numbers(1, shape.channels() * shape.kernel),
            dt_bias: numbers(2, shape.n_value_heads),
            a_log: numbers(3, shape.n_value_heads),
            norm: numbers(4, shape.value_dim),
        }
    }

    /// The definition, in f64: `[count, d_value]`.
    fn by_definition(shape: DeltaShape, weights: &Delta<Vec<f32>>, rows: &[f32], eps: f64) -> Vec<f64> {
        let DeltaShape { n_key_heads, n_value_heads, key_dim, value_dim, kernel } = shape;
        let (width, channels, d_key) = (shape.width(), shape.channels(), shape.d_key());
        let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
        let (mut states, mut out) = (vec![0.0; n_value_heads * key_dim * value_dim], Vec::new());
        for position in 0..rows.len() / width {
            let row: Vec<f64> = rows[position * width..][..width].iter().map(|&x| f64::from(x)).collect();
            let mixed: Vec<f64> = (0..channels)
                .map(|channel| {
                    let taps = (0..kernel).filter(|tap| position + tap + 1 >= kernel);
                    let tap = |tap| {
                        f64::from(
                            weights.conv[channel * kernel + tap]
                                * rows[(position + tap + 1 - kernel) * width + channel],
                        )
                    };
                    let x: f64 = taps.map(tap).sum();
                    x * logistic(x)
                })
                .collect();
            for head in 0..n_value_heads {
                let of_key_head = |start: usize| {
                    let x = &mixed[start + head / (n_value_heads / n_key_heads) * key_dim..][..key_dim];
                    let length = (x.iter().map(|x| x * x).sum::<f64>() + 1e-6).sqrt();
                    x.iter().map(|x| x / length).collect::<Vec<_>>()
                };
                let (query, key) = (of_key_head(0), of_key_head(d_key));
                let step = row[width - n_value_heads + head] + f64::from(weights.dt_bias[head]);
                let decay = (-f64::from(weights.a_log[head]).exp() * step.exp().ln_1p()).exp();
                let beta = logistic(row[width - 2 * n_value_heads + head]);
                let state = &mut states[head * key_dim * value_dim..][..key_dim * value_dim];
                state.iter_mut().for_each(|s| *s *= decay);
                let given: Vec<f64> = (0..value_dim)
                    .map(|v| {
                        let known: f64 = (0..key_dim).map(|k| key[k] * state[k * value_dim + v]).sum();
                        let change = beta * (mixed[2 * d_key + head * value_dim + v] - known);
                        (0..key_dim).for_each(|k| state[k * value_dim + v] += key[k] * change);
                        (0..key_dim).map(|k| query[k] * state[k * value_dim + v]).sum::<f64>() / (key_dim as f64).sqrt()
                    })
                    .collect();
                let scale = (given.iter().map(|x| x * x).sum::<f64>() / value_dim as f64 + eps).sqrt();
                out.extend(given.iter().enumerate().map(|(v, x)| {
                    let gate = row[channels + head * value_dim + v];
                    x / scale * f64::from(weights.norm[v]) * gate * logistic(gate)
                }));
            }
        }
        out
    }

    #[test]
    fn it_is_its_definition_and_the_same_bits_however_a_sequence_is_cut() {
        const COUNT: usize = 23;
        for shape in shapes() {
            let weights = weights(shape);
            let rule = Rule::new(shape, &weights, 1e-6);
            let rows = numbers(5, COUNT * shape.width());
            let expected = by_definition(shape, &weights, &rows, 1e-6);
            let run = |memory: &mut Memory, rows: &[f32], keep, out: &mut [f32]| rule.run(memory, rows, keep, out);
            check_cuts(&shape, &nothing(shape), (&rows, COUNT), &expected, run);
        }
    }
}
