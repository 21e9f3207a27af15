//! Each fast body beside the composed operations that it is tested against, for the benchmark
//! `bodies`. Not part of the API (feature `bench`).
//!
//! A body is one operation of a block of Qwen3-0.6B, over 1, 17 and 512 rows. The benchmark times
//! two closures for it: `fast` runs what `engine/packed` computes, with rayon's threads, although a pass makes norms,
//! gates and sums as part of products;
//! `composed` runs `engine/tensor` on Burn's CPU device in f32. Inputs are made outside the
//! closures. Nothing is compared here; tests of the engines do that.

use burn::tensor::{Device, Tensor, TensorData};
use half::bf16;
use rayon::prelude::*;

use crate::arch::angles;
use crate::arch::{Activation, Pairs, RopeConfig, RopeScaling};
use crate::engine::packed::{
    KeyShape, KvCache, Lines, Mask, PackedLinear, Queries, Settings, Supported, Word, attend, vector,
};
use crate::engine::tensor::ops::{self, Attention};
use crate::engine::tensor::precision::Precision;
use crate::engine::tensor::rotation::Rotation;
use crate::weights::Numbers;

// Sizes of a block of Qwen3-0.6B.
const D_MODEL: usize = 1024;
/// Width between the two products of the MLP.
const D_FF: usize = 3072;
/// Key heads, with keys in bf16, two to a word.
const SHAPE: KeyShape = KeyShape { n_kv_heads: 8, head_dim: 128, word: Word::Pair };
const N_HEADS: usize = 16;
/// Epsilon of the norms.
const EPS: f64 = 1e-6;

/// One operation on some rows, computed in two ways. Each call of a closure does all rows once.
pub struct Body {
    /// What it is, without the number of rows.
    pub name: &'static str,
    /// Rows of activations.
    pub rows: usize,
    /// By the body for the CPU.
    pub fast: Box<dyn FnMut()>,
    /// By Burn's operations, in f32.
    pub composed: Box<dyn FnMut()>,
}

/// Numbers in [-1, 1) that look random and are the same each time.
fn numbers(count: usize) -> Vec<f32> {
    (0..count as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
}

/// The same values as a tensor on Burn's CPU device, which must be as many as the shape says.
fn tensor<const D: usize>(values: &[f32], shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &Device::flex())
}

/// All bodies with this processor's fastest kernel, each on a single row, on an odd few and on a
/// prompt's.
#[must_use]
pub fn bodies() -> Vec<Body> {
    let kernel = Supported::fastest();
    [1, 17, 512]
        .into_iter()
        .flat_map(|rows| {
            [linear(kernel, rows), attention(kernel, rows), norm(rows), rotation(rows), gate(rows), add(rows)]
        })
        .collect()
}

/// The product of an MLP's gate and up matrices, one below the other, from `D_MODEL` to `2 * D_FF`
/// coordinates. Weights are bf16 in the fast body.
fn linear(kernel: Supported, rows: usize) -> Body {
    let (weight, x) = (numbers(2 * D_FF * D_MODEL), numbers(rows * D_MODEL));
    let mut packed = PackedLinear::zeros(kernel, Word::Pair, 2 * D_FF, D_MODEL);
    packed.fill(0, Numbers::Bf16(&weight.iter().map(|&w| bf16::from_f32(w)).collect::<Vec<_>>()));
    let (tensors, weight) = (tensor(&x, [1, rows, D_MODEL]), tensor(&weight, [2 * D_FF, D_MODEL]));
    let (mut out, mut scratch) = (vec![0.0; rows * 2 * D_FF], Lines::default());
    Body {
        name: "linear",
        rows,
        fast: Box::new(move || packed.apply(&x, rows, &mut out, &mut scratch)),
        composed: Box::new(move || drop(ops::linear(tensors.clone(), weight.clone(), None, Precision::FULL))),
    }
}

/// Causal attention: the last `rows` of 512 positions look at all that is before them and at
/// themselves.
fn attention(kernel: Supported, rows: usize) -> Body {
    const SEQ: usize = 512;
    let KeyShape { n_kv_heads, head_dim, .. } = SHAPE;
    let stride = (N_HEADS + 2 * n_kv_heads) * head_dim;
    let qkv = numbers(SEQ * stride);
    let mut keys = KvCache::alike(SHAPE, None, SEQ, 1);
    keys.write(0, &qkv[N_HEADS * head_dim..], stride, SEQ);
    let scale = (head_dim as f64).powf(-0.5);
    let all = tensor(&qkv, [1, SEQ, N_HEADS + 2 * n_kv_heads, head_dim]);
    let heads = |from: usize, count: usize| all.clone().narrow(2, from, count).swap_dims(1, 2);
    let queries = heads(0, N_HEADS).narrow(2, SEQ - rows, rows);
    let (tensor_keys, values) = (heads(N_HEADS, n_kv_heads), heads(N_HEADS + n_kv_heads, n_kv_heads));
    let settings = Settings {
        kernel,
        n_heads: N_HEADS,
        shape: SHAPE,
        scale: scale as f32,
        soft_cap: None,
        mask: Mask::Causal(None),
        sinks: None,
    };
    let mut out = vec![0.0; rows * N_HEADS * head_dim];
    Body {
        name: "attention",
        rows,
        fast: Box::new(move || {
            let queries = Queries { keys: &keys, position: SEQ - rows, row: SEQ - rows, count: rows };
            attend(settings, 0, &[queries], &qkv, stride, &mut out);
        }),
        composed: Box::new(move || {
            let with = Attention { scale, soft_cap: None, hidden: None, sinks: None, precision: Precision::FULL };
            drop(ops::attention(queries.clone(), tensor_keys.clone(), values.clone(), with));
        }),
    }
}

