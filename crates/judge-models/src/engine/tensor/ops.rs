//! The operations that a decoder spends its time in: linear, norm and rotation, attention and its
//! entropy, gated activation, the choice of experts.
//!
//! Here they are composed of Burn's operations, on any device, and gradients flow through all of
//! them. On GPUs each is one kernel of `judge-gpu`, or products by cuBLASLt, called here or in `gpu.rs`;
//! these bodies are what those are compared with. `block_ops.rs` calls them for a block,
//! `decoder.rs` for the final norm and the head, `bodies.rs` times them beside the CPU's kernels.
//!
//! | operation | takes | computes in | gives |
//! |---|---|---|---|
//! | [`linear`] | any dtype, cast to the matrix's | the matrix's, sums f32 | the matrix's; f32 with a bias |
//! | [`linear_onto`] | likewise, and the residual stream in f32 | likewise | f32 |
//! | [`norm`], [`heads`], [`gated_activation`] | any dtype | f32 | the dtype that is asked for |
//! | [`attention`] | queries, keys and values in one dtype | that, scores and softmax f32 | likewise |
//! | [`attention_entropy`] | queries and keys in one dtype | f32 | f32 |
//! | [`route`] | any dtype | f32 | f32 |
//! | [`label_products`] | f32 | f32 | f32 |
//!
//! [`Precision`](super::precision::Precision) decides what is narrower than f32. Where everything is
//! f32, nothing is converted.
//!
//! The order of sums is that of the kernels. It may change with the shape, so these bodies agree
//! with others within a tolerance and not to the bit.

use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Bool, DType, Tensor, TensorData, activation, module};
use judge_arch::{Routing, Scores};
use judge_kernels::functions::{Activation, NormKind, Pairs};

#[cfg(any(feature = "cuda", feature = "wgpu"))]
use super::gpu;
use super::operands::{Attention, HeadNorm, Heads};
use super::precision::{Precision, cast, widen};
use super::rotation::Table;
use super::slots::KeysValues;

/// `x · weightᵀ + bias`: `x` `[batch, seq, d_in]`, `weight` `[d_out, d_in]`, `bias` `[d_out]` in
/// f32, gives `[batch, seq, d_out]` in the dtype of `weight`, or with a bias in f32.
///
/// All rows are one product `[batch * seq, d_in]` by `[d_in, d_out]`, which fills a device better
/// than one for each sequence.
pub(crate) fn linear(x: Tensor<3>, weight: Tensor<2>, bias: Option<Tensor<1>>, precision: Precision) -> Tensor<3> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if gpu::has(&x) {
        return gpu::linear(x, weight, bias, precision);
    }
    let _ = precision;
    let [batch, seq, d_in] = x.dims();
    let [d_out, _] = weight.dims();
    // One product of all rows: [batch, seq, d_in] -> [batch * seq, d_in] -> [batch * seq, d_out]
    let y = cast(x, weight.dtype()).reshape([batch * seq, d_in]).matmul(weight.transpose());
    let y = match bias {
        Some(bias) => widen(y) + bias.unsqueeze(),
        None => y,
    };
    y.reshape([batch, seq, d_out]) // [batch * seq, d_out] -> [batch, seq, d_out]
}

/// What [`linear`] gives, in f32 to the last bits of `x`, whatever the matrix is in: for logits over the vocabulary, of which different ones
/// would become equal in bf16. `x` is f32. A GPU needs no copy of the matrix in f32 for it.
pub(crate) fn linear_wide(x: Tensor<3>, weight: Tensor<2>, bias: Option<Tensor<1>>, precision: Precision) -> Tensor<3> {
    #[cfg(feature = "cuda")]
    if gpu::has(&x) && weight.dtype() == DType::BF16 {
        return gpu::linear_wide(x, weight, bias, precision);
    }
    linear(x, widen(weight), bias, precision)
}

