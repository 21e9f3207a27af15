//! Scores of attention to weights.

use burn::backend::cubecl::dtype_to_storage_type;
use burn::tensor::{Bool, DType, Tensor};
use cubecl::ir::ElemType;
use cubecl::prelude::*;

use crate::rows::{Sharing, largest, row, sum};
use crate::tensors::{burn, contiguous, empty};

/// How scores become weights.
#[derive(Clone, Copy, Debug)]
pub struct Softmax<'a> {
    /// Factor on scores.
    pub scale: f64,
    /// `c` in `c · tanh(score / c)` behind the factor.
    pub soft_cap: Option<f64>,
    /// Sequences. A key head of each is a head here, those of the first key head before those of the second.
    pub batch: usize,
    /// Query heads of a key head.
    pub group: usize,
    /// The number of the first head and the first row of each head that are given: attention may take some at a time.
    pub first_head: usize,
    /// See `first_head`. Rows of a head are its queries, one query head behind the other.
    pub first_row: usize,
    /// Queries of a query head.
    pub seq: usize,
    /// Keys before the first query: query `q` sees keys up to `before + q`.
    pub before: usize,
    /// `true` where a query does not look besides: `[1 or n_kv_heads · batch, 1, seq, keys]`.
    pub hidden: Option<&'a Tensor<4, Bool>>,
    /// A score of each query head, `[n_kv_heads · group]` in f32, whose weight goes to no key.
    pub sinks: Option<&'a Tensor<1>>,
}

impl Softmax<'_> {
    /// A softmax of unchanged scores, over all heads and rows; the queries are at the last of the keys' positions.
    pub fn plain(batch: usize, group: usize, seq: usize, keys: usize) -> Self {
        Self {
            scale: 1.0,
            soft_cap: None,
            batch,
            group,
            first_head: 0,
            first_row: 0,
            seq,
            before: keys - seq,
            hidden: None,
            sinks: None,
        }
    }
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Kind {
    is_capped: bool,
    is_masked: bool,
    has_sinks: bool,
    /// Whether entropies are written, and not weights.
    is_entropy: bool,
    sharing: Sharing,
}

/// Weights of `scores` `[n_kv_heads · batch, group · seq, keys]`, or of some heads and rows of it: the same shape in `dtype`, computed in
/// f32. Hidden keys get 0.
pub fn softmax(scores: Tensor<3>, with: Softmax<'_>, dtype: DType) -> Tensor<3> {
    reduced(scores, with, dtype, false)
}

/// The entropies in nats of these weights, `-Σ p ln p`, without the term of a sink: the same shape with one number for all keys, in f32.
pub fn entropy(scores: Tensor<3>, with: Softmax<'_>) -> Tensor<3> {
    reduced(scores, with, DType::F32, true)
}

fn reduced(scores: Tensor<3>, with: Softmax<'_>, dtype: DType, is_entropy: bool) -> Tensor<3> {
    let [heads, queries, keys] = scores.dims();
    let scores = contiguous(scores);
    let out = empty(&scores, [heads, queries, if is_entropy { 1 } else { keys }], dtype);
    let rows = heads * queries;
    if rows == 0 || keys == 0 {
        return burn(out);
    }
    let sharing = Sharing::of(&scores.client);
    let (count, dim) = sharing.launch(rows);
    let kind = Kind {
        is_capped: with.soft_cap.is_some(),
        is_masked: with.hidden.is_some(),
        has_sinks: with.sinks.is_some(),
        is_entropy,
        sharing,
    };
    let many = with.hidden.is_some_and(|hidden| hidden.dims()[0] > 1);
    // What there is none of is not read, as in `heads.rs`.
    let hidden = with.hidden.map_or_else(|| scores.clone(), |hidden| contiguous(hidden.clone()));
    let sinks = with.sinks.map_or_else(|| scores.clone(), |sinks| contiguous(sinks.clone()));
    let client = scores.client.clone();
    let dtypes = [scores.dtype, hidden.dtype, dtype].map(dtype_to_storage_type);
    // SAFETY: units beyond the last row end at once, and a row is read and written within its keys.
    unsafe {
        weigh_rows::launch_unchecked(
            &client,
            count,
            dim,
            scores.into_buffer_arg(),
            hidden.into_buffer_arg(),
            sinks.into_buffer_arg(),
            out.clone().into_buffer_arg(),
            rows as u32,
            keys as u32,
            queries as u32,
            with.first_head as u32,
            with.first_row as u32,
            with.seq as u32,
            with.group as u32,
            with.batch as u32,
            with.before as u32,
            u32::from(many),
            with.scale as f32,
            with.soft_cap.unwrap_or(1.0) as f32,
            kind,
            dtypes,
        );
    }
    burn(out)
}

