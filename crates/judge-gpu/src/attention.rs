//! Attention by two products and the softmax between them.
//!
//! Scores are f32 and in memory for some heads at a time, or for some queries of one head, so that
//! they stay within [`SCORES`] whatever the batch. A key head's queries are the rows of one product, so
//! keys are read as they lie, without a copy for each query head.

use std::ops::Range;

use burn::tensor::{DType, Tensor};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;
use cubecl::zspace::metadata::Metadata;
use cubecl::zspace::{Shape, Strides};

use crate::product::{Products, batched};
use crate::softmax::{Softmax, entropy, softmax};
use crate::tensors::{burn, cube};

/// Scores that are in memory at a time, in numbers: 256 MiB in f32.
pub const SCORES: usize = 1 << 26;

/// Attention of `queries` `[batch, n_heads, seq, head_dim]` to `keys` and `values` `[batch, n_kv_heads, keys, head_dim]`, all in one
/// dtype: `[batch, n_heads, seq, head_dim]` in that dtype. Query head `h` uses key head `h / with.group`.
pub fn attention(
    queries: Tensor<4>,
    keys: Tensor<4>,
    values: Tensor<4>,
    with: Softmax<'_>,
    products: Products,
) -> Tensor<4> {
    let (shape, dtype) = (queries.shape(), queries.dtype());
    let values = heads(values);
    let mixed = by_parts(queries, keys, with, products, |scores, of, with| {
        let weights = softmax(scores, with, dtype);
        batched(weights, part(&values, of), false, dtype, products)
    });
    mixed.reshape(shape)
}

/// The entropies in nats of the weights of [`attention`], without the term of a sink: `[batch, seq, n_heads]` in f32.
pub fn attention_entropy(queries: Tensor<4>, keys: Tensor<4>, with: Softmax<'_>, products: Products) -> Tensor<3> {
    let [batch, n_heads, seq, _] = queries.dims();
    let entropies = by_parts(queries, keys, with, products, |scores, _, with| entropy(scores, with));
    entropies.reshape([batch, n_heads, seq]).swap_dims(1, 2)
}

/// What `make` makes of the scores of each part, one part behind the other: `[batch · n_kv_heads, group · seq, width]`.
fn by_parts(
    queries: Tensor<4>,
    keys: Tensor<4>,
    with: Softmax<'_>,
    products: Products,
    make: impl Fn(Tensor<3>, Range<usize>, Softmax<'_>) -> Tensor<3>,
) -> Tensor<3> {
    let [batch, n_heads, seq, head_dim] = queries.dims();
    let (all, rows) = (batch * n_heads / with.group, with.group * seq);
    let queries = queries.reshape([all, rows, head_dim]);
    let keys = heads(keys);
    let n_keys = keys.meta.shape()[1].max(1);
    // Whole heads where one fits, else some rows of one.
    let (heads_at_once, rows_at_once) = match SCORES / (rows * n_keys).max(1) {
        0 => (1, (SCORES / n_keys).max(1)),
        heads => (heads.min(all), rows),
    };
    let mut made = Vec::new();
    for head in (0..all).step_by(heads_at_once) {
        let of = head..all.min(head + heads_at_once);
        let mut of_heads = Vec::new();
        for row in (0..rows).step_by(rows_at_once) {
            let count = rows_at_once.min(rows - row);
            let queries = queries.clone().narrow(0, of.start, of.len()).narrow(1, row, count);
            let scores = batched(queries, part(&keys, of.clone()), true, DType::F32, products);
            of_heads.push(make(scores, of.clone(), Softmax { first_head: of.start, first_row: row, ..with }));
        }
        made.push(joined(of_heads, 1));
    }
    joined(made, 0)
}

fn joined(mut parts: Vec<Tensor<3>>, axis: usize) -> Tensor<3> {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        last => Tensor::cat(parts.into_iter().chain(last).collect(), axis),
    }
}

/// Some heads of `x`.
fn part(x: &CubeTensor, of: Range<usize>) -> Tensor<3> {
    burn::<3>(x.clone()).narrow(0, of.start, of.len())
}

/// `[batch, heads, rows, width]` as `[batch · heads, rows, width]`: as it lies where all heads are as far apart as those of one row of the
/// batch, else copied.
fn heads(x: Tensor<4>) -> CubeTensor {
    let x = cube(x);
    let (shape, strides) = (x.meta.shape().clone(), x.meta.strides().clone());
    let is_even = strides[3] == 1 && (shape[0] == 1 || strides[0] == shape[1] * strides[1]);
    let x = if is_even { x } else { into_contiguous(x) };
    let strides = x.meta.strides().clone();
    // With one head to a row, the rows' distance is the heads'.
    let apart = if shape[1] == 1 { strides[0] } else { strides[1] };
    let meta = Metadata::new(
        Shape::from([shape[0] * shape[1], shape[2], shape[3]]),
        Strides::new(&[apart, strides[2], strides[3]]),
    );
    CubeTensor::new(x.client.clone(), x.handle.clone(), meta, x.device.clone(), x.dtype)
}
