//! Random sequences on which everything that walks over keys is tested, with a softmax by its
//! definition to compare with. Compiled for tests alone.
//!
//! `gather.rs` and `entropy.rs` draw a [`Case`], set its kernel (and its mask, for encoders), and
//! call [`Case::run`] or [`Case::run_whole`] with their body. These check that the bits do not
//! depend on how the keys were written or which positions are computed together, and return the
//! output; the test compares that with [`Case::weights`] and [`Case::value`], which are computed in
//! f64. `delta.rs` and `mamba.rs` have a memory instead of keys; their tests call [`check_cuts`].
//!
//! A case has one matrix of rows, as a block's first projection gives them:
//!
//! ```text
//! [seq] rows of   [queries n_heads | keys n_kv_heads | values n_kv_heads], head_dim numbers each
//! ```

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use half::bf16;
use judge_kernels::supported::Supported;
use judge_kernels::tile::Word;
use proptest::prelude::*;

use super::attention::{Mask, Queries, Settings};
use super::conv::Memory;
use super::kv_cache::{KeyShape, KvCache};

/// The function under test, with the arguments of [`attend`](super::gather::attend): settings,
/// index of the block, queries, rows, their stride, and the output.
type Body = fn(Settings<'_>, usize, &[Queries<'_>], &[f32], usize, &mut [f32]);

/// A sequence with the settings of a block.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// Those of the block, without sinks, which `run` and `run_whole` add. Tests set `kernel` and
    /// `mask`.
    pub(super) settings: Settings<'static>,
    /// `[n_heads]`, or `None` in a block without sinks.
    sinks: Option<Vec<f32>>,
    /// Positions of the sequence, 1 to 279.
    pub(super) seq: usize,
    /// Lengths of the first two of three pieces in which the keys come, as far as the sequence has
    /// them.
    cuts: [usize; 2],
    /// `[seq]` rows of queries, keys and values; the numbers are in [-2, 2).
    rows: Vec<f32>,
}

/// Draws cases of 1 to 2 key heads with 1 to 3 query heads each, with or without sliding window,
/// soft-cap and sinks, packed in bf16 or f32. Sizes of heads and factors of scores are taken from
/// `head_dims` and `scales`. The kernel is the portable one until a test sets another.
pub(super) fn cases(head_dims: &[usize], scales: &[f32]) -> impl Strategy<Value = Case> + use<> {
    let heads = (1_usize..3, 1_usize..4, prop::sample::select(head_dims.to_vec()));
    let scores =
        (prop::option::of(1_usize..100), prop::option::of(1.0_f32..20.0), prop::sample::select(scales.to_vec()));
    (1_usize..280, heads, scores, (0_usize..150, 0_usize..150), (any::<bool>(), any::<bool>(), any::<u64>())).prop_map(
        |(seq, heads, scores, cuts, (is_f32, has_sinks, seed))| {
            let (n_kv_heads, group, head_dim) = heads;
            let (window, soft_cap, scale) = scores;
            let word = if is_f32 { Word::Single } else { Word::Pair };
            let shape = KeyShape { n_kv_heads, head_dim, word };
            let kernel = Supported::PORTABLE;
            let mask = Mask::Causal(window);
            let settings = Settings { kernel, n_heads: n_kv_heads * group, shape, scale, soft_cap, mask, sinks: None };
            let count = seq * (settings.n_heads + 2 * n_kv_heads) * head_dim;
            let sinks = has_sinks.then(|| numbers(!seed, settings.n_heads));
            Case { settings, sinks, seq, cuts: cuts.into(), rows: numbers(seed, count) }
        },
    )
}

/// `count` numbers in [-2, 2), always the same for a seed.
pub(crate) fn numbers(seed: u64, count: usize) -> Vec<f32> {
    (0..count as u64)
        .map(|i| {
            let mixed = (seed ^ i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd134_2543_de82_ef95);
            ((mixed >> 40) as f32 / (1 << 23) as f32 - 1.0) * 2.0
        })
        .collect()
}