/// One logit of each state `[batch, 1, d_model]` for each row of `head` `[labels, d_model]`, both in f32 on one device: `[batch, 1,
/// labels]`, so that a number of each layer and label is fetched instead of whole states. On a GPU the order of a sum is fixed, whatever
/// else is in the batch. The packed path multiplies the same numbers on the host in `f64` (`reading/labels.rs`).
pub(crate) fn label_products(states: Tensor<3>, head: Tensor<2>) -> Tensor<3> {
    let ([batch, _, d_model], [labels, _]) = (states.dims(), head.dims());
    let states = states.reshape([batch, d_model]);
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if gpu::has(&head) {
        return judge_gpu::dots(states, head).reshape([batch, 1, labels]);
    }
    states.matmul(head.transpose()).reshape([batch, 1, labels])
}

/// `onto + factor · (x · weightᵀ + bias)`: the residual stream and what a product adds to it. `x`, `weight` and `bias` as [`linear`] takes
/// them, `onto` `[batch, seq, d_out]` in f32, which is also the result's.
pub(crate) fn linear_onto(
    x: Tensor<3>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    onto: Tensor<3>,
    factor: Option<f64>,
    precision: Precision,
) -> Tensor<3> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if gpu::has(&x) {
        return gpu::linear_onto(x, weight, bias, onto, factor, precision);
    }
    added(onto, linear(x, weight, bias, precision), factor)
}

/// `x + factor · y` in f32, of two tensors of one shape.
pub(crate) fn added(x: Tensor<3>, y: Tensor<3>, factor: Option<f64>) -> Tensor<3> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if gpu::has(&x) {
        return judge_gpu::add(x, y, factor.unwrap_or(1.0));
    }
    match factor {
        Some(factor) => widen(x) + widen(y).mul_scalar(factor),
        None => widen(x) + widen(y),
    }
}

/// Runs of columns of `x`, `[batch, seq, width]`, multiplied by the factor of each; as it is without
/// factors. Gives f32 where there are some.
pub(crate) fn scaled(x: Tensor<3>, factors: &[(usize, f32)]) -> Tensor<3> {
    if factors.is_empty() {
        return x;
    }
    let x = widen(x);
    let parts = factors.iter().scan(0, |start, &(width, factor)| {
        let part = x.clone().narrow(2, *start, width).mul_scalar(factor);
        *start += width;
        Some(part)
    });
    Tensor::cat(parts.collect(), 2)
}

/// `x / sqrt(mean(x²) + eps) * weight` along the last axis, whose length `weight` has. Keeps the
/// shape; gives f32.
pub(crate) fn rms_norm<const D: usize>(x: Tensor<D>, weight: Tensor<1>, eps: f64) -> Tensor<D> {
    norm_plain(x, eps) * weight.unsqueeze()
}

/// `x / sqrt(mean(x²) + eps)` along the last axis. Keeps the shape; gives f32.
pub(crate) fn norm_plain<const D: usize>(x: Tensor<D>, eps: f64) -> Tensor<D> {
    let x = widen(x);
    let mean_square = x.clone().square().mean_dim(D - 1); // [.., d] -> [.., 1]
    x * mean_square.add_scalar(eps).sqrt().recip()
}

/// The norm of states along the last axis, whose length `weight` has, or twice that length with a
/// bias behind it; [`NormKind`] has the formulas. Keeps the shape; gives `dtype`.
pub(crate) fn norm<const D: usize>(
    kind: NormKind,
    x: Tensor<D>,
    weight: Tensor<1>,
    eps: f64,
    dtype: DType,
) -> Tensor<D> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if gpu::has(&x) {
        return judge_gpu::norm(kind, x, weight, eps, dtype);
    }
    let x = widen(x);
    let (width, [len]) = (x.dims()[D - 1], weight.dims());
    let x = match kind {
        NormKind::RmsNorm => x,
        NormKind::LayerNorm => x.clone() - x.mean_dim(D - 1), // [.., d] - [.., 1]
    };
    if len == width {
        return cast(rms_norm(x, weight, eps), dtype);
    }
    let bias = weight.clone().narrow(0, width, width); // [2 * d] -> [d]
    cast(rms_norm(x, weight.narrow(0, 0, width), eps) + bias.unsqueeze(), dtype)
}

