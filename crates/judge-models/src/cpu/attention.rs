//! Causal attention over packed keys and values, tile by tile with a running softmax, for sequences of any lengths side by side.
//!
//! Dao et al., *FlashAttention* (2022), with tiles at fixed positions of a sequence: a query's sums run over the same tiles in
//! the same order whatever queries stand beside it and whichever pass computed the keys.

use std::ops::{Range, RangeInclusive};

use rayon::prelude::*;

use super::Kernel;
use super::keys::{KeyShape, Keys, TILE};
use super::softmax::Softmax;
use super::tile::{Shape, Word, Words, multiply_add};
use super::vector::pack_pairs;

/// Rows that share a walk over the keys: enough to keep a tile in the nearest cache, few enough to be spread over threads.
const ROWS: usize = 48;

/// What a block's attention is, besides its rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) kernel: Kernel,
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

    /// Packs the queries of all rows into `words`, `[rows][pairs]`.
    pub(super) fn pack(&self, words: &mut Vec<u32>) {
        let KeyShape { head_dim, .. } = self.settings.shape;
        let (group, pairs) = (self.group(), self.settings.shape.pairs());
        words.resize(self.len() * pairs, 0);
        for (row, words) in words.chunks_exact_mut(pairs).enumerate() {
            let start = (self.part.row + row / group) * self.stride + (self.head * group + row % group) * head_dim;
            pack_pairs(&self.rows[start..start + head_dim], words);
        }
    }

    /// Products of all rows' packed queries with a tile's keys, `[rows][TILE]`; returns the tile's values.
    pub(super) fn scores(&self, tile: usize, queries: &[u32], scores: &mut Vec<f32>) -> &[u32] {
        let (rows, pairs) = (self.len(), self.settings.shape.pairs());
        let (keys, values) = self.part.keys.tile(self.block, self.head, tile);
        scores.clear();
        scores.resize(rows * TILE, 0.0);
        let queries = Words { data: queries, stride: pairs };
        let keys = Words { data: keys, stride: TILE };
        let shape = Shape { rows, words: pairs, lanes: TILE };
        multiply_add(self.settings.kernel, Word::Pair, shape, queries, keys, scores, TILE);
        values
    }
}

/// Buffers of a walk, by row.
#[derive(Default)]
struct Scratch {
    /// `[rows][pairs]`.
    queries: Vec<u32>,
    /// `[rows][TILE]`.
    scores: Vec<f32>,
    /// The softmax so far, in bf16: `[rows][TILE / 2]`.
    weights: Vec<u32>,
    /// Values weighted so far: `[rows][lanes]`.
    gathered: Vec<f32>,
    softmax: Vec<Softmax>,
}

