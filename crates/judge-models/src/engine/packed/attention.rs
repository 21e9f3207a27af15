//! Walks of queries over the keys of their sequences, tile by tile, for sequences of any lengths side by side: what attention and
//! its entropy have in common.
//!
//! Tiles are at fixed positions of a sequence: a query's sums run over the same tiles in the same order whatever queries stand beside
//! it and whichever pass computed the keys.

use std::ops::{Range, RangeInclusive};

use rayon::prelude::*;

use super::columns::Columns;
use super::kernel::{Kernel, Supported};
use super::keys::{KeyShape, Keys, TILE};
use super::tile::{Shape, Word, Words, multiply_add};

/// Rows that share a walk over the keys: enough to make much of a tile while it is in the nearest cache, few enough to be spread over
/// threads. For the matrix unit, whole registers of them.
const ROWS: usize = 48;
const ROWS_ON_UNIT: usize = 128;

/// What a block's attention is, besides its rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    pub(crate) kernel: Supported,
    pub(crate) n_heads: usize,
    pub(crate) shape: KeyShape,
    /// Multiplies query-key products.
    pub(crate) scale: f32,
    /// Soft-cap of the scaled products.
    pub(crate) soft_cap: Option<f32>,
    pub(crate) sight: Sight,
    /// A score of each query head that weighs nothing, `[n_heads]`.
    pub(crate) sinks: Option<&'a [f32]>,
}

/// Which keys a query sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Its own and those before it, so many in all; `None`: all of them.
    Before(Option<usize>),
    /// Its own and those at most so far away, before it and behind it; `None`: all. There are those up to [`Keys::end`], so the sequence must be whole.
    Around(Option<usize>),
}

impl Sight {
    /// The keys that the query at a position sees.
    fn keys(self, position: usize, keys: &Keys) -> Range<usize> {
        match self {
            Self::Before(window) => window.map_or(0, |window| (position + 1).saturating_sub(window))..position + 1,
            Self::Around(None) => 0..keys.end(),
            Self::Around(Some(reach)) => {
                position.saturating_sub(reach)..position.saturating_add(reach).saturating_add(1).min(keys.end())
            }
        }
    }
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

/// One key head's share of what some successive positions of a sequence do with its keys. A row of it is a position and one of the query
/// heads that share the key head.
pub(super) struct Walk<'a> {
    pub(super) settings: Settings<'a>,
    block: usize,
    head: usize,
    part: Queries<'a>,
    rows: &'a [f32],
    stride: usize,
}

/// Those of some keys that are in a tile, as places in it.
pub(super) fn places(keys: &Range<usize>, tile: usize) -> Range<usize> {
    let inside = |key: usize| key.saturating_sub(tile * TILE).min(TILE);
    inside(keys.start)..inside(keys.end)
}

/// What the rows of one walk make, each `[width]`.
pub(super) struct Made<'a> {
    out: &'a Columns<'a>,
    width: usize,
    n_heads: usize,
    group: usize,
    /// Of the walk's first row, among all heads of all queries.
    first: usize,
    len: usize,
}

impl Made<'_> {
    /// A row's own part of the result.
    ///
    /// # Panics
    /// If the walk has no such row.
    pub(super) fn row(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.len);
        let place = self.first + row / self.group * self.n_heads + row % self.group;
        // SAFETY: the walk's rows are queries of its part and heads of its key head, which are inside the matrix, and which no other walk
        // has. There is one of these for a walk, which is borrowed as long as the row is.
        unsafe { self.out.row(place, 0, self.width) }
    }
}

/// Lets `each` make a walk for every key head and every few of the queries, all of them in parallel, with buffers of its thread. `out` has
/// what each query head makes, `[queries, n_heads, width]`.
pub(super) fn walk<S: Default>(
    settings: Settings<'_>,
    block: usize,
    queries: &[Queries<'_>],
    rows: &[f32],
    stride: usize,
    (width, out): (usize, &mut [f32]),
    each: impl Fn(&Walk<'_>, &mut S, &mut Made<'_>) + Sync,
) {
    let Settings { kernel, n_heads, shape: KeyShape { n_kv_heads, word, .. }, .. } = settings;
    let group = n_heads / n_kv_heads;
    let on_unit = kernel.kernel() == Kernel::Amx && word == Word::Pair;
    let at_once = (if on_unit { ROWS_ON_UNIT } else { ROWS } / group).max(1);
    let mut tasks = Vec::new();
    let mut before = 0;
    for all in queries {
        // Those of one key head behind one another: a thread finds its keys near.
        for head in 0..n_kv_heads {
            for first in (0..all.count).step_by(at_once) {
                let count = at_once.min(all.count - first);
                let part = Queries { position: all.position + first, row: all.row + first, count, ..*all };
                tasks.push((part, head, before + first));
            }
        }
        before += all.count;
    }
    assert_eq!(out.len(), before * n_heads * width);
    let out = &Columns::new(out, width);
    tasks.into_par_iter().with_max_len(1).for_each_init(S::default, |scratch, (part, head, query)| {
        let (first, len) = (query * n_heads + head * group, part.count * group);
        let mut made = Made { out, width, n_heads, group, first, len };
        each(&Walk { settings, block, head, part, rows, stride }, scratch, &mut made);
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

    /// The sink of a row's head, if there are any.
    pub(super) fn sink(&self, row: usize) -> Option<f32> {
        self.settings.sinks.map(|sinks| sinks[self.head * self.group() + row % self.group()])
    }

    /// The tiles that some row sees something of.
    pub(super) fn tiles(&self) -> RangeInclusive<usize> {
        let Queries { keys, position, count, .. } = self.part;
        let (first, last) = (position, position + count - 1);
        let sight = self.settings.sight;
        sight.keys(first, keys).start / TILE..=(sight.keys(last, keys).end - 1) / TILE
    }

    /// The keys that a row sees.
    pub(super) fn sight(&self, row: usize) -> Range<usize> {
        self.settings.sight.keys(self.part.position + row / self.group(), self.part.keys)
    }

    /// The keys that a row sees, as places in a tile.
    pub(super) fn seen(&self, row: usize, tile: usize) -> Range<usize> {
        places(&self.sight(row), tile)
    }

    /// The queries of all rows, `[head_dim]` each.
    pub(super) fn queries(&self) -> impl Iterator<Item = &[f32]> {
        let (group, head_dim) = (self.group(), self.settings.shape.head_dim);
        (0..self.len()).map(move |row| {
            let start = (self.part.row + row / group) * self.stride + (self.head * group + row % group) * head_dim;
            &self.rows[start..start + head_dim]
        })
    }

    /// Packs the queries of all rows into `words`, `[rows][words]`.
    pub(super) fn pack(&self, words: &mut Vec<u32>) {
        let KeyShape { word, .. } = self.settings.shape;
        let width = self.settings.shape.words();
        words.resize(self.len() * width, 0);
        words.chunks_exact_mut(width).zip(self.queries()).for_each(|(words, query)| word.pack(query, words));
    }

    /// Keys and values of as many of some tiles as lie together, the first among them: how many, and their words.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn run(&self, tiles: Range<usize>) -> (usize, &[u32], &[u32]) {
        self.part.keys.run(self.block, self.head, tiles)
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
