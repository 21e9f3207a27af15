//! Walks of queries over the keys of their sequences, tile by tile: what attention and its entropy
//! have in common.
//!
//! Owns the cut of attention into independent tasks, the masks, and the products of queries with
//! keys. It does not own what becomes of the scores: `gather.rs` and `gather_on_unit.rs` weigh
//! values with them, `entropy.rs` measures their entropy. Keys and values lie in `kv_cache.rs`.
//!
//! ```text
//! block_ops.rs, encoder.rs, benchmarks ─► gather::attend ────┐
//! block_ops.rs ─────────────────────────► entropy::entropies ┴► walk ─► each(Walk, buffers, Made), in parallel
//! ```
//!
//! One walk is one key head's share of a few successive positions of one sequence. Its rows are
//! those positions times the query heads that share the key head (grouped-query attention), so a
//! tile of keys is read once for all of them. With 4 query heads, 2 key heads and 3 positions from
//! `p` on, the walk of key head 1 has these rows:
//!
//! ```text
//! row           0     1     2     3     4     5
//! position      p     p    p+1   p+1   p+2   p+2
//! query head    2     3     2     3     2     3
//! ```
//!
//! Invariants that others rely on:
//!
//! - A query meets its tiles in ascending order, from the first that it sees something of to the
//!   last. Tiles are at fixed positions of a sequence, so the order of a query's sums does not
//!   depend on the queries beside it, on the pass that computed the keys, or on the number of
//!   threads.
//! - Every element of the output belongs to exactly one walk.
//! - Queries are rounded as keys are (`KeyShape::word`); scores are f32.

use std::ops::{Range, RangeInclusive};

use judge_kernels::columns::Columns;
use judge_kernels::kernel::Kernel;
use judge_kernels::softmax::TILE;
use judge_kernels::supported::Supported;
use judge_kernels::tile::{Before, Shape, Word, Words, multiply_add};
use rayon::prelude::*;

use super::kv_cache::{KeyShape, KvCache};

/// Rows that share a walk over the keys, counted as positions times query heads: enough to use a
/// tile often while it is in the nearest cache, few enough to be spread over threads.
const ROWS: usize = 48;
/// The same limit for the matrix unit: eight whole registers of 16 rows.
const ROWS_ON_UNIT: usize = 128;

/// What a block's attention is, besides its rows. `block_ops.rs` makes it from a decoder's block,
/// `encoder.rs` from an encoder's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings<'a> {
    /// Instructions of the products of queries with keys, and of weights with values.
    pub(crate) kernel: Supported,
    /// Query heads, a multiple of `shape.n_kv_heads`. Query head `h` uses key head
    /// `h / (n_heads / n_kv_heads)`.
    pub(crate) n_heads: usize,
    /// Heads of keys and values, and how they are packed.
    pub(crate) shape: KeyShape,
    /// Multiplies query-key products.
    pub(crate) scale: f32,
    /// `c` in `c * tanh(score / c)`, which bounds the scaled products; `None`: they stay as they
    /// are.
    pub(crate) soft_cap: Option<f32>,
    /// Which keys a query sees.
    pub(crate) mask: Mask,
    /// `[n_heads]`: one extra score per query head, taken as it is, neither scaled nor soft-capped.
    /// It takes part in the softmax, and its weight goes to no value (gpt-oss).
    pub(crate) sinks: Option<&'a [f32]>,
}

/// Which keys a query sees.
///
/// ```text
/// keys                   0 1 2 3 4 5 6 7      the query at position 4
/// Causal(None)           x x x x x . . .
/// Causal(Some(3))        . . x x x . . .
/// Bidirectional(None)    x x x x x x x x
/// Bidirectional(Some(1)) . . . x x x . .
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mask {
    /// The key at its own position and those before it. `Some(n)`: at most `n` keys in all, its own
    /// included (sliding window, `n >= 1`). `None`: all of them.
    Causal(Option<usize>),
    /// Keys on both sides. `Some(n)`: those at most `n` positions away, so up to `2n + 1` of them.
    /// `None`: all keys of the sequence. Either ends at [`KvCache::end`], so the sequence must be
    /// whole.
    Bidirectional(Option<usize>),
}