/// Heads of `x` `[batch, seq, width]` as attention takes them: `[heads / group, batch, group, seq, head_dim]` in `dtype`.
pub(crate) fn heads(x: &Tensor<3>, of: Heads<'_>, dtype: DType) -> Tensor<5> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if gpu::has(x) {
        return gpu::heads(x, of, dtype);
    }
    let [batch, seq, _] = x.dims();
    // [batch, seq, width] -> [batch, seq, heads, step] -> [batch, seq, heads, head_dim]
    let x = x.clone().narrow(2, of.first, of.heads * of.step).reshape([batch, seq, of.heads, of.step]);
    let x = if of.step > of.head_dim { x.narrow(3, 0, of.head_dim) } else { x };
    let (x, norm) = match of.norm {
        HeadNorm::Absent => (x, None),
        HeadNorm::Plain => (norm_plain(x, of.eps), None),
        HeadNorm::Weighted(weight) => (x, Some((weight.clone(), of.eps))),
    };
    let x = norm_rotate(x, norm, of.limit, of.rotation);
    let x = match of.rotation.filter(|_| of.are_queries).and_then(|rotation| rotation.query_factors.clone()) {
        Some(factors) => x * factors,
        None => x,
    };
    // [batch, seq, heads, head_dim] -> [batch, seq, heads / group, group, head_dim] -> [heads / group, batch, group, seq, head_dim]
    cast(x, dtype).reshape([batch, seq, of.heads / of.group, of.group, of.head_dim]).permute([2, 0, 3, 1, 4])
}

/// Queries or keys `[batch, seq, heads, head_dim]`, normed, clamped and rotated. Keeps the shape;
/// gives f32.
///
/// 1. With a `norm` (weight and eps), the root-mean-square norm: of each head alone if the weight
///    is `[head_dim]`, of all heads of a position together if it is longer.
/// 2. With a `limit`, numbers are clamped to `[-limit, limit]`.
/// 3. With a `rotation`, the first `rotary_dim` coordinates are rotated pair by pair, `(a, b)` to
///    `(a cos - b sin, b cos + a sin)`, by the angles of their position. The other coordinates stay
///    as they are. [`Pairs`] says which coordinates are a pair; where they are neighbours, they are
///    neighbours again in the result.
pub(crate) fn norm_rotate(
    x: Tensor<4>,
    norm: Option<(Tensor<1>, f64)>,
    limit: Option<f64>,
    rotation: Option<&Table>,
) -> Tensor<4> {
    let [batch, seq, heads, head_dim] = x.dims();
    let x = match norm {
        Some((weight, eps)) if weight.dims()[0] > head_dim => {
            // [batch, seq, heads, head_dim] -> [batch, seq, heads * head_dim] and back
            let whole = rms_norm(x.reshape([batch, seq, heads * head_dim]), weight, eps);
            whole.reshape([batch, seq, heads, head_dim])
        }
        Some((weight, eps)) => rms_norm(x, weight, eps),
        None => widen(x),
    };
    let x = match limit {
        Some(limit) => x.clamp(-limit, limit),
        None => x,
    };
    let Some(rotation) = rotation else { return x };
    let half = rotation.cos.dims()[3];
    let (cos, sin) = (rotation.cos.clone(), rotation.sin.clone());
    let turned = x.clone().narrow(3, 0, 2 * half); // [batch, seq, heads, head_dim] -> [.., rotary_dim]
    // The two of each pair, and back: [.., rotary_dim] -> [.., rotary_dim / 2] twice
    let [first, second] = match rotation.pairs {
        Pairs::Halves => [0, half].map(|start| turned.clone().narrow(3, start, half)),
        Pairs::Neighbours => {
            let pairs = turned.reshape([batch, seq, heads * half, 2]);
            [0, 1].map(|start| pairs.clone().narrow(3, start, 1).reshape([batch, seq, heads, half]))
        }
    };
    let both = [first.clone() * cos.clone() - second.clone() * sin.clone(), second * cos + first * sin];
    let mut parts = match rotation.pairs {
        Pairs::Halves => both.to_vec(),
        Pairs::Neighbours => {
            let both = both.map(|one| one.reshape([batch, seq, heads * half, 1]));
            vec![Tensor::cat(both.to_vec(), 3).reshape([batch, seq, heads, 2 * half])]
        }
    };
    if 2 * half < head_dim {
        parts.push(x.narrow(3, 2 * half, head_dim - 2 * half));
    }
    Tensor::cat(parts, 3) // what was rotated, [.., rest] -> [batch, seq, heads, head_dim]
}

