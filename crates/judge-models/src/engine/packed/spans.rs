//! What a pass of a decoder is given ([`Span`]) and what it shows after each block ([`Stream`]):
//! new positions of many sequences, as rows of one matrix.
//!
//! `run.rs` makes one span for each segment, or for each text's new token. `decoder.rs`
//! concatenates their rows and hands a stream to the caller's `visit`. A span's place in the list
//! names it everywhere.
//!
//! ```text
//! spans      0: 3 positions   1: 1 position   2: 2 positions
//! rows       0 0 0            1               2 2              [6, d_model]
//! behind the last block's attention, with keep 2..3, 0..1, 0..0:
//! rows       0                1                                [2, d_model]
//! ```

use std::ops::{ControlFlow, Range};

use judge_core::{Layer, request::TokenId};

use super::kv_cache::KvCache;

/// New positions of one sequence.
pub(crate) struct Span<'a> {
    /// The tokens at these positions, at least one.
    pub(crate) ids: &'a [TokenId],
    /// Keys of the positions before; their end is the position of the first token. The pass writes
    /// the new keys behind them, and the caller then calls `KvCache::advance`.
    pub(crate) keys: &'a mut KvCache,
    /// Which of the new positions are read after the last block. Only these go through its
    /// attention and MLP; their keys are written for all. May be empty.
    pub(crate) keep: Range<usize>,
    /// Layers whose attention entropy is wanted for every new position. Layer `i` is block `i`
    /// counted from 1.
    pub(crate) entropies: &'a [Layer],
}

/// The residual stream between two blocks, the rows of all spans concatenated. It is lent to
/// `visit` after each block; rows that are wanted later must be copied.
pub(crate) struct Stream<'a> {
    /// Width of a row.
    pub(super) d_model: usize,
    /// `[rows, d_model]`.
    pub(super) rows: &'a [f32],
    /// Each span's rows.
    pub(super) spans: &'a [Range<usize>],
    /// Attention entropies of the block that was run last.
    pub(super) entropies: &'a Entropies,
}

/// Is shown the residual stream: number 0 is the embedding, number `i` the output of block `i` counted from 1.
pub(crate) type Visit<'v> = dyn FnMut(usize, &Stream<'_>) -> ControlFlow<()> + Send + 'v;

/// Attention entropies of the block that was run last, for the spans that want them.
#[derive(Default)]
pub(super) struct Entropies {
    /// Query heads of that block.
    pub(super) n_heads: usize,
    /// `[rows, n_heads]`, in nats.
    pub(super) rows: Vec<f32>,
    /// Each span's rows; empty ranges for spans that want none. No entries before the first block.
    pub(super) spans: Vec<Range<usize>>,
}

impl<'a> Stream<'a> {
    /// A span's rows, `[d_model]` each: all of its positions, or after the pass's last block those
    /// that were kept.
    pub(crate) fn rows(&self, span: usize) -> std::slice::ChunksExact<'a, f32> {
        let Range { start, end } = self.spans[span];
        self.rows[start * self.d_model..end * self.d_model].chunks_exact(self.d_model)
    }

    /// The attention entropies of a span's positions in the block that was run last, `[n_heads]`
    /// each, for all positions if they are wanted and for none otherwise.
    pub(crate) fn entropies(&self, span: usize) -> std::slice::ChunksExact<'a, f32> {
        let Entropies { n_heads, rows, spans } = self.entropies;
        let Range { start, end } = spans.get(span).cloned().unwrap_or_default(); // there is no block below the first layer
        rows[start * n_heads..end * n_heads].chunks_exact((*n_heads).max(1))
    }
}
