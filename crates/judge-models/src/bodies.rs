//! Each fast body beside the composed operations that it is tested against, for the benchmark `bodies`. Not part of the API.

use burn::tensor::{Device, Tensor, TensorData};
use half::bf16;
use rayon::prelude::*;

use crate::arch::angles;
use crate::arch::{Activation, Pairs, RopeConfig, RopeScaling};
use crate::engine::packed::{
    KeyShape, Keys, Lines, PackedLinear, Queries, Settings, Sight, Supported, Word, attend, vector,
};
use crate::engine::tensor::ops::{self, Attention};
use crate::engine::tensor::rotation::Rotation;
use crate::weights::Numbers;

// Qwen3-0.6B's block.
const D_MODEL: usize = 1024;
const D_FF: usize = 3072;
const SHAPE: KeyShape = KeyShape { n_kv_heads: 8, head_dim: 128, word: Word::Pair };
const N_HEADS: usize = 16;
const EPS: f64 = 1e-6;

/// One operation on some rows, computed in two ways.
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

fn numbers(count: usize) -> Vec<f32> {
    (0..count as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f32 / (1 << 23) as f32 - 1.0).collect()
}

fn tensor<const D: usize>(values: &[f32], shape: [usize; D]) -> Tensor<D> {
    Tensor::from_data(TensorData::new(values.to_vec(), shape), &Device::flex())
}

/// All bodies with this processor's fastest kernel, each on a single row, on an odd few and on a prompt's.
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
        composed: Box::new(move || drop(ops::linear(tensors.clone(), weight.clone(), None))),
    }
}

/// The last `rows` of 512 positions look at all that is before them.
fn attention(kernel: Supported, rows: usize) -> Body {
    const SEQ: usize = 512;
    let KeyShape { n_kv_heads, head_dim, .. } = SHAPE;
    let stride = (N_HEADS + 2 * n_kv_heads) * head_dim;
    let qkv = numbers(SEQ * stride);
    let mut keys = Keys::alike(SHAPE, None, SEQ, 1);
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
        sight: Sight::Before(None),
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
            let with = Attention { scale, soft_cap: None, hidden: None, sinks: None };
            drop(ops::attention(queries.clone(), tensor_keys.clone(), values.clone(), with));
        }),
    }
}

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

/// Of the query heads, each normed first.
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
            rows.for_each(|(out, x)| vector::gated(&x[..D_FF], &x[D_FF..], Activation::Silu, out));
        }),
        composed: Box::new(move || drop(ops::gated_activation(tensors.clone(), Activation::Silu))),
    }
}

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