/// Checks what a block without keys makes of the rows of a sequence, by `run`: numbers near `expected`, and the same bits and
/// the same memory however the sequence is cut. `nothing` is the memory of a sequence that has not begun; `run` takes the memory,
/// rows, the positions whose result is wanted, and their output.
pub(super) fn check_cuts(
    of: &impl Debug,
    nothing: &Memory,
    (rows, count): (&[f32], usize),
    expected: &[f64],
    run: impl Fn(&mut Memory, &[f32], Range<usize>, &mut [f32]),
) {
    let (width, d_out) = (rows.len() / count, expected.len() / count);
    let mut whole = vec![f32::NAN; count * d_out];
    let mut end = nothing.clone();
    run(&mut end, rows, 0..count, &mut whole);
    for (found, expected) in whole.iter().zip(expected) {
        assert!((f64::from(*found) - expected).abs() < 1e-4 * expected.abs().max(1.0), "{found} {expected}");
    }
    for cuts in [vec![0, 1, count], vec![0, 2, 3, 9, count], (0..=count).collect()] {
        let mut memory = nothing.clone();
        for piece in cuts.windows(2) {
            // Of each piece all but the first position are looked at.
            let (from, to) = (piece[0], piece[1]);
            let keep = (to - from).min(1)..to - from;
            let mut out = vec![f32::NAN; keep.len() * d_out];
            run(&mut memory, &rows[from * width..to * width], keep.clone(), &mut out);
            let expected = &whole[(from + keep.start) * d_out..to * d_out];
            assert!(out.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits()), "{of:?}, {cuts:?}");
        }
        assert_eq!(memory, end);
    }
}

impl Case {
    /// Numbers of a row.
    fn stride(&self) -> usize {
        self.rows.len() / self.seq
    }

