//! States of heads that change from position to position: what the gated delta rule and the state
//! space of Mamba-2 have in common.
//!
//! Here they are composed of Burn's operations, some for each position: slow on a GPU, but what
//! gradients flow through, and what other bodies are compared with. A GPU runs all positions of
//! all heads of a batch in one kernel of `judge-gpu`, and a convolution in another.

use burn::tensor::{DType, Tensor, activation};

#[cfg(any(feature = "cuda", feature = "wgpu"))]
use super::gpu;
use super::operands::{Change, Recurrence};

/// Runs states over `rows` `[batch, seq, width]`, on from `before`
/// `[batch, heads, key_dim, value_dim]`; `None` stands for zeros. `decays` and `strengths` are
/// `[batch, seq, heads]`: 1 and 0 leave a state as it is.
///
/// Returns what they give, `[batch, seq, heads, value_dim]`, and the states behind the last
/// position. Everything is f32.
pub(super) fn recur(
    rows: Tensor<3>,
    [decays, strengths]: [Tensor<3>; 2],
    before: Option<Tensor<4>>,
    of: Recurrence,
) -> (Tensor<4>, Tensor<4>) {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if gpu::has(&rows) {
        return gpu::recur(rows, [decays, strengths], before, of);
    }
    let [batch, seq, _] = rows.dims();
    let Recurrence { key_heads, heads, key_dim, value_dim, first: [of_queries, of_keys, of_values], .. } = of;
    let group = heads / key_heads;
    // [batch, seq, key_heads, key_dim] -> [batch, seq, heads, key_dim]: each serves as many heads
    let of_key_heads = |start: usize| {
        let x = rows.clone().narrow(2, start, key_heads * key_dim).reshape([batch, seq, key_heads, key_dim]);
        let x = match of.change {
            Change::Value => x,
            Change::Unknown { eps } => {
                let length = x.clone().square().sum_dim(3).add_scalar(eps).sqrt(); // [batch, seq, key_heads, 1]
                x / length
            }
        };
        let x = x.reshape([batch, seq, key_heads, 1, key_dim]);
        x.expand([batch, seq, key_heads, group, key_dim]).reshape([batch, seq, heads, key_dim])
    };
    let (queries, keys) = (of_key_heads(of_queries).mul_scalar(of.scale), of_key_heads(of_keys));
    let values = rows.clone().narrow(2, of_values, heads * value_dim).reshape([batch, seq, heads, value_dim]);

    let nothing = || Tensor::zeros([batch, heads, key_dim, value_dim], (&rows.device(), DType::F32));
    let mut state = before.unwrap_or_else(nothing);
    let mut given = Vec::with_capacity(seq);
    for position in 0..seq {
        // [batch, seq, heads, dim] -> [batch, 1, heads, dim] -> [batch, heads, rows, columns]
        let at = |x: &Tensor<4>, shape: [usize; 4]| x.clone().narrow(1, position, 1).reshape(shape);
        let scalar = |x: &Tensor<3>| x.clone().narrow(1, position, 1).reshape([batch, heads, 1, 1]);
        let key = at(&keys, [batch, heads, key_dim, 1]);
        let query = at(&queries, [batch, heads, key_dim, 1]);
        let value = at(&values, [batch, heads, 1, value_dim]);
        state = state * scalar(&decays);
        let value = match of.change {
            Change::Value => value,
            // A sum of products instead of a matrix product, which a GPU may take in fewer digits (TF32).
            Change::Unknown { .. } => value - (state.clone() * key.clone()).sum_dim(2), // [batch, heads, 1, value_dim]
        };
        state = state + key * (value * scalar(&strengths));
        given.push((state.clone() * query).sum_dim(2).reshape([batch, 1, heads, value_dim]));
    }
    (Tensor::cat(given, 1), state)
}

/// What a convolution is made of.
pub(super) struct Taps {
    /// `[channels, kernel]`, flattened.
    pub(super) weights: Tensor<1>,
    /// Positions that it sees, its own included.
    pub(super) kernel: usize,
    /// Added behind it, `[channels]`.
    pub(super) bias: Option<Tensor<1>>,
    /// Whether `silu` comes behind that.
    pub(super) is_activated: bool,
}

/// A causal convolution of rows `x` `[batch, seq, channels]`, each channel for itself:
/// `y[t] = Σ_k weights[c, k] * rows[t + k]`, where `rows` are `recent` and then `x`.
///
/// `recent` are the `kernel - 1` rows before, `[batch, kernel - 1, channels]`; `None` stands for
/// zeros, at the beginning of a sequence. Returns the convolved rows, of the shape of `x`, and all
/// rows `[batch, kernel - 1 + seq, channels]`. The sum goes from the oldest position to the newest.
pub(super) fn convolve(x: Tensor<3>, with: Taps, recent: Option<Tensor<3>>) -> (Tensor<3>, Tensor<3>) {
    let [batch, seq, channels] = x.dims();
    let Taps { weights, kernel, bias, is_activated } = with;
    let recent = recent.unwrap_or_else(|| Tensor::zeros([batch, kernel - 1, channels], (&x.device(), DType::F32)));
    let rows = Tensor::cat(vec![recent, x], 1); // [batch, kernel - 1 + seq, channels]
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if gpu::has(&rows) {
        return (judge_gpu::conv(rows.clone(), weights, bias, is_activated), rows);
    }
    let taps = weights.reshape([channels, kernel]).transpose(); // [kernel, channels]
    let tap = |tap: usize| {
        let weights = taps.clone().narrow(0, tap, 1).reshape([1, 1, channels]);
        rows.clone().narrow(1, tap, seq) * weights // -> [batch, seq, channels]
    };
    let given = (1..kernel).map(tap).fold(tap(0), |sum, tap| sum + tap);
    let given = match bias {
        Some(bias) => given + bias.unsqueeze(),
        None => given,
    };
    (if is_activated { activation::silu(given) } else { given }, rows)
}