impl Mask {
    /// The positions of the keys that the query at `position` sees; its own is always among them.
    /// For a causal mask `keys` may end before `position`, since a pass advances them after its
    /// last block.
    fn keys(self, position: usize, keys: &KvCache) -> Range<usize> {
        match self {
            Self::Causal(window) => window.map_or(0, |window| (position + 1).saturating_sub(window))..position + 1,
            Self::Bidirectional(None) => 0..keys.end(),
            Self::Bidirectional(Some(reach)) => {
                position.saturating_sub(reach)..position.saturating_add(reach).saturating_add(1).min(keys.end())
            }
        }
    }
}

/// Successive positions of one sequence that look at its keys. A caller gives one of these for each
/// sequence of a pass.
#[derive(Clone, Copy)]
pub(crate) struct Queries<'a> {
    /// The sequence's keys and values. Those of these positions are written already, in the block
    /// that is computed.
    pub(crate) keys: &'a KvCache,
    /// Position of the first query in its sequence.
    pub(crate) position: usize,
    /// Row of the first query in the matrix of rows; the others follow it.
    pub(crate) row: usize,
    /// Number of positions; 0 is allowed and gives no walk.
    pub(crate) count: usize,
}

/// One key head's share of what some successive positions of a sequence do with its keys; see the
/// head of this file for its rows. [`walk`] makes them.
pub(super) struct Walk<'a> {
    /// Those of the block.
    pub(super) settings: Settings<'a>,
    /// Index of the block whose keys are read, for `KvLayout`.
    block: usize,
    /// The key head.
    head: usize,
    /// The positions of this walk, a part of what the caller gave.
    part: Queries<'a>,
    /// The matrix of rows of the whole pass. Each begins with the queries `[n_heads, head_dim]`.
    rows: &'a [f32],
    /// Numbers from one row of that matrix to the next.
    stride: usize,
}

/// Those of the positions `keys` that lie in tile `tile`, counted from its first position: within
/// `0..TILE`, and empty if the tile holds none of them.
pub(super) fn places(keys: &Range<usize>, tile: usize) -> Range<usize> {
    let inside = |key: usize| key.saturating_sub(tile * TILE).min(TILE);
    inside(keys.start)..inside(keys.end)
}

/// The part of the output that one walk fills, a slot `[width]` for each of its rows.
pub(super) struct Made<'a> {
    /// The whole output, `[queries * n_heads, width]`, shared by all walks.
    out: &'a Columns<'a>,
    /// Numbers that a row makes: `head_dim` for attention, 1 for an entropy.
    width: usize,
    /// Query heads of the block.
    n_heads: usize,
    /// Query heads of this walk.
    group: usize,
    /// Slot of the walk's first row: its query among all queries of the call, times `n_heads`, plus
    /// its first query head.
    first: usize,
    /// Rows of the walk.
    len: usize,
}

impl Made<'_> {
    /// The slot of one row, `[width]`. What it holds before is arbitrary, and a body must write all
    /// of it.
    ///
    /// # Panics
    /// If the walk has no such row.
    #[expect(
        unsafe_code,
        reason = "walks on several threads write rows of one matrix, which only their plan keeps apart"
    )]
    pub(super) fn row(&mut self, row: usize) -> &mut [f32] {
        assert!(row < self.len);
        let place = self.first + row / self.group * self.n_heads + row % self.group;
        // SAFETY: the walk's rows are queries of its part and heads of its key head, which are inside the matrix, and which no other walk
        // has. There is one of these for a walk, which is borrowed as long as the row is.
        unsafe { self.out.row(place, 0, self.width) }
    }
}