/// A score behind factor and soft-cap.
#[cube]
fn scored<I: Float>(scores: &[I], place: usize, scale: f32, cap: f32, #[comptime] kind: Kind) -> f32 {
    let mut score = f32::cast_from(scores[place]) * scale;
    if comptime!(kind.is_capped) {
        score = cap * (score / cap).tanh();
    }
    score
}

/// Whether the mask, if there is one, leaves a key to its query.
#[cube]
fn is_seen<B: Numeric>(hidden: &[B], place: usize, #[comptime] kind: Kind) -> bool {
    let mut is_seen = true.runtime();
    if comptime!(kind.is_masked) {
        is_seen = hidden[place] == B::from_int(0);
    }
    is_seen
}

#[cube(launch_unchecked)]
fn weigh_rows<I: Float, B: Numeric, O: Float>(
    scores: &[I],
    hidden: &[B],
    sinks: &[f32],
    out: &mut [O],
    rows: u32,
    keys: u32,
    queries: u32,
    first_head: u32,
    first_row: u32,
    seq: u32,
    group: u32,
    batch: u32,
    before: u32,
    many: u32,
    scale: f32,
    cap: f32,
    #[comptime] kind: Kind,
    #[define(I, B, O)] _dtypes: [ElemType; 3],
) {
    let row = row(kind.sharing);
    if row >= rows as usize {
        terminate!();
    }
    let keys = keys as usize;
    let seq = seq as usize;
    let group = group as usize;
    let units = comptime!(kind.sharing.units as usize);
    let unit = UNIT_POS_X as usize;
    let start = row * keys;
    let of_head = row % queries as usize + first_row as usize;
    let query = of_head % seq;
    let head = row / queries as usize + first_head as usize;
    let seen = min(keys, before as usize + query + 1);
    let mask = (head * many as usize * seq + query) * keys;

    // The largest so far and the sum relative to it, in one walk; as good as minus infinity before the first.
    let mut most = -1.0e30f32.runtime();
    let mut total = 0.0f32;
    for key in range_stepped(unit, seen, units) {
        if is_seen(hidden, mask + key, kind) {
            let score = scored(scores, start + key, scale, cap, kind);
            if score > most {
                total = total * (most - score).exp() + 1.0f32;
                most = score;
            } else {
                // What is not a number comes here, and stays none.
                total += (score - most).exp();
            }
        }
    }
    let mut highest = largest(most, kind.sharing);
    let mut sink = 0.0f32;
    if comptime!(kind.has_sinks) {
        sink = sinks[(head / batch as usize) * group + of_head / seq];
        highest = max(highest, sink);
    }
    let of_keys = sum(total * (most - highest).exp(), kind.sharing);
    let mut all = of_keys;
    if comptime!(kind.has_sinks) {
        all += (sink - highest).exp();
    }
    if comptime!(kind.is_entropy) {
        let mut terms = 0.0f32;
        for key in range_stepped(unit, seen, units) {
            if is_seen(hidden, mask + key, kind) {
                let x = scored(scores, start + key, scale, cap, kind) - highest;
                // What is far below the highest has no weight, and no term. What is not a number is not 0.
                let weight = x.exp();
                if weight != 0.0f32 {
                    terms += weight * x;
                }
            }
        }
        let terms = sum(terms, kind.sharing);
        if unit == 0 {
            out[row] = O::cast_from((all.ln() * of_keys - terms) / all);
        }
    } else {
        for key in range_stepped(unit, keys, units) {
            let mut weight = 0.0f32;
            if key < seen && is_seen(hidden, mask + key, kind) {
                weight = (scored(scores, start + key, scale, cap, kind) - highest).exp() / all;
            }
            out[start + key] = O::cast_from(weight);
        }
    }
}
