//! Attention: the values of the keys that queries see, weighted tile by tile with a running
//! softmax.
//!
//! Owns what attention does with a tile's scores, for all kernels but the matrix unit, whose body
//! is `gather_on_unit.rs`. The walk over keys is `attention.rs`'s, the softmax `softmax.rs`'s.
//! `block_ops.rs` and `encoder.rs` call [`attend`] with the queries of a pass.
//!
//! The algorithm is FlashAttention's (Dao et al., *FlashAttention*, 2022). A row keeps its highest
//! score `m`, the total `l` of its weights and the weighted values `g`; for each tile
//!
//! ```text
//! s = scale · q·k, soft-capped; -inf where the mask hides the key
//! m' = max(m, max s)      w = exp(s - m')      shrink = exp(m - m')
//! l = l · shrink + Σ w    g = g · shrink + Σ w v
//! ```
//!
//! and in the end the row is `g / l`. Weights are rounded as values are, to bf16 where these are
//! bf16, before they are summed, so the weights that are used add up to one. Everything else is
//! f32. A row that sees nothing of a tile which other rows of the walk need gives it weights of
//! zero; that changes none of its sums.

use super::attention::{Made, Queries, Settings, Walk, walk};
#[cfg(target_arch = "x86_64")]
use super::gather_on_unit;
use judge_kernels::softmax::{Softmax, TILE};
use judge_kernels::tile::{Shape, Words, multiply_add};
#[cfg(target_arch = "x86_64")]
use judge_kernels::{tile::Word, unit::HasUnit};