/// Calls `each` once for every key head and every few of the queries, on rayon's threads. A thread
/// reuses one `S`, its buffers, for all walks that it gets; so `each` must not rely on what is in
/// there.
///
/// - `block`: the index of the block, which says where its keys lie.
/// - `rows`: the queries' rows, `stride` apart, each beginning with `[n_heads, head_dim]` numbers
///   that are normed and rotated.
/// - `(width, out)`: the output `[queries, n_heads, width]`, in the order of `queries`.
///
/// # Panics
/// If `out` has another length.
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
    let on_unit = kernel.of_floats() == Kernel::Amx && word == Word::Pair;
    let at_once = (if on_unit { ROWS_ON_UNIT } else { ROWS } / group).max(1);
    let mut tasks = Vec::new();
    let mut before = 0;
    for all in queries {
        // Tasks of one key head follow one another, so that a thread finds its keys in a cache.
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
    /// Query heads that share a key head: rows per position.
    fn group(&self) -> usize {
        self.settings.n_heads / self.settings.shape.n_kv_heads
    }

    /// Number of rows: positions times query heads of the key head. At least 1.
    pub(super) fn len(&self) -> usize {
        self.part.count * self.group()
    }

    /// The sink of the row's query head; `None` if the block has no sinks.
    pub(super) fn sink(&self, row: usize) -> Option<f32> {
        self.settings.sinks.map(|sinks| sinks[self.head * self.group() + row % self.group()])
    }

    /// The tiles that at least one row sees something of, counted from the beginning of the
    /// sequence. Both ends of a mask ascend with the position, so the first row's first key and the
    /// last row's last key decide.
    pub(super) fn tiles(&self) -> RangeInclusive<usize> {
        let Queries { keys, position, count, .. } = self.part;
        let (first, last) = (position, position + count - 1);
        let mask = self.settings.mask;
        mask.keys(first, keys).start / TILE..=(mask.keys(last, keys).end - 1) / TILE
    }

    /// The keys that a row sees, as positions of its sequence.
    pub(super) fn keys_seen(&self, row: usize) -> Range<usize> {
        self.settings.mask.keys(self.part.position + row / self.group(), self.part.keys)
    }

    /// The keys of tile `tile` that a row sees, counted from the tile's first position: within
    /// `0..TILE`, empty if the row sees none of them.
    pub(super) fn seen(&self, row: usize, tile: usize) -> Range<usize> {
        places(&self.keys_seen(row), tile)
    }

    /// The query of every row, `[head_dim]` each, in the order of the rows, as f32.
    pub(super) fn queries(&self) -> impl Iterator<Item = &[f32]> {
        let (group, head_dim) = (self.group(), self.settings.shape.head_dim);
        (0..self.len()).map(move |row| {
            let start = (self.part.row + row / group) * self.stride + (self.head * group + row % group) * head_dim;
            &self.rows[start..start + head_dim]
        })
    }

    /// Packs the queries of all rows into `words`, `[rows, KeyShape::words]`, rounded as keys are.
    /// Resizes `words` to that.
    pub(super) fn pack(&self, words: &mut Vec<u32>) {
        let KeyShape { word, .. } = self.settings.shape;
        let width = self.settings.shape.words();
        words.resize(self.len() * width, 0);
        words.chunks_exact_mut(width).zip(self.queries()).for_each(|(words, query)| word.pack(query, words));
    }

    /// Keys and values of the first few of `tiles`, as many as lie one after another in memory:
    /// their number, their words of keys and their words of values. The rest is asked for by
    /// another call; see `KvCache::run`.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn run(&self, tiles: Range<usize>) -> (usize, &[u32], &[u32]) {
        self.part.keys.run(self.block, self.head, tiles)
    }

    /// Products of all rows' packed queries with the keys of a tile, `[rows, TILE]`, neither scaled
    /// nor masked: columns of keys that a row does not see are there too. Returns the tile's
    /// values, in the layout of `KeyShape::value_tile`.
    pub(super) fn scores(&self, tile: usize, queries: &[u32], scores: &mut Vec<f32>) -> &[u32] {
        let (rows, width) = (self.len(), self.settings.shape.words());
        let (keys, values) = self.part.keys.tile(self.block, self.head, tile);
        scores.resize(rows * TILE, 0.0);
        let queries = Words { data: queries, stride: width };
        let keys = Words { data: keys, stride: TILE };
        let shape = Shape { rows, words: width, lanes: TILE, before: Before::Nothing };
        multiply_add(self.settings.kernel, self.settings.shape.word, shape, queries, keys, scores, TILE);
        values
    }
}