/// RMSNorm of rows `[rows, 1024]`.
fn norm(rows: usize) -> Body {
    let (x, weight) = (numbers(rows * D_MODEL), numbers(D_MODEL));
    let (tensors, weights) = (tensor(&x, [1, rows, D_MODEL]), tensor(&weight, [D_MODEL]));
    let mut out = vec![0.0; rows * D_MODEL];
    Body {
        name: "norm",
        rows,
        fast: Box::new(move || {
            let rows = out
                .par_chunks_exact_mut(D_MODEL)
                .with_min_len(vector::worth_a_task(D_MODEL))
                .zip(x.par_chunks_exact(D_MODEL));
            rows.for_each(|(out, x)| vector::rms_norm(x, &weight, EPS as f32, out));
        }),
        composed: Box::new(move || drop(ops::rms_norm(tensors.clone(), weights.clone(), EPS))),
    }
}

/// Norm of each query head, then its rotation by the row's position.
fn rotation(rows: usize) -> Body {
    let KeyShape { head_dim, .. } = SHAPE;
    let (pairs, scaling) = (Pairs::Halves, RopeScaling::Default);
    let rope = RopeConfig { theta: 1e6, rotary_dim: head_dim, scaling, pairs, query_growth: None };
    let half = head_dim / 2;
    let [cos, sin] = angles(&rope, rows, rows);
    let (mut x, weight) = (numbers(rows * N_HEADS * head_dim), numbers(head_dim));
    let (tensors, weights) = (tensor(&x, [1, rows, N_HEADS, head_dim]), tensor(&weight, [head_dim]));
    let table = Rotation::new(&[rope], rows, &Device::flex());
    Body {
        name: "norm and rotation of heads",
        rows,
        // It rotates the same heads on and on; their norm keeps them in range.
        fast: Box::new(move || {
            let rows = x
                .par_chunks_exact_mut(N_HEADS * head_dim)
                .with_min_len(vector::worth_a_task(N_HEADS * head_dim))
                .enumerate();
            rows.for_each(|(position, heads)| {
                let (cos, sin) = (&cos[position * half..][..half], &sin[position * half..][..half]);
                let turn = vector::Turn { cos, sin, pairs };
                vector::norm_rotate(heads, head_dim, Some((&weight, EPS as f32)), None, turn);
            });
        }),
        composed: Box::new(move || {
            drop(ops::norm_rotate(tensors.clone(), Some((weights.clone(), EPS)), None, Some(table.table(0))))
        }),
    }
}

/// `silu(gate) * up`, from rows that hold the two side by side.
fn gate(rows: usize) -> Body {
    let x = numbers(rows * 2 * D_FF);
    let tensors = tensor(&x, [1, rows, 2 * D_FF]);
    let mut out = vec![0.0; rows * D_FF];
    Body {
        name: "gated activation",
        rows,
        fast: Box::new(move || {
            let rows = out
                .par_chunks_exact_mut(D_FF)
                .with_min_len(vector::worth_a_task(2 * D_FF))
                .zip(x.par_chunks_exact(2 * D_FF));
            rows.for_each(|(out, x)| vector::gated_halves(x, Activation::Silu, out));
        }),
        composed: Box::new(move || {
            drop(ops::gated_activation(tensors.clone(), tensors.dims()[2] / 2, Activation::Silu))
        }),
    }
}

/// The sum of the residual stream and a block's output, into the stream.
fn add(rows: usize) -> Body {
    let (x, mut sum) = (numbers(rows * D_MODEL), numbers(rows * D_MODEL));
    let (left, right) = (tensor(&sum, [1, rows, D_MODEL]), tensor(&x, [1, rows, D_MODEL]));
    Body {
        name: "residual add",
        rows,
        fast: Box::new(move || {
            let rows = sum
                .par_chunks_exact_mut(D_MODEL)
                .with_min_len(vector::worth_a_task(D_MODEL))
                .zip(x.par_chunks_exact(D_MODEL));
            rows.for_each(|(sum, x)| vector::add(sum, x));
        }),
        composed: Box::new(move || drop(left.clone() + right.clone())),
    }
}
