//! Causal attention over packed keys and values, tile by tile with a running softmax, for sequences of any lengths side by side.
//!
//! Dao et al., *FlashAttention* (2022), with tiles at fixed positions of a sequence: a query's sums run over the same tiles in
//! the same order whatever queries stand beside it and whichever pass computed the keys.

use std::ops::{Range, RangeInclusive};

use rayon::prelude::*;

use super::kernel::Supported;
use super::keys::{KeyShape, Keys, TILE};
use super::softmax::Softmax;
use super::tile::{Shape, Words, multiply_add};

/// Rows that share a walk over the keys: enough to keep a tile in the nearest cache, few enough to be spread over threads.
const ROWS: usize = 48;

/// What a block's attention is, besides its rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) kernel: Supported,
    pub(crate) n_heads: usize,
    pub(crate) shape: KeyShape,
    /// Multiplies query-key products.
    pub(crate) scale: f32,
    /// Soft-cap of the scaled products.
    pub(crate) soft_cap: Option<f32>,
    /// Keys that a query sees, itself included; `None`: all before it.
    pub(crate) window: Option<usize>,
}

/// Successive positions of one sequence that look at its keys.
#[derive(Clone, Copy)]
pub(crate) struct Queries<'a> {
    /// The sequence's, those of these positions included.
    pub(crate) keys: &'a Keys,
    /// Of the first.
    pub(crate) position: usize,
    /// Where the first stands among the rows.
    pub(crate) row: usize,
    pub(crate) count: usize,
}

/// What the queries of block `block` gather: `rows` has rows `stride` apart that begin with the queries `[n_heads, head_dim]`; `out`
/// gets `[queries, n_heads, head_dim]`, in the order of `queries`.
pub(crate) fn attend(
    settings: Settings,
    block: usize,
    queries: &[Queries<'_>],
    rows: &[f32],
    stride: usize,
    out: &mut [f32],
) {
    let width = settings.n_heads * settings.shape.head_dim;
    walk(settings, block, queries, rows, stride, (width, out), gather);
}

/// One key head's share of what some successive positions of a sequence do with its keys. A row of it is a position and one of the query
/// heads that share the key head.
pub(super) struct Walk<'a> {
    pub(super) settings: Settings,
    block: usize,
    head: usize,
    part: Queries<'a>,
    rows: &'a [f32],
    stride: usize,
}

