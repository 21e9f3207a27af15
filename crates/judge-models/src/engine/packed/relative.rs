//! Attention that knows how far apart positions are, as in DeBERTa; see [`RelativeSpec`] for the scores.
//!
//! `encoder.rs` calls it in the place of `gather.rs` where the description has relative positions. Scores need a number
//! for each query and distance, and for each key and distance, so nothing here is shared with attention over tiles of
//! keys: sequences are whole, and each head of each sequence is one task. All arithmetic is f32, with sums in one order
//! on every machine, so that a sequence has the same bits in any company.

use std::ops::Range;

use judge_kernels::exp::exp;
use rayon::prelude::*;

use judge_arch::RelativeSpec;

/// Numbers that a product sums side by side.
const LANES: usize = 16;

/// The sizes of one block's attention, and what a row `[queries, keys, values]` is.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    /// Heads, each of `head_dim` coordinates.
    pub(super) n_heads: usize,
    /// Coordinates of a head.
    pub(super) head_dim: usize,
}

/// Which rows of the table a pass needs: those of distances in a sequence of `longest` positions.
pub(super) fn rows_needed(spec: &RelativeSpec, longest: usize) -> Range<usize> {
    let farthest = longest.saturating_sub(1) as i64;
    spec.row(-farthest)..spec.row(farthest) + 1
}

/// Sets `out`, `[rows, n_heads * head_dim]`, to what positions gather from `qkv`, `[rows, 3 * n_heads * head_dim]`.
///
/// `relative` has the same product of the table's rows `of_table`, as `[of_table, 3 * n_heads * head_dim]`. `layout` has
/// the rows of each sequence.
pub(super) fn attend(
    spec: &RelativeSpec,
    heads: Heads,
    (relative, of_table): (&[f32], Range<usize>),
    layout: &[Range<usize>],
    qkv: &[f32],
    out: &mut [f32],
) {
    let Heads { n_heads, head_dim } = heads;
    let d_model = n_heads * head_dim;
    let width = 3 * d_model;
    let scale = ((head_dim * spec.n_terms()) as f64).sqrt().recip() as f32;
    let tasks: Vec<(&Range<usize>, usize)> =
        layout.iter().flat_map(|rows| (0..n_heads).map(move |head| (rows, head))).collect();
    let gathered: Vec<Vec<f32>> = tasks
        .par_iter()
        .map(|&(rows, head)| {
            let part = |of: &[f32], row: usize, place: usize| -> Vec<f32> {
                of[row * width + place * d_model + head * head_dim..][..head_dim].to_vec()
            };
            let collect = |of: &[f32], rows: Range<usize>, place: usize| -> Vec<Vec<f32>> {
                rows.map(|row| part(of, row, place)).collect()
            };
            let [queries, keys, values] = [0, 1, 2].map(|place| collect(qkv, rows.clone(), place));
            let some = |is_there: bool, place: usize| {
                if is_there { collect(relative, 0..of_table.len(), place) } else { Vec::new() }
            };
            let (of_keys, of_queries) = (some(spec.of_keys, 1), some(spec.of_queries, 0));
            // [len][rows of the table]: each key with the query of each distance.
            let of_queries: Vec<Vec<f32>> =
                keys.iter().map(|key| of_queries.iter().map(|query| dot(key, query)).collect()).collect();
            let len = rows.len();
            // The row of distance `d` at `d + len - 1`.
            let places: Vec<usize> =
                (0..2 * len - 1).map(|at| spec.row(at as i64 - (len as i64 - 1)) - of_table.start).collect();
            let mut gathered = Vec::with_capacity(len * head_dim);
            let mut scores = vec![0.0_f32; len];
            for (i, query) in queries.iter().enumerate() {
                let of_keys: Vec<f32> = of_keys.iter().map(|key| dot(query, key)).collect();
                for (j, (score, key)) in scores.iter_mut().zip(&keys).enumerate() {
                    let place = places[i + len - 1 - j];
                    let by_key = of_keys.get(place).copied().unwrap_or(0.0);
                    let by_query = of_queries[j].get(place).copied().unwrap_or(0.0);
                    *score = (dot(query, key) + by_key + by_query) * scale;
                }
                let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                scores.iter_mut().for_each(|score| *score = exp(*score - largest));
                let sum = scores.iter().map(|&weight| f64::from(weight)).sum::<f64>() as f32;
                let mut row = vec![0.0_f32; head_dim];
                for (&weight, value) in scores.iter().zip(&values) {
                    row.iter_mut().zip(value).for_each(|(sum, value)| *sum += weight * value);
                }
                gathered.extend(row.iter().map(|x| x / sum));
            }
            gathered
        })
        .collect();
    for ((rows, head), gathered) in tasks.into_iter().zip(gathered) {
        for (row, values) in rows.clone().zip(gathered.chunks_exact(head_dim)) {
            out[row * d_model + head * head_dim..][..head_dim].copy_from_slice(values);
        }
    }
}

/// A product of two vectors of one length: [`LANES`] sums side by side, then these in their order.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; LANES];
    let (of_a, of_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest = of_a.remainder().iter().zip(of_b.remainder()).map(|(a, b)| a * b).sum::<f32>();
    for (a, b) in of_a.zip(of_b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    sums.iter().sum::<f32>() + rest
}