fn gather(walk: &Walk<'_>, scratch: &mut Scratch, out: &mut [f32]) {
    let Settings { kernel, shape, .. } = walk.settings;
    let (head_dim, lanes, n) = (shape.head_dim, shape.lanes(), walk.len());

    walk.pack(&mut scratch.queries);
    scratch.weights.resize(n * TILE / 2, 0);
    scratch.gathered.clear();
    scratch.gathered.resize(n * lanes, 0.0);
    scratch.softmax.clear();
    scratch.softmax.resize(n, Softmax::EMPTY);

    for tile in walk.tiles() {
        let values = walk.scores(tile, &scratch.queries, &mut scratch.scores);
        weigh(walk, tile, scratch);
        let weights = Words { data: &scratch.weights, stride: TILE / 2 };
        let values = Words { data: values, stride: lanes };
        let shape = Shape { rows: n, words: TILE / 2, lanes };
        multiply_add(kernel, Word::Pair, shape, weights, values, &mut scratch.gathered, lanes);
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
    let rows = scores.as_chunks_mut().0.iter_mut().zip(weights.as_chunks_mut().0);
    let rows = rows.zip(softmax).zip(gathered.chunks_exact_mut(shape.lanes()));
    for (row, (((scores, weights), softmax), gathered)) in rows.enumerate() {
        let seen = walk.seen(row, tile);
        if seen.is_empty() {
            *weights = [0; TILE / 2];
            continue;
        }
        let shrink = softmax.take(kernel, scores, scale, soft_cap, seen, weights);
        if shrink != 1.0 {
            gathered.iter_mut().for_each(|x| *x *= shrink);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use half::bf16;
    use proptest::prelude::*;

    use super::*;

    fn numbers(seed: u64, count: usize) -> Vec<f32> {
        (0..count as u64)
            .map(|i| {
                let mixed = (seed ^ i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd134_2543_de82_ef95);
                ((mixed >> 40) as f32 / (1 << 23) as f32 - 1.0) * 2.0
            })
            .collect()
    }

    /// `[n_heads, head_dim]` of the query at `position`, in f64, from `[seq]` rows of queries, keys and values.
    fn expected(settings: Settings, rows: &[f32], stride: usize, position: usize) -> Vec<f64> {
        let KeyShape { n_kv_heads, head_dim } = settings.shape;
        let round = |x: f32| f64::from(bf16::from_f32(x).to_f32());
        let part = |row: usize, at: usize| rows[row * stride + at * head_dim..][..head_dim].iter().map(|&x| round(x));
        let first = settings.window.map_or(0, |window| (position + 1).saturating_sub(window));
        let mut out = Vec::new();
        for head in 0..settings.n_heads {
            let key_head = settings.n_heads + head / (settings.n_heads / n_kv_heads);
            let scores: Vec<f64> = (first..=position)
                .map(|key| {
                    let dot: f64 = part(position, head).zip(part(key, key_head)).map(|(a, b)| a * b).sum();
                    let scaled = dot * f64::from(settings.scale);
                    settings.soft_cap.map_or(scaled, |cap| f64::from(cap) * (scaled / f64::from(cap)).tanh())
                })
                .collect();
            let highest = scores.iter().copied().fold(f64::MIN, f64::max);
            let weights: Vec<f64> = scores.iter().map(|score| (score - highest).exp()).collect();
            let total: f64 = weights.iter().sum();
            let mut gathered = vec![0.0; head_dim];
            for (key, weight) in (first..=position).zip(&weights) {
                gathered
                    .iter_mut()
                    .zip(part(key, key_head + n_kv_heads))
                    .for_each(|(sum, x)| *sum += weight / total * x);
            }
            out.extend(gathered);
        }
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn attention_is_right_and_the_same_bits_however_it_is_cut(
            seq in 1_usize..150,
            (n_kv_heads, group) in (1_usize..3, 1_usize..4),
            head_dim in prop::sample::select(vec![2_usize, 16, 64, 80, 128]),
            window in prop::option::of(1_usize..100),
            soft_cap in prop::option::of(1.0_f32..20.0),
            cut in 0_usize..5,
            seed in any::<u64>(),
        ) {
            let shape = KeyShape { n_kv_heads, head_dim };
            let n_heads = n_kv_heads * group;
            let stride = (n_heads + 2 * n_kv_heads) * head_dim;
            let width = n_heads * head_dim;
            let rows = numbers(seed, seq * stride);
            for kernel in Kernel::available() {
                let settings = Settings { kernel, n_heads, shape, scale: 0.3, soft_cap, window };
                let mut keys = Keys::new(shape, None, seq, 1);
                keys.write(0, &rows[width..], stride, seq);
                let mut out = vec![0.0; seq * width];
                attend(settings, 0, &[Queries { keys: &keys, position: 0, row: 0, count: seq }], &rows, stride, &mut out);
                for position in [0, seq / 2, seq - 1] {
                    let expected = expected(settings, &rows, stride, position);
                    for (found, expected) in out[position * width..][..width].iter().zip(expected) {
                        // Weights are rounded to bf16, to 2^-9 of themselves; values are up to 2.
                        prop_assert!((f64::from(*found) - expected).abs() < 8e-3, "{kernel:?} {found} {expected}");
                    }
                }
                // In two pieces, the second one position at a time, with the first one's keys shared.
                let cut = (cut * TILE).min(seq / TILE * TILE);
                let mut before = Keys::new(shape, None, cut, 2);
                before.write(1, &rows[width..], stride, cut);
                before.advance(cut);
                let before = (cut > 0).then(|| Arc::new(before));
                let mut keys = Keys::new(shape, before, seq - cut, 2);
                for position in cut..seq {
                    keys.write(1, &rows[position * stride + width..], stride, 1);
                    let mut alone = vec![0.0; width];
                    let query = Queries { keys: &keys, position, row: position, count: 1 };
                    attend(settings, 1, &[query], &rows, stride, &mut alone);
                    let together = &out[position * width..][..width];
                    prop_assert!(alone.iter().zip(together).all(|(a, b)| a.to_bits() == b.to_bits()), "{kernel:?}");
                    keys.advance(1);
                }
            }
        }
    }
}
