//! The operations of `ops.rs` and `recurrence.rs` on GPUs: each one kernel of `judge-gpu`, or products between some.
//!
//! Here are those whose arguments have to be turned into what the kernels take; those files call the other
//! kernels themselves, and say what each operation gives.

use burn::tensor::{DType, Tensor};
use judge_gpu::{Products, Rotation, Softmax};
use judge_kernels::functions::NormKind;

use super::operands::{Attention, Change, HeadNorm, Heads, Recurrence};
use super::precision::{Precision, cast};
#[cfg(feature = "cuda")]
use super::precision::{joined, parts};
use super::rotation::Table;
use super::slots::KeysValues;

/// Whether a tensor is on a GPU.
pub(super) fn has<const D: usize>(x: &Tensor<D>) -> bool {
    judge_gpu::runs_on(&x.device())
}

fn products(precision: Precision) -> Products {
    Products { tf32: precision.tf32 }
}

/// The rows of a batch as those of one matrix, in the dtype of the matrix that they meet.
fn rows(x: Tensor<3>, weight: &Tensor<2>) -> (Tensor<2>, [usize; 3]) {
    let [batch, seq, d_in] = x.dims();
    let [d_out, _] = weight.dims();
    (cast(x, weight.dtype()).reshape([batch * seq, d_in]), [batch, seq, d_out])
}

pub(super) fn linear(x: Tensor<3>, weight: Tensor<2>, bias: Option<Tensor<1>>, precision: Precision) -> Tensor<3> {
    let (rows, shape) = rows(x, &weight);
    let dtype = if bias.is_some() { DType::F32 } else { weight.dtype() };
    judge_gpu::product(rows, weight, None, bias, 1.0, dtype, products(precision)).reshape(shape)
}

/// By a matrix in bf16, of rows in f32: a product of the three parts of the rows, which is exact up to the sums.
#[cfg(feature = "cuda")]
pub(super) fn linear_wide(x: Tensor<3>, weight: Tensor<2>, bias: Option<Tensor<1>>, precision: Precision) -> Tensor<3> {
    let ([batch, seq, d_in], [d_out, _]) = (x.dims(), weight.dims());
    let rows = parts(x.reshape([batch * seq, d_in]));
    let y = joined(judge_gpu::product(rows, weight, None, None, 1.0, DType::F32, products(precision)));
    let y = match bias {
        Some(bias) => y + bias.unsqueeze(),
        None => y,
    };
    y.reshape([batch, seq, d_out])
}

pub(super) fn linear_onto(
    x: Tensor<3>,
    weight: Tensor<2>,
    bias: Option<Tensor<1>>,
    onto: Tensor<3>,
    factor: Option<f64>,
    precision: Precision,
) -> Tensor<3> {
    let (rows, [batch, seq, d_out]) = rows(x, &weight);
    // Within the product the factor is the matrix's alone.
    let bias = bias.map(|bias| factor.map_or(bias.clone(), |factor| bias.mul_scalar(factor)));
    let onto = onto.reshape([batch * seq, d_out]);
    let factor = factor.unwrap_or(1.0);
    let y = judge_gpu::product(rows, weight, Some(onto), bias, factor, DType::F32, products(precision));
    y.reshape([batch, seq, d_out])
}

pub(super) fn heads(x: &Tensor<3>, of: Heads<'_>, dtype: DType) -> Tensor<5> {
    let rotation = of.rotation.map(|table: &Table| Rotation {
        cos: table.cos.clone(),
        sin: table.sin.clone(),
        pairs: table.pairs,
        factors: table.query_factors.clone().filter(|_| of.are_queries),
    });
    let heads = judge_gpu::Heads {
        first: of.first,
        step: of.step,
        heads: of.heads,
        group: of.group,
        head_dim: of.head_dim,
        norm: judge_gpu::HeadNorm::Absent,
        eps: of.eps,
        limit: of.limit,
        rotation,
    };
    let norm = match of.norm {
        HeadNorm::Absent => judge_gpu::HeadNorm::Absent,
        HeadNorm::Plain => judge_gpu::HeadNorm::Plain,
        HeadNorm::Weighted(weight) if weight.dims()[0] > of.head_dim => {
            // All heads of a position are normed together, before they are taken apart.
            let all = x.clone().narrow(2, of.first, of.heads * of.step);
            let normed = judge_gpu::norm(NormKind::RmsNorm, all, weight.clone(), of.eps, DType::F32);
            return judge_gpu::heads(normed, &judge_gpu::Heads { first: 0, ..heads }, dtype);
        }
        HeadNorm::Weighted(weight) => judge_gpu::HeadNorm::Weighted(weight.clone()),
    };
    judge_gpu::heads(x.clone(), &judge_gpu::Heads { norm, ..heads }, dtype)
}

/// What attention's kernels take, for queries of this shape and so many keys.
fn softmax<'a>([_, batch, group, seq, _]: [usize; 5], keys: &[Tensor<4>], with: Attention<'a>) -> Softmax<'a> {
    let n_keys: usize = keys.iter().map(|keys| keys.dims()[2]).sum();
    Softmax {
        scale: with.scale,
        soft_cap: with.soft_cap,
        hidden: with.hidden,
        sinks: with.sinks,
        ..Softmax::plain(batch, group, seq, n_keys)
    }
}

pub(super) fn attention(queries: Tensor<5>, keys_values: &[KeysValues], with: Attention<'_>) -> Tensor<5> {
    let (keys, values): (Vec<_>, Vec<_>) = keys_values.iter().cloned().unzip();
    let softmax = softmax(queries.dims(), &keys, with);
    judge_gpu::attention(queries, &keys, &values, softmax, products(with.precision))
}

pub(super) fn attention_entropy(queries: Tensor<5>, keys_values: &[KeysValues], with: Attention<'_>) -> Tensor<3> {
    let keys: Vec<Tensor<4>> = keys_values.iter().map(|(keys, _)| keys.clone()).collect();
    let softmax = softmax(queries.dims(), &keys, with);
    judge_gpu::attention_entropy(queries, &keys, softmax, products(with.precision))
}

pub(super) fn recur(
    rows: Tensor<3>,
    [decays, strengths]: [Tensor<3>; 2],
    before: Option<Tensor<4>>,
    of: Recurrence,
) -> (Tensor<4>, Tensor<4>) {
    let change = match of.change {
        Change::Value => judge_gpu::Change::Value,
        Change::Unknown { eps } => judge_gpu::Change::Unknown { eps },
    };
    let of = judge_gpu::Recurrence {
        key_heads: of.key_heads,
        heads: of.heads,
        key_dim: of.key_dim,
        value_dim: of.value_dim,
        first: of.first,
        change,
        scale: of.scale,
    };
    judge_gpu::recurrence(rows, decays, strengths, before, &of)
}
