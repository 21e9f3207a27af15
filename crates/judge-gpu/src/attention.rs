//! Attention by products and the softmax between them.
//!
//! Scores are f32 and in memory for some heads at a time, or for some queries of one head, so that
//! they stay within [`SCORES`] whatever the batch. A key head's queries are the rows of one product, so
//! keys are read as they lie, without a copy for each query head. Heads come before rows of the batch, so the same holds for
//! keys that all rows have: the queries of all rows are the rows of one product, as far as scores of all of them are in memory at a time.
//!
//! ```text
//! scores of one key head    keys of all rows   own keys
//!   queries of row 0        ┌──────────────┐  ┌─────────┐
//!                           │ one product  │  ├─────────┤  one for each row
//!   queries of row 1        └──────────────┘  └─────────┘
//! ```

use std::ops::Range;

use burn::tensor::{DType, Tensor};
use burn_cubecl::kernel::into_contiguous;
use burn_cubecl::tensor::CubeTensor;

use crate::product::{Products, side_by_side, summed};
use crate::softmax::{Softmax, entropy, softmax};
use crate::tensors::{burn, cube, joined, view};

/// Scores that are in memory at a time, in numbers: 256 MiB in f32.
pub const SCORES: usize = 1 << 26;

/// Keys or values one behind the other, `[n_kv_heads, batch, keys, head_dim]`, or with 1 in the place of `batch` where all rows have the
/// same.
type Parts<'a> = &'a [Tensor<4>];

/// Attention of `queries` `[n_kv_heads, batch, group, seq, head_dim]` to `keys` and `values`, all in one dtype: the shape of the queries in
/// that dtype.
pub fn attention(
    queries: Tensor<5>,
    keys: Parts<'_>,
    values: Parts<'_>,
    with: Softmax<'_>,
    products: Products,
) -> Tensor<5> {
    let (shape, dtype) = (queries.shape(), queries.dtype());
    let [n_kv_heads, batch, ..] = queries.dims();
    let values = heads(values);
    let mixed = by_runs(queries, keys, with, products, SCORES, |scores, of, with| {
        summed(softmax(scores, with, dtype), &of_run(&values, of, n_kv_heads * batch), products)
    });
    mixed.reshape(shape)
}

/// The entropies in nats of the weights of [`attention`], without the term of a sink: `[batch, seq, n_heads]` in f32.
pub fn attention_entropy(queries: Tensor<5>, keys: Parts<'_>, with: Softmax<'_>, products: Products) -> Tensor<3> {
    let [n_kv_heads, batch, group, seq, _] = queries.dims();
    let entropies = by_runs(queries, keys, with, products, SCORES, |scores, _, with| entropy(scores, with));
    entropies.reshape([n_kv_heads, batch, group, seq]).permute([1, 3, 0, 2]).reshape([batch, seq, n_kv_heads * group])
}