/// Causal attention, `softmax(scale * QKᵀ) V` head by head: `queries` `[n_kv_heads, batch, group, seq, head_dim]`, and keys and values in
/// the order of their positions as [`Slots::extend`](super::slots::Slots::extend) gives them, in one dtype. Gives the shape of the queries
/// in it.
///
/// Queries are the last `seq` positions of the keys. Scores and their softmax are f32 whatever the dtype.
/// A GPU reads keys that all rows of the batch have where they lie; here they are repeated.
pub(crate) fn attention(queries: Tensor<5>, keys_values: &[KeysValues], with: Attention<'_>) -> Tensor<5> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if gpu::has(&queries) {
        return gpu::attention(queries, keys_values, with);
    }
    let [n_kv_heads, batch, group, seq, head_dim] = queries.dims();
    let dtype = queries.dtype();
    // A group of query heads shares its key head by broadcasting, without a copy of the keys.
    let queries = widen(queries).reshape([n_kv_heads * batch, group, seq, head_dim]);
    let keys = of_each_row(keys_values.iter().map(|(keys, _)| keys), batch);
    let values = of_each_row(keys_values.iter().map(|(_, values)| values), batch);
    let [_, _, seq_keys, _] = keys.dims();
    let options = AttentionModuleOptions { scale: Some(with.scale), softcap: with.soft_cap, is_causal: true };
    let mixed = match with.sinks {
        None => module::attention(queries, keys, values, with.hidden.cloned(), None, options),
        Some(sinks) => {
            // A sink is a key before all others that no query meets and whose value is nothing: what it scores is added to it.
            let device = &queries.device();
            let nothing = Tensor::zeros([n_kv_heads * batch, 1, 1, head_dim], (device, DType::F32));
            let (keys, values) = (Tensor::cat(vec![nothing.clone(), keys], 2), Tensor::cat(vec![nothing, values], 2));
            let hidden = with.hidden.map(|hidden| {
                let [first, second, queries, _] = hidden.dims();
                let seen = Tensor::<4, Bool>::full([first, second, queries, 1], false, device);
                Tensor::cat(vec![seen, hidden.clone()], 3)
            });
            // [n_heads] -> [n_kv_heads, 1, group, 1] -> [n_kv_heads, batch, group, seq] -> [n_kv_heads * batch, group, seq, 1]
            let sinks = sinks.clone().reshape([n_kv_heads, 1, group, 1]).expand([n_kv_heads, batch, group, seq]);
            let sinks = sinks.reshape([n_kv_heads * batch, group, seq, 1]);
            let others = Tensor::zeros([n_kv_heads * batch, group, seq, seq_keys], (device, DType::F32));
            module::attention(queries, keys, values, hidden, Some(Tensor::cat(vec![sinks, others], 3)), options)
        }
    };
    cast(mixed.reshape([n_kv_heads, batch, group, seq, head_dim]), dtype)
}

/// Keys or values one behind the other, `[n_kv_heads, batch or 1, keys, head_dim]` each: `[n_kv_heads * batch, 1, seq_keys, head_dim]` in
/// f32.
fn of_each_row<'a>(parts: impl Iterator<Item = &'a Tensor<4>>, batch: usize) -> Tensor<4> {
    let each = |part: &Tensor<4>| {
        let [n_kv_heads, _, keys, head_dim] = part.dims();
        widen(part.clone()).expand([n_kv_heads, batch, keys, head_dim])
    };
    let mut parts: Vec<Tensor<4>> = parts.map(each).collect();
    let all = if parts.len() == 1 { parts.remove(0) } else { Tensor::cat(parts, 2) };
    let [n_kv_heads, _, seq_keys, head_dim] = all.dims();
    all.reshape([n_kv_heads * batch, 1, seq_keys, head_dim])
}