/// Lets `each` make a walk for every key head and every few of the queries, these in parallel, with buffers of its thread. It is handed
/// what the queries have of `out`, `[queries, width]`, of which a row's own part is [`Walk::place`]'s.
pub(super) fn walk<S: Default>(
    settings: Settings,
    block: usize,
    queries: &[Queries<'_>],
    rows: &[f32],
    stride: usize,
    (width, out): (usize, &mut [f32]),
    each: impl Fn(&Walk<'_>, &mut S, &mut [f32]) + Sync,
) {
    let group = settings.n_heads / settings.shape.n_kv_heads;
    let at_once = (ROWS / group).max(1);
    let mut tasks = Vec::new();
    let mut rest = out;
    for all in queries {
        for first in (0..all.count).step_by(at_once) {
            let count = at_once.min(all.count - first);
            let (mine, others) = rest.split_at_mut(count * width);
            let part = Queries { position: all.position + first, row: all.row + first, count, ..*all };
            tasks.push((part, mine));
            rest = others;
        }
    }
    tasks.into_par_iter().with_max_len(1).for_each_init(S::default, |scratch, (part, out)| {
        for head in 0..settings.shape.n_kv_heads {
            each(&Walk { settings, block, head, part, rows, stride }, scratch, out);
        }
    });
}

impl Walk<'_> {
    fn group(&self) -> usize {
        self.settings.n_heads / self.settings.shape.n_kv_heads
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.part.count * self.group()
    }

    /// Where a row stands among all heads of all its positions, `[positions, n_heads]`.
    pub(super) fn place(&self, row: usize) -> usize {
        row / self.group() * self.settings.n_heads + self.head * self.group() + row % self.group()
    }

    /// The tiles that some row sees something of.
    pub(super) fn tiles(&self) -> RangeInclusive<usize> {
        let Queries { position, count, .. } = self.part;
        let first = self.settings.window.map_or(0, |window| (position + 1).saturating_sub(window)) / TILE;
        first..=(position + count - 1) / TILE
    }

    /// The keys that a row sees, as places in a tile.
    pub(super) fn seen(&self, row: usize, tile: usize) -> Range<usize> {
        let end = self.part.position + row / self.group() + 1;
        let start = self.settings.window.map_or(0, |window| end.saturating_sub(window));
        let inside = |key: usize| key.saturating_sub(tile * TILE).min(TILE);
        inside(start)..inside(end)
    }

    /// Packs the queries of all rows into `words`, `[rows][words]`.
    pub(super) fn pack(&self, words: &mut Vec<u32>) {
        let KeyShape { head_dim, word, .. } = self.settings.shape;
        let (group, width) = (self.group(), self.settings.shape.words());
        words.resize(self.len() * width, 0);
        for (row, words) in words.chunks_exact_mut(width).enumerate() {
            let start = (self.part.row + row / group) * self.stride + (self.head * group + row % group) * head_dim;
            word.pack(&self.rows[start..start + head_dim], words);
        }
    }

    /// Products of all rows' packed queries with a tile's keys, `[rows][TILE]`; returns the tile's values.
    pub(super) fn scores(&self, tile: usize, queries: &[u32], scores: &mut Vec<f32>) -> &[u32] {
        let (rows, width) = (self.len(), self.settings.shape.words());
        let (keys, values) = self.part.keys.tile(self.block, self.head, tile);
        scores.clear();
        scores.resize(rows * TILE, 0.0);
        let queries = Words { data: queries, stride: width };
        let keys = Words { data: keys, stride: TILE };
        let shape = Shape { rows, words: width, lanes: TILE };
        multiply_add(self.settings.kernel, self.settings.shape.word, shape, queries, keys, scores, TILE);
        values
    }
}

/// Buffers of a walk, by row.
#[derive(Default)]
struct Scratch {
    /// `[rows][words]`.
    queries: Vec<u32>,
    /// `[rows][TILE]`.
    scores: Vec<f32>,
    /// The weights of a tile's keys, `[rows][words]`.
    weights: Vec<u32>,
    /// Values weighted so far: `[rows][lanes]`.
    gathered: Vec<f32>,
    softmax: Vec<Softmax>,
}

fn gather(walk: &Walk<'_>, scratch: &mut Scratch, out: &mut [f32]) {
    let Settings { kernel, shape, .. } = walk.settings;
    let (head_dim, lanes, n) = (shape.head_dim, shape.lanes(), walk.len());
    let (word, width) = (shape.word, shape.word.count(TILE));

    walk.pack(&mut scratch.queries);
    scratch.weights.resize(n * width, 0);
    scratch.gathered.clear();
    scratch.gathered.resize(n * lanes, 0.0);
    scratch.softmax.clear();
    scratch.softmax.resize(n, Softmax::EMPTY);

    for tile in walk.tiles() {
        let values = walk.scores(tile, &scratch.queries, &mut scratch.scores);
        weigh(walk, tile, scratch);
        let weights = Words { data: &scratch.weights, stride: width };
        let values = Words { data: values, stride: lanes };
        let shape = Shape { rows: n, words: width, lanes };
        multiply_add(kernel, word, shape, weights, values, &mut scratch.gathered, lanes);
    }
    for (row, gathered) in scratch.gathered.chunks_exact(lanes).enumerate() {
        let total = scratch.softmax[row].total();
        let out = &mut out[walk.place(row) * head_dim..][..head_dim];
        out.iter_mut().zip(gathered).for_each(|(out, x)| *out = x / total);
    }
}

/// Turns a tile's scores into weights and scales what was gathered before to the new highest score.
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

    use super::*;
    use crate::engine::packed::cases::cases;
    use crate::engine::packed::tile::Word;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn attention_is_right_and_the_same_bits_however_it_is_cut(mut case in cases(&[2, 16, 64, 80, 128], &[0.3])) {
            let Settings { n_heads, shape, .. } = case.settings;
            for kernel in Supported::all() {
                case.settings.kernel = kernel;
                let out = case.run(n_heads * shape.head_dim, attend)?;
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
            }
        }
    }
}