/// What `make` makes of the scores of some heads and rows, at most `most` scores at a time or those of one query, one behind the other:
/// `[n_kv_heads · batch, group · seq, width]`.
fn by_runs(
    queries: Tensor<5>,
    keys: Parts<'_>,
    with: Softmax<'_>,
    products: Products,
    most: usize,
    make: impl Fn(Tensor<3>, Range<usize>, Softmax<'_>) -> Tensor<3>,
) -> Tensor<3> {
    let [n_kv_heads, batch, group, seq, head_dim] = queries.dims();
    let (all, rows) = (n_kv_heads * batch, group * seq);
    let queries = queries.reshape([all, rows, head_dim]);
    let n_keys: usize = keys.iter().map(|keys| keys.dims()[2]).sum();
    let keys = heads(keys);
    let made = runs_of_heads(n_kv_heads, batch, rows * n_keys, most).map(|of| {
        let rows_at_once = if of.len() == 1 { most / n_keys.max(1) } else { rows };
        let made = runs(0..rows, rows_at_once).map(|row| {
            let queries = queries.clone().narrow(0, of.start, of.len()).narrow(1, row.start, row.len());
            let scores = side_by_side(queries, &of_run(&keys, of.clone(), all), DType::F32, products);
            make(scores, of.clone(), Softmax { first_head: of.start, first_row: row.start, ..with })
        });
        joined(made.collect(), 1)
    });
    joined(made.collect(), 0)
}

/// `of` in runs of at most `most`, or of one.
fn runs(of: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    let (end, most) = (of.end, most.max(1));
    of.step_by(most).map(move |start| start..end.min(start + most))
}

/// The heads of a batch, of `scores` scores each, in runs that have at most `most` together or are one head. A run is some rows of the
/// batch of one key head, or all rows of some key heads.
fn runs_of_heads(n_kv_heads: usize, batch: usize, scores: usize, most: usize) -> impl Iterator<Item = Range<usize>> {
    let heads = most / scores.max(1);
    let whole = (heads / batch.max(1)).max(1) * batch;
    runs(0..n_kv_heads * batch, whole).flat_map(move |of| runs(of, heads))
}

/// What a run of `all` heads has of each part: its own heads, or their key heads where all rows of the batch have the same.
fn of_run(parts: &[CubeTensor], of: Range<usize>, all: usize) -> Vec<Tensor<3>> {
    let part = |x: &CubeTensor| {
        let each = all / x.meta.shape()[0];
        let of = of.start / each..of.end.div_ceil(each);
        burn::<3>(x.clone()).narrow(0, of.start, of.len())
    };
    parts.iter().map(part).collect()
}

/// `[n_kv_heads, batch or 1, keys, head_dim]` as `[n_kv_heads · batch or n_kv_heads, keys, head_dim]`: as it lies where all heads are
/// equally far apart, else copied.
fn heads(parts: Parts<'_>) -> Vec<CubeTensor> {
    let fold = |x: &Tensor<4>| {
        let [n_kv_heads, batch, keys, head_dim] = x.dims();
        let x = cube(x.clone());
        let strides = x.meta.strides();
        let is_even = strides[3] == 1 && (n_kv_heads == 1 || batch == 1 || strides[0] == batch * strides[1]);
        let x = if is_even { x } else { into_contiguous(x) };
        let strides = x.meta.strides();
        // With one row to a head, the heads' distance is the rows'.
        let apart = if batch == 1 { strides[0] } else { strides[1] };
        view(&x, 0, [n_kv_heads * batch, keys, head_dim], [apart, strides[2], strides[3]])
    };
    parts.iter().map(fold).collect()
}

#[cfg(test)]
mod tests {
    #[cfg(feature = "wgpu")]
    use burn::tensor::{Bool, Device, DeviceType, TensorData};

    use super::*;

    /// Whether scores are of all heads, of some rows of the batch, or of some queries of one head.
    #[cfg(feature = "wgpu")]
    #[test]
    #[allow(clippy::print_stderr)] // what was skipped
    fn runs_give_what_all_at_once_gives() {
        let Some(device) = Device::enumerate(DeviceType::Wgpu).into_vec().into_iter().next() else {
            return eprintln!("skipped: wgpu finds no GPU and no software adapter");
        };
        let (n_kv_heads, batch, group, seq, head_dim, common, own) = (2, 3, 2, 4, 8, 3, 5);
        let (heads_of_all, rows, n_keys) = (n_kv_heads * batch, group * seq, common + own);
        let numbers = |count: usize, seed: usize| -> Vec<f32> {
            (0..count).map(|i| ((i * 37 + i * i * 11 + seed * 29) % 101) as f32 / 50.0 - 1.0).collect()
        };
        let tensor = |shape: [usize; 4], seed| {
            Tensor::<4>::from_data(TensorData::new(numbers(shape.iter().product(), seed), shape), &device)
        };
        let queries = tensor([n_kv_heads, batch, rows, head_dim], 1).reshape([n_kv_heads, batch, group, seq, head_dim]);
        let part = |(rows, keys), seed| tensor([n_kv_heads, rows, keys, head_dim], seed);
        let parts = |seed| [part((1, common), seed), part((batch, own), seed + 1)];
        let (keys, values) = (parts(2), heads(&parts(6)));
        // Another mask for each head, and another sink for each query head: a run has to know which are its own.
        let hidden: Vec<bool> = (0..heads_of_all * seq * n_keys).map(|i| i % 7 == i / 5 % 3).collect();
        let hidden = Tensor::<4, Bool>::from_data(TensorData::new(hidden, [heads_of_all, 1, seq, n_keys]), &device);
        let sinks = tensor([1, 1, n_kv_heads, group], 9).reshape([n_kv_heads * group]);
        let with = Softmax {
            scale: 1.5,
            hidden: Some(&hidden),
            sinks: Some(&sinks),
            ..Softmax::plain(batch, group, seq, n_keys)
        };
        let products = Products::default();
        let host = |x: Tensor<3>| x.into_data().try_to_vec::<f32>().unwrap();
        let in_runs = |most| {
            let mixed = by_runs(queries.clone(), &keys, with, products, most, |scores, of, with| {
                assert!(scores.shape().num_elements() <= most.max(n_keys), "{:?} of {most}", scores.dims());
                summed(softmax(scores, with, DType::F32), &of_run(&values, of, heads_of_all), products)
            });
            let entropies =
                by_runs(queries.clone(), &keys, with, products, most, |scores, _, with| entropy(scores, with));
            [mixed, entropies].map(host)
        };
        let all = in_runs(SCORES);
        assert_eq!(all.each_ref().map(Vec::len), [heads_of_all * rows * head_dim, heads_of_all * rows]);
        for most in [1, 2 * n_keys, 3 * n_keys, rows * n_keys, 2 * rows * n_keys, batch * rows * n_keys] {
            for (found, expected) in in_runs(most).iter().flatten().zip(all.iter().flatten()) {
                assert!((found - expected).abs() < 2e-6, "{found}, not {expected}, with {most} scores at a time");
            }
        }
    }

    #[test]
    fn runs_of_heads_are_rows_of_one_key_head_or_whole_key_heads() {
        for (n_kv_heads, batch) in [(1, 1), (1, 7), (4, 1), (3, 5), (8, 6)] {
            for most in 0..600 {
                let found: Vec<Range<usize>> = runs_of_heads(n_kv_heads, batch, 10, most).collect();
                assert!(found.iter().cloned().flatten().eq(0..n_kv_heads * batch), "{found:?}");
                assert!(found.len() == 1 || n_kv_heads * batch * 10 > most, "{found:?} of {most}");
                for of in &found {
                    assert!(of.len() * 10 <= most || of.len() == 1, "{of:?} of {most}");
                    let is_whole = of.start.is_multiple_of(batch) && of.end.is_multiple_of(batch);
                    assert!(is_whole || of.start / batch == (of.end - 1) / batch, "{of:?}");
                }
            }
        }
    }
}