/// Attention to both sides, `softmax(QKᵀ / sqrt(head_dim)) V` head by head, without the keys that are `hidden`
/// (`masks.rs`): `queries`, `keys` and `values` `[batch, n_heads, seq, head_dim]` in f32 give the same shape.
#[cfg(feature = "train")]
pub(crate) fn attention_to_both_sides(
    queries: Tensor<4>,
    keys: Tensor<4>,
    values: Tensor<4>,
    hidden: Tensor<4, Bool>,
) -> Tensor<4> {
    let options = AttentionModuleOptions { scale: None, softcap: None, is_causal: false };
    module::attention(queries, keys, values, Some(hidden), None, options)
}

/// The entropy in nats of the weights that each query gives the keys, `-Σ p ln p`, from what
/// [`attention`] takes: `[batch, seq, n_heads]` in f32. With sinks the weights of the
/// keys add up to less than 1, and the sink's own term is left out.
///
/// Everything but the products on a GPU is computed in f32.
/// Scores of the heads of one key head are in memory at a time, `[batch, group, seq, seq_keys]`.
/// Masks must be of the form `[1, 1, seq, seq_keys]`: entropies are read of prompts, not of new
/// tokens.
pub(crate) fn attention_entropy(queries: Tensor<5>, keys_values: &[KeysValues], with: Attention<'_>) -> Tensor<3> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if gpu::has(&queries) {
        return gpu::attention_entropy(queries, keys_values, with);
    }
    /// As good as minus infinity, but 0 times it is 0.
    const HIDDEN: f32 = -1e30;
    let [n_kv_heads, batch, group, seq, head_dim] = queries.dims();
    let keys = of_each_row(keys_values.iter().map(|(keys, _)| keys), batch);
    let [_, _, seq_keys, _] = keys.dims();
    let later = Tensor::<2, Bool>::tril_mask([seq, seq_keys], (seq_keys - seq) as i64, &queries.device());
    let later = later.reshape([1, 1, seq, seq_keys]);
    let hidden = match with.hidden {
        Some(hidden) => hidden.clone().bool_or(later),
        None => later,
    };
    let hidden = hidden.expand([batch, group, seq, seq_keys]);
    let entropies = (0..n_kv_heads).map(|head| {
        // [n_kv_heads, batch, group, seq, head_dim] -> [1, batch, group, seq, head_dim] -> [batch, 1, group * seq, head_dim]
        let queries = widen(queries.clone().narrow(0, head, 1)).reshape([batch, 1, group * seq, head_dim]);
        // [n_kv_heads * batch, 1, seq_keys, head_dim] -> [batch, 1, seq_keys, head_dim] -> [batch, 1, head_dim, seq_keys]
        let keys = keys.clone().narrow(0, head * batch, batch).swap_dims(2, 3);
        let scores = queries.matmul(keys).mul_scalar(with.scale); // [batch, 1, group * seq, seq_keys]
        let scores = match with.soft_cap {
            Some(cap) => scores.div_scalar(cap).tanh().mul_scalar(cap),
            None => scores,
        };
        let scores = scores.reshape([batch, group, seq, seq_keys]).mask_fill(hidden.clone(), HIDDEN);
        // With x = score - highest and Z = Σ exp(x): H = ln Z - Σ exp(x) x / Z, of which both terms are at least 0.
        let highest = scores.clone().max_dim(3); // [batch, group, seq, 1]
        let Some(sinks) = with.sinks else {
            let x = scores - highest;
            let weights = x.clone().exp();
            let total = weights.clone().sum_dim(3); // [batch, group, seq, 1]
            let mean = (weights * x).sum_dim(3) / total.clone();
            return total.log() - mean;
        };
        // A sink adds to Z, but nothing to the sums over keys.
        let sinks = sinks.clone().narrow(0, head * group, group).reshape([1, group, 1, 1]);
        let sinks = sinks.expand([batch, group, seq, 1]);
        let highest = highest.max_pair(sinks.clone());
        let x = scores - highest.clone();
        let weights = x.clone().exp();
        let of_keys = weights.clone().sum_dim(3); // [batch, group, seq, 1]
        let total = of_keys.clone() + (sinks - highest).exp();
        (total.clone().log() * of_keys - (weights * x).sum_dim(3)) / total
    });
    // [batch, group, seq, 1] of each key head -> [batch, n_heads, seq, 1] -> [batch, n_heads, seq] -> [batch, seq, n_heads]
    Tensor::cat(entropies.collect(), 1).reshape([batch, n_kv_heads * group, seq]).swap_dims(1, 2)
}