    /// Head `at` of a row, counted through all its queries, keys and values, `[head_dim]`, rounded
    /// to bf16 where the packed words are.
    fn head(&self, row: usize, at: usize) -> impl Iterator<Item = f64> + '_ {
        let head_dim = self.settings.shape.head_dim;
        let head = &self.rows[row * self.stride() + at * head_dim..][..head_dim];
        let word = self.settings.shape.word;
        head.iter().map(move |&x| f64::from(if word == Word::Pair { bf16::from_f32(x).to_f32() } else { x }))
    }

    /// The key head of a query head, as an argument of [`head`](Self::head).
    fn key_head(&self, head: usize) -> usize {
        self.settings.n_heads + head / (self.settings.n_heads / self.settings.shape.n_kv_heads)
    }

    /// The keys that the query at `position` sees, by the definition of the masks.
    pub(super) fn seen(&self, position: usize) -> Range<usize> {
        match self.settings.mask {
            Mask::Causal(window) => window.map_or(0, |window| (position + 1).saturating_sub(window))..position + 1,
            Mask::Bidirectional(None) => 0..self.seq,
            Mask::Bidirectional(Some(reach)) => position.saturating_sub(reach)..(position + reach + 1).min(self.seq),
        }
    }

    /// The value at position `key` for a query head, `[head_dim]`.
    pub(super) fn value(&self, key: usize, head: usize) -> impl Iterator<Item = f64> + '_ {
        self.head(key, self.key_head(head) + self.settings.shape.n_kv_heads)
    }

    /// The weights that a head of the query at `position` gives the keys it sees, in their order:
    /// `exp(s_j) / (Σ_k exp(s_k) + exp(sink))` with scaled and soft-capped scores `s`, in f64.
    pub(super) fn weights(&self, position: usize, head: usize) -> Vec<f64> {
        let Settings { scale, soft_cap, .. } = self.settings;
        let score = |key| {
            let dot: f64 = self.head(position, head).zip(self.head(key, self.key_head(head))).map(|(a, b)| a * b).sum();
            let scaled = dot * f64::from(scale);
            soft_cap.map_or(scaled, |cap| f64::from(cap) * (scaled / f64::from(cap)).tanh())
        };
        let scores: Vec<f64> = self.seen(position).map(score).collect();
        let sink = self.sinks.as_ref().map(|sinks| f64::from(sinks[head]));
        let highest = scores.iter().copied().chain(sink).fold(f64::MIN, f64::max);
        let weights: Vec<f64> = scores.iter().map(|score| (score - highest).exp()).collect();
        let total = weights.iter().sum::<f64>() + sink.map_or(0.0, |sink| (sink - highest).exp());
        weights.iter().map(|weight| weight / total).collect()
    }

    /// What `body` makes of all positions of the whole sequence at once, `[seq, width]`. For masks
    /// to both sides too.
    ///
    /// # Errors
    /// If a position that is computed alone has other bits.
    pub(super) fn run_whole(&self, width: usize, body: Body) -> Result<Vec<f32>, TestCaseError> {
        let settings = Settings { sinks: self.sinks.as_deref(), ..self.settings };
        let (seq, stride) = (self.seq, self.stride());
        let mut keys = KvCache::alike(settings.shape, None, seq, 1);
        keys.write(0, &self.rows[settings.n_heads * settings.shape.head_dim..], stride, seq);
        keys.advance(seq);
        let of = |position: usize, count: usize| {
            let mut out = vec![f32::NAN; count * width];
            let queries = Queries { keys: &keys, position, row: position, count };
            body(settings, 0, &[queries], &self.rows, stride, &mut out);
            out
        };
        let out = of(0, seq);
        for (position, together) in out.chunks_exact(width).enumerate() {
            let same = of(position, 1).iter().zip(together).all(|(a, b)| a.to_bits() == b.to_bits());
            prop_assert!(same, "{:?}, position {position} of {seq}", settings.kernel);
        }
        Ok(out)
    }

    /// What `body` makes of all positions at once, `[seq, width]`. For causal masks alone.
    ///
    /// # Errors
    /// If a position has other bits where its keys come in three pieces: two of the lengths `cuts`,
    /// which are kept as prefixes, and a third that is written and computed one position at a time,
    /// in another block than the first run's. Positions of the first two pieces are not compared.
    pub(super) fn run(&self, width: usize, body: Body) -> Result<Vec<f32>, TestCaseError> {
        let settings = Settings { sinks: self.sinks.as_deref(), ..self.settings };
        let (seq, stride) = (self.seq, self.stride());
        let behind_queries = settings.n_heads * settings.shape.head_dim;
        let mut keys = KvCache::alike(settings.shape, None, seq, 1);
        keys.write(0, &self.rows[behind_queries..], stride, seq);
        let mut out = vec![f32::NAN; seq * width];
        let all = Queries { keys: &keys, position: 0, row: 0, count: seq };
        body(settings, 0, &[all], &self.rows, stride, &mut out);

        let (mut before, mut end) = (None, 0);
        for len in self.cuts {
            let len = len.min(seq - end);
            if len == 0 {
                continue;
            }
            let mut piece = KvCache::alike(settings.shape, before.take(), len, 2);
            piece.write(1, &self.rows[end * stride + behind_queries..], stride, len);
            piece.advance(len);
            (before, end) = (Some(Arc::new(piece)), end + len);
        }
        let mut keys = KvCache::alike(settings.shape, before, seq - end, 2);
        for position in end..seq {
            keys.write(1, &self.rows[position * stride + behind_queries..], stride, 1);
            let mut alone = vec![f32::NAN; width];
            let query = Queries { keys: &keys, position, row: position, count: 1 };
            body(settings, 1, &[query], &self.rows, stride, &mut alone);
            let together = &out[position * width..][..width];
            let same = alone.iter().zip(together).all(|(a, b)| a.to_bits() == b.to_bits());
            prop_assert!(same, "{:?}, position {position} of {seq}", settings.kernel);
            keys.advance(1);
        }
        Ok(out)
    }
}