/// What the queries of block `block` gather.
///
/// - `queries`: positions whose keys and values are written in that block.
/// - `rows`: rows that are `stride` numbers apart and begin with the queries `[n_heads, head_dim]`,
///   normed and rotated.
/// - `out`: gets `[queries, n_heads, head_dim]`, in the order of `queries`.
///
/// A query that sees a score of NaN or `+inf` gathers NaN.
///
/// # Panics
/// If `out` has another length.
pub(crate) fn attend(
    settings: Settings<'_>,
    block: usize,
    queries: &[Queries<'_>],
    rows: &[f32],
    stride: usize,
    out: &mut [f32],
) {
    let out = (settings.shape.head_dim, out);
    #[cfg(target_arch = "x86_64")]
    if settings.shape.word == Word::Pair
        && let Some(unit) = HasUnit::of(settings.kernel)
    {
        let gather = |walk: &Walk<'_>, scratch: &mut _, made: &mut Made<'_>| {
            gather_on_unit::gather(&unit.hold(), walk, scratch, made);
        };
        return walk(settings, block, queries, rows, stride, out, gather);
    }
    walk(settings, block, queries, rows, stride, out, gather);
}

/// Buffers of a walk, reused by the next walk of the same thread.
#[derive(Default)]
struct Scratch {
    /// Packed queries, `[rows, words]`.
    queries: Vec<u32>,
    /// Products with the keys of the tile at work, `[rows, TILE]`.
    scores: Vec<f32>,
    /// Weights of the keys of that tile, packed like values: `[rows, words]`.
    weights: Vec<u32>,
    /// Values weighted so far, `[rows, lanes]`; lanes behind `head_dim` are padding.
    gathered: Vec<f32>,
    /// Highest score and total of the weights, `[rows]`.
    softmax: Vec<Softmax>,
}

/// The body of a walk without the matrix unit: the loop that the head of this file describes, with
/// both products of a tile for all rows at once.
fn gather(walk: &Walk<'_>, scratch: &mut Scratch, made: &mut Made<'_>) {
    let Settings { kernel, shape, .. } = walk.settings;
    let (lanes, n) = (shape.lanes(), walk.len());
    let (word, width) = (shape.word, shape.word.count(TILE));

    walk.pack(&mut scratch.queries);
    scratch.weights.resize(n * width, 0);
    scratch.gathered.clear();
    scratch.gathered.resize(n * lanes, 0.0);
    scratch.softmax.clear();
    scratch.softmax.extend((0..n).map(|row| Softmax::new(walk.sink(row))));

    for tile in walk.tiles() {
        let values = walk.scores(tile, &scratch.queries, &mut scratch.scores);
        weigh(walk, tile, scratch);
        let weights = Words { data: &scratch.weights, stride: width };
        let values = Words { data: values, stride: lanes };
        let shape = Shape::added(n, width, lanes);
        multiply_add(kernel, word, shape, weights, values, &mut scratch.gathered, lanes);
    }
    for (row, gathered) in scratch.gathered.chunks_exact(lanes).enumerate() {
        let total = scratch.softmax[row].total();
        made.row(row).iter_mut().zip(gathered).for_each(|(out, x)| *out = x / total);
    }
}

/// Turns a tile's scores into weights, and scales what was gathered before to the new highest
/// scores.
fn weigh(walk: &Walk<'_>, tile: usize, scratch: &mut Scratch) {
    let Settings { kernel, shape, scale, soft_cap, .. } = walk.settings;
    let Scratch { scores, weights, gathered, softmax, .. } = scratch;
    let rows = scores.as_chunks_mut().0.iter_mut().zip(weights.chunks_exact_mut(shape.word.count(TILE)));
    let rows = rows.zip(softmax).zip(gathered.chunks_exact_mut(shape.lanes()));
    for (row, (((scores, weights), softmax), gathered)) in rows.enumerate() {
        let seen = walk.seen(row, tile);
        if seen.is_empty() {
            weights.fill(0);
            continue;
        }
        let shrink = softmax.take(kernel, scores, scale, soft_cap, seen, (shape.word, weights));
        if shrink != 1.0 {
            gathered.iter_mut().for_each(|x| *x *= shrink);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::TestCaseError;

    use super::*;
    use crate::engine::packed::attention::Mask;
    use crate::engine::packed::cases::{Case, cases};
    use judge_kernels::supported::Supported;
    use judge_kernels::tile::Word;

    /// Compares what heads make at some positions with sums by the definition.
    fn is_right(case: &Case, out: &[f32]) -> Result<(), TestCaseError> {
        let Settings { kernel, n_heads, shape, .. } = case.settings;
        for (at, found) in out.chunks_exact(shape.head_dim).enumerate() {
            let (position, head) = (at / n_heads, at % n_heads);
            if ![0, case.seq / 2, case.seq - 1].contains(&position) {
                continue;
            }
            let mut expected = vec![0.0; shape.head_dim];
            for (key, weight) in case.seen(position).zip(case.weights(position, head)) {
                expected.iter_mut().zip(case.value(key, head)).for_each(|(sum, x)| *sum += weight * x);
            }
            for (found, expected) in found.iter().zip(expected) {
                // In pairs weights are rounded to bf16, to 2^-9 of themselves; values are up to 2.
                let tolerance = if shape.word == Word::Pair { 8e-3 } else { 2e-5 };
                prop_assert!((f64::from(*found) - expected).abs() < tolerance, "{kernel:?} {found} {expected}");
            }
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn attention_is_right_and_the_same_bits_however_it_is_cut(mut case in cases(&[2, 16, 64, 80, 96, 128, 256], &[0.3])) {
            let Settings { n_heads, shape, .. } = case.settings;
            for kernel in Supported::all() {
                case.settings.kernel = kernel;
                let out = case.run(n_heads * shape.head_dim, attend)?;
                is_right(&case, &out)?;
            }
        }

        #[test]
        fn attention_to_both_sides_is_right_and_the_same_bits_for_a_position_alone(
            mut case in cases(&[2, 16, 80], &[0.3]),
            reach in prop::option::of(0_usize..80),
        ) {
            let Settings { n_heads, shape, .. } = case.settings;
            case.settings.mask = Mask::Bidirectional(reach);
            for kernel in Supported::all() {
                case.settings.kernel = kernel;
                let out = case.run_whole(n_heads * shape.head_dim, attend)?;
                is_right(&case, &out)?;
            }
        }
    }
}