/// `f(gate) * up`, or what [`Activation`] says instead: `[batch, seq, 2 * d_ff]`, gate before up,
/// gives `[batch, seq, d_ff]` in `dtype`. Of `[batch, seq, d_ff]` it is `f(up)`, without a gate.
pub(crate) fn gated_activation(gate_up: Tensor<3>, d_ff: usize, function: Activation, dtype: DType) -> Tensor<3> {
    #[cfg(any(feature = "cuda", feature = "wgpu"))]
    if gpu::has(&gate_up) {
        return judge_gpu::gate(gate_up, d_ff, function, dtype);
    }
    if gate_up.dims()[2] == d_ff {
        return cast(activated(widen(gate_up), function), dtype);
    }
    let gate = widen(gate_up.clone().narrow(2, 0, d_ff)); // [batch, seq, 2 * d_ff] -> [batch, seq, d_ff]
    let up = widen(gate_up.narrow(2, d_ff, d_ff)); // the same
    let up = match function {
        Activation::ClampedSwish { limit, .. } => up.clamp(-limit, limit).add_scalar(1.0),
        _ => up,
    };
    cast(activated(gate, function) * up, dtype)
}

/// `f(x)`. The shape and the dtype of `x` stay. Of [`Activation::ClampedSwish`] this is the part of
/// the gate.
pub(crate) fn activated(x: Tensor<3>, function: Activation) -> Tensor<3> {
    match function {
        Activation::Silu => activation::silu(x),
        Activation::Gelu => activation::gelu(x),
        Activation::GeluTanh => activation::gelu_approximate(x),
        Activation::Relu => activation::relu(x),
        Activation::ReluSquared => activation::relu(x).square(),
        Activation::ClampedSwish { alpha, limit } => {
            let x = x.clamp_max(limit);
            x.clone() * activation::sigmoid(x.mul_scalar(alpha))
        }
    }
}

/// The weights of the experts that `routing` chooses by their logits `[batch, seq, n_experts]`, and
/// 0 for all others: the same shape, in f32, on the same device.
///
/// `choice_bias` `[n_experts]` is added to scores for the choice alone. Of equal scores the one with the
/// lower index is chosen. A row with a NaN among its logits gets
/// NaN for every expert, chosen or not, so that the fault reaches what is read. Gradients flow
/// through the weights and not through the choice.
pub(crate) fn route(logits: Tensor<3>, routing: Routing, choice_bias: Option<Tensor<1>>) -> Tensor<3> {
    let logits = widen(logits);
    let (shares, scores) = match routing.scores {
        // The softmax grows with the logit.
        Scores::Softmax => (activation::softmax(logits.clone(), 2), logits),
        Scores::Sigmoid { .. } => {
            let shares = activation::sigmoid(logits);
            (shares.clone(), shares)
        }
    };
    let scores = match choice_bias {
        Some(bias) => scores + bias.unsqueeze(),
        None => scores,
    };
    let [batch, seq, n_experts] = scores.dims();
    let shape = [batch, seq, n_experts];
    let numbers = (0..n_experts).map(|expert| expert as f32).collect();
    let numbers = Tensor::<1>::from_data(TensorData::new(numbers, [n_experts]), &scores.device());
    let numbers = numbers.reshape([1, 1, n_experts]).expand(shape);
    // The highest of what is left, `top_k` times; of equal ones the first. A choice has no
    // gradient.
    let mut left = scores.detach();
    let mut chosen = Tensor::<3, Bool>::full(shape, false, &left.device());
    for _ in 0..routing.top_k {
        let is_highest = left.clone().equal(left.clone().max_dim(2).expand(shape));
        let first = numbers.clone().mask_fill(is_highest.bool_not(), n_experts as f32).min_dim(2); // [batch, seq, 1]
        let this = numbers.clone().equal(first.expand(shape));
        left = left.mask_fill(this.clone(), f32::NEG_INFINITY);
        chosen = chosen.bool_or(this);
    }
    let others = chosen.bool_not();
    // Where a logit is NaN nothing is equal to the highest, and NaN must come of it.
    let nothing = shares.clone().sum_dim(2).mul_scalar(0.0); // [batch, seq, 1]
    let kept = shares.mask_fill(others, 0.0) + nothing;
    match (routing.scores, routing.among_chosen) {
        (Scores::Softmax, true) => kept.clone() / kept.sum_dim(2),
        (Scores::Softmax, false) => kept,
        (Scores::Sigmoid { factor, least }, true) => kept.clone() / kept.sum_dim(2).add_scalar(least) * factor,
        (Scores::Sigmoid { factor, .. }, false) => kept * factor,
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::engine::packed::cases::numbers;

    #[test]
    fn label_products_are_within_the_bound_of_sums_in_f64() {
        let device = Device::flex();
        for (batch, labels, d_model) in [(1, 1, 1), (3, 5, 2), (2, 4, 37), (3, 10, 1000), (2, 3, 4096)] {
            let (states, head) = (numbers(1, batch * d_model), numbers(2, labels * d_model));
            let tensor = |values: &[f32]| Tensor::<1>::from_data(TensorData::from(values), &device);
            let (of_states, of_head) = (tensor(&states).reshape([batch, 1, d_model]), tensor(&head));
            let found = label_products(of_states, of_head.reshape([labels, d_model]));
            assert_eq!(found.dims(), [batch, 1, labels]);
            let found: Vec<f32> = found.into_data().try_to_vec().unwrap();
            let pairs = states.chunks(d_model).flat_map(|state| head.chunks(d_model).map(move |row| (state, row)));
            for (found, (state, row)) in found.into_iter().zip(pairs) {
                let products = || state.iter().zip(row).map(|(&a, &b)| f64::from(a) * f64::from(b));
                let bound = d_model as f64 * f64::from(f32::EPSILON) / 2.0 * products().map(f64::abs).sum::<f64>();
                let error = (f64::from(found) - products().sum::<f64>()).abs();
                assert!(error <= 1.01 * bound, "{d_model}: {error:e}, at most {bound:e}");
            }
        }
    }

    #[test]
    fn experts_with_the_highest_logits_are_chosen_and_of_equal_ones_the_first() {
        let weights = |logits: [f32; 4], among_chosen| {
            let logits = Tensor::<1>::from_floats(logits, &Device::flex()).reshape([1, 1, 4]);
            route(logits, Routing { top_k: 2, scores: Scores::Softmax, among_chosen }, None)
                .into_data()
                .try_to_vec::<f32>()
                .unwrap()
        };
        let close = |found: Vec<f32>, expected: [f32; 4]| {
            assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} {expected:?}");
        };
        close(weights([0.0, 2_f32.ln(), 0.0, 0.0], true), [1.0 / 3.0, 2.0 / 3.0, 0.0, 0.0]);
        close(weights([0.0, 2_f32.ln(), 0.0, 0.0], false), [0.2, 0.4, 0.0, 0.0]);
        close(weights([-1.0, 5.0, 5.0, 5.0], true), [0.0, 0.5, 0.5, 0.0]);
        close(weights([f32::NEG_INFINITY, 1.0, 0.0, f32::NEG_INFINITY], false), [0.0, 0.731_058_6, 0.268_941_4, 0.0]);
        for among_chosen in [false, true] {
            assert!(weights([1.0, f32::NAN, 0.0, 0.0], among_chosen).iter().all(|weight| weight.is_nan()));
        }
    }
}
