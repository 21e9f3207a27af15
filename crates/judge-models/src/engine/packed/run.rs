//! [`SharedPasses`]: makes passes of a decoder over the sequences of one group, and collects what
//! they bring.
//!
//! `reading/driver.rs` calls [`Passes::prefill`] and [`Passes::step`]. `engine/segments.rs` says which
//! positions are computed together, `decoder.rs` runs the blocks, `reads.rs` takes what is wanted
//! of a row, and `reading/` makes answers of it and chooses tokens. This file owns the order of
//! passes and the keys of all sequences.
//!
//! ```text
//! plan ─► ready ─► next_pass ─► compute ─► computed        keys, pools and scores for the segments behind it
//!           ▲                      │          │
//!           └──────────────────────┼──────────┘            a computed segment makes those behind it ready
//!                                  ▼
//!                               hand_over ─► take          a sequence's last segment brings what is read
//!                                  ▲          │
//!                               extend ◄─ writing          the driver chose a token: feed it in the next step
//!                                          │   ▲ │
//!                                    preempted ┘   │ │         its keys have no room to grow: dropped, and computed again later
//!                                      └───────┘ ▼
//!                                          release         it chose none: the sequence is over
//! ```
//!
//! # Memory
//!
//! `kept` counts the positions whose keys stay after their pass: those of segments that others
//! continue, and those that texts which are being written have room for. A new pass is begun only if
//! its keys fit under `max_tokens`. If no text is being written, one segment is taken even if it does
//! not fit, so work never stalls.
//!
//! Few texts become as long as they may. A text's keys have room for [`GROWTH`] positions at a time, and
//! that is what it counts. Where a text cannot grow, those that came after it are preempted, the last
//! first, and then it is itself, unless it is the first of all: that one grows whether it fits or not.
//! A text that is preempted keeps its tokens alone. No new segment is taken until it is back, for which
//! its prompt and tokens are computed again, in passes of their own. Their keys are the same bits, as
//! those of any positions are however they are cut.
//!
//! A segment's keys are freed as soon as the last sequence through it is over, and those that all
//! windows have left before that, where one sequence alone still holds them.
//! Segments are taken depth first (`ready` is a stack), so few prefixes are kept at a time.
//!
//! # What is read of whole sequences
//!
//! Pools and log-probabilities are carried along the chain: a segment starts with a copy of what
//! its predecessor has and adds its own positions in order. Sums therefore run over positions in
//! one order, however a sequence was cut. A token at position `p` is scored with the row at
//! `p - 1`. The first token of a segment is scored by the segment itself, with the row that its
//! predecessor kept: sequences part there, and each has a token of its own.

use std::collections::VecDeque;
use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;

use judge_core::{
    Layer,
    request::{Pooling, Signal, TokenId},
};
use judge_kernels::softmax::TILE;
use rayon::prelude::*;

use super::decoder::PackedDecoder;
use super::kv_cache::KvCache;
use super::reads::{Pools, Read, entropies, is_state, signals};
use super::rotations::Angles;
use super::rows::BufferPool;
use super::spans::{Span, Stream};
use crate::Error;
use crate::engine::segments::{Cuts, Segment, plan};
use crate::reading::groups::Group;
use crate::reading::jobs::{Brought, Job, Signals};
use crate::reading::next_token::{LOGIT_ROWS, NextToken};
use crate::reading::passes::{Found, Next, Passes, Take};
use crate::reading::pooling::Pool;

/// Rows of one pass, at most: enough that reading the weights costs little beside the products, and
/// few enough that the rows stay in the caches. No segment is longer, and steps feed as many texts
/// at a time.
pub(super) const PASS: usize = 1024;

/// New positions that a text's keys have room for at a time, whole tiles: enough for what judges
/// mostly write, so that they are hardly ever preempted.
const GROWTH: usize = 8 * TILE;

/// The passes of one group of jobs. The vectors from `plan` to `computed` have one entry for each
/// segment.
pub(super) struct SharedPasses<'a> {
    /// The weights.
    decoder: &'a PackedDecoder,
    /// The jobs of the group; a segment's `sequence` is a job's place here.
    jobs: &'a [Job<'a>],
    /// Blocks that passes run, from the first.
    blocks: usize,
    /// Positions that may be kept at a time, at least 1; see [`new`](Self::new).
    max_tokens: usize,
    /// Rotations of all positions up to the longest sequence's end.
    angles: Angles,
    /// The segments, predecessors first.
    plan: Vec<Segment>,
    /// What pools all positions of any sequence through the segment, each signal once.
    whole: Vec<Vec<(Layer, Signal)>>,
    /// The first position from which tokens are scored in any sequence through the segment. `None`:
    /// no token is scored at, or right behind, its positions.
    ///
    /// ```text
    /// prefix 0..70, not scored by itself    A continues it and is scored from 70, B from 75
    /// scored_from   prefix 70               its last row predicts the token at 70, which A and B have of their own
    ///               A      70               starts with the token at 70 and the row that the prefix kept
    ///               B      75               scored by its own rows from position 74 on
    /// ```
    scored_from: Vec<Option<usize>>,
    /// The segments directly behind each.
    behind: Vec<Vec<usize>>,
    /// How many of the segments directly behind it are not over.
    dependants: Vec<usize>,
    /// How many of the segments directly behind it are not computed.
    uncomputed: Vec<usize>,
    /// What the segments behind it need. `None` before it is computed and once all of them are
    /// computed; always `None` for last segments, whose keys go to `writing` or are dropped.
    computed: Vec<Option<Computed>>,
    /// Segments whose predecessor is computed and that are not. A stack: the next one is at the
    /// end.
    ready: Vec<usize>,
    /// Positions for which keys are kept, as [`positions_kept`](Self::positions_kept) counts them.
    kept: usize,
    /// [`GROWTH`].
    growth: usize,
    /// Texts whose next token was chosen and not fed yet, those that came first in front.
    writing: VecDeque<Writing>,
    /// Texts that wait for room, likewise.
    preempted: VecDeque<Preempted>,
    /// Activations of passes, used again.
    pool: BufferPool,
}

/// What is kept of a segment for those behind it.
struct Computed {
    /// Keys, values and memories. Each segment behind holds a reference to them.
    keys: Arc<KvCache>,
    /// Pools of all positions up to the segment's end, in the order of its `whole`.
    pools: Pools,
    /// Log-probabilities up to the segment's end.
    scored: Scored,
}

/// What is scored so far of a sequence, or of several that agree up to here.
#[derive(Clone, Default)]
struct Scored {
    /// Log-probabilities of the tokens from the segment's `scored_from` on; NaN where the logits
    /// are not finite.
    log_probs: Vec<f32>,
    /// The last block's normed output at the segment's last position, `[d_model]`. It predicts the
    /// first token of each segment behind. Empty unless such a token is scored.
    last: Vec<f32>,
}

/// A sequence with the keys of its end; the caller that takes what was read there decides whether they are
/// needed any longer.
struct Held {
    /// The last segment of its prompt, which stands for the sequence.
    segment: usize,
    /// The keys from that segment on, or, of a longer text, from where it filled others.
    keys: KvCache,
    /// The tokens of its text that were fed.
    fed: Vec<TokenId>,
    /// Positions that it counts in `kept` by itself.
    counted: usize,
    /// Whether its keys continue no segment: it was preempted before, and holds all of its keys.
    is_apart: bool,
}

/// A sequence at the end of its prompt, or behind a token that was written.
struct Done {
    /// The sequence and its keys.
    held: Held,
    /// Pooled states and entropies; empty behind a written token.
    signals: Signals,
    /// Log-probabilities of the prompt's tokens, from the job's `scored_from` on.
    own: Vec<f32>,
    /// What was read of the last position.
    read: Read,
}

/// A token to be scored.
struct Scoring {
    /// Place of its segment in the pass.
    span: usize,
    /// The token.
    token: TokenId,
    /// The last block's normed output at the position before it, `[d_model]`.
    normed: Vec<f32>,
}

/// A sequence whose text is being written.
struct Writing {
    /// The sequence and its keys.
    held: Held,
    /// The token that was chosen last and is to be fed.
    token: TokenId,
}

/// A text without its keys.
struct Preempted {
    /// The last segment of its prompt.
    segment: usize,
    /// The tokens of its text that were fed.
    fed: Vec<TokenId>,
    /// The token that was chosen last and is to be fed.
    token: TokenId,
}

impl<'a> SharedPasses<'a> {
    /// Plans the passes of a group. At most `max_tokens` positions are kept at a time, and as many
    /// more as one sequence has. Copies of tiles that others began count among them.
    pub(super) fn new(decoder: &'a PackedDecoder, group: &'a Group<'a>, max_tokens: usize) -> Self {
        let Group { blocks, jobs } = group;
        let len = |job: &Job<'_>| job.ids.len() + job.new_tokens();
        let longest = jobs.iter().map(len).max().unwrap_or(0);
        let sequences: Vec<&[TokenId]> = jobs.iter().map(|job| job.ids.as_slice()).collect();
        let cuts = Cuts {
            tile: TILE,
            longest: PASS.min(max_tokens),
            worth_sharing: 4 * TILE,
            // Each segment behind it that begins within a tile copies that tile, and waits for the
            // pass before it.
            shortest_shared: TILE,
        };
        let plan = plan(&sequences, cuts);
        let mut whole: Vec<Vec<(Layer, Signal)>> = vec![Vec::new(); plan.len()];
        let mut scored_from = vec![None; plan.len()];
        let mut behind = vec![Vec::new(); plan.len()];
        // Backwards: what comes after a segment has been seen before it.
        for index in (0..plan.len()).rev() {
            if plan[index].is_last {
                whole[index] = jobs[plan[index].sequence].whole().collect();
                scored_from[index] = jobs[plan[index].sequence].scored_from;
            }
            if let Some(before) = plan[index].before {
                // A token is scored where the position before it is.
                let first = scored_from[index].filter(|&first| first <= plan[before].positions.end);
                scored_from[before] = [scored_from[before], first].into_iter().flatten().min();
                behind[before].push(index);
                for wanted in whole[index].clone() {
                    if !whole[before].contains(&wanted) {
                        whole[before].push(wanted);
                    }
                }
            }
        }
        let ready = (0..plan.len()).rev().filter(|&index| plan[index].before.is_none()).collect();
        Self {
            decoder,
            jobs,
            blocks: *blocks,
            max_tokens,
            // All have the frequencies of the longest.
            angles: Angles::new(&decoder.spec.ropes, longest, longest),
            computed: plan.iter().map(|_| None).collect(),
            plan,
            whole,
            scored_from,
            dependants: behind.iter().map(Vec::len).collect(),
            uncomputed: behind.iter().map(Vec::len).collect(),
            behind,
            ready,
            kept: 0,
            growth: GROWTH,
            writing: VecDeque::new(),
            preempted: VecDeque::new(),
            pool: BufferPool::default(),
        }
    }

    /// Takes ready segments for one pass, from the end of `ready`, until the next one does not fit
    /// into the pass's rows (at most [`PASS`] and `max_tokens`) or into what may be kept. Their
    /// positions are added to `kept` here; [`release`](Self::release) subtracts them. If nothing
    /// was taken and no text is being written, one is taken whether it fits or not. Empty if none
    /// is ready or none fits now.
    fn next_pass(&mut self) -> Vec<usize> {
        let (mut taken, mut rows, due) = (Vec::new(), 0, self.due());
        while let Some(&index) = self.ready.last() {
            let (len, keep) = (self.plan[index].positions.len(), self.positions_kept(index));
            let fits = rows + len <= PASS.min(self.max_tokens) && self.kept + due + keep <= self.max_tokens;
            let idle = taken.is_empty() && self.writing.is_empty();
            if !fits && !idle {
                break;
            }
            self.ready.pop();
            self.kept += keep;
            rows += len;
            taken.push(index);
        }
        taken
    }

    /// How many positions a segment counts in `kept`:
    ///
    /// | segment | counts |
    /// |---|---|
    /// | the last of a sequence without text | 0: its keys are dropped after the pass |
    /// | the last of a sequence with text | its positions, the new ones that there is room for at first, and what follows |
    /// | one that others continue | its positions, and what follows |
    ///
    /// What follows: the positions that it copies of a tile that its predecessor began, and the
    /// positions whose keys take as much memory as what blocks without keys remember at its end.
    fn positions_kept(&self, index: usize) -> usize {
        let segment = &self.plan[index];
        let kept = segment.positions.start % TILE + segment.positions.len();
        let kept = kept + self.decoder.memory_in_positions(self.blocks);
        match self.jobs[segment.sequence].new_tokens() {
            0 if segment.is_last => 0,
            new if segment.is_last => kept + new.min(self.growth),
            _ => kept,
        }
    }

    /// Computes segments in one pass, whose predecessors are computed:
    ///
    /// 1. Each segment starts with copies of its predecessor's pools and log-probabilities, and
    ///    with room for its keys behind those of its predecessor.
    /// 2. The last block leaves out the positions that nothing reads.
    /// 3. After each block, rows are added to pools, rows before scored tokens are normed, and each
    ///    sequence's last row is read.
    /// 4. Scored tokens get their log-probabilities.
    /// 5. Segments that others continue go to `computed` and make those behind them `ready`. The
    ///    others end a sequence and are returned.
    fn compute(&mut self, segments: &[usize]) -> Vec<Done> {
        let (decoder, blocks) = (self.decoder, self.blocks);
        let mut keys = Vec::with_capacity(segments.len());
        let mut pools: Vec<Pools> = Vec::with_capacity(segments.len());
        let mut scored: Vec<Scored> = Vec::with_capacity(segments.len());
        let mut scoring: Vec<Scoring> = Vec::new();
        for (span, &index) in segments.iter().enumerate() {
            let segment = &self.plan[index];
            let before = segment.before.and_then(|before| self.computed[before].as_ref());
            let inherited = |wanted: &(Layer, Signal)| {
                let at = before.and_then(|before| {
                    let whole = &self.whole[segment.before?];
                    before.pools.get(whole.iter().position(|known| known == wanted)?)
                });
                let pooling = match wanted.1 {
                    Signal::State(pooling) => pooling,
                    // Of each head's entropies; a job's `whole` has nothing of a reply.
                    Signal::AttentionEntropy | Signal::Reply(_) => Pooling::Mean,
                };
                at.map_or_else(|| (*wanted, Pool::new(pooling)), Clone::clone)
            };
            pools.push(self.whole[index].iter().map(inherited).collect());
            let (log_probs, first) = self.scored_before(index);
            scored.push(Scored { log_probs, last: Vec::new() });
            scoring.extend(first.map(|(token, normed)| Scoring { span, token, normed }));
            let new = if segment.is_last { self.jobs[segment.sequence].new_tokens() } else { 0 };
            let capacity = segment.positions.len() + new.min(self.growth);
            let before = before.map(|before| Arc::clone(&before.keys));
            keys.push(KvCache::new(decoder.key_places(self.positions_kept(index) > 0), before, capacity));
        }
        let mut reads: Vec<Read> = segments.iter().map(|_| Read::default()).collect();
        let entropies: Vec<Vec<Layer>> = segments.iter().map(|&index| entropies(&self.whole[index])).collect();
        let mut spans: Vec<Span<'_>> = keys
            .iter_mut()
            .zip(segments)
            .zip(&entropies)
            .map(|((keys, &index), entropies)| {
                let Segment { sequence, positions, is_last, .. } = &self.plan[index];
                let len = positions.len();
                let is_pooled = self.whole[index].iter().any(|&(layer, signal)| layer.0 == blocks && is_state(signal));
                let keep = match self.scored_from[index] {
                    _ if is_pooled => 0..len,
                    // The position before the first token that is scored, and those behind it.
                    Some(from) => (from - 1).clamp(positions.start, positions.end - 1) - positions.start..len,
                    None if *is_last => len - 1..len,
                    None => 0..0,
                };
                Span { ids: &self.jobs[*sequence].ids[positions.clone()], keys, keep, entropies }
            })
            .collect();
        let mut visit = |layer: usize, stream: &Stream<'_>| {
            for (span, &index) in segments.iter().enumerate() {
                let mut rows = stream.rows(span);
                for ((_, signal), pool) in pools[span].iter_mut().filter(|((wanted, _), _)| wanted.0 == layer) {
                    match signal {
                        Signal::AttentionEntropy => stream.entropies(span).for_each(|row| pool.add(row)),
                        _ if layer == decoder.spec.n_layers() => {
                            rows.clone().for_each(|row| pool.add(&decoder.final_norm(row)));
                        }
                        _ => rows.clone().for_each(|row| pool.add(row)),
                    }
                }
                if layer == decoder.spec.n_layers()
                    && let Some(from) = self.scored_from[index]
                {
                    let Segment { sequence, positions, is_last, .. } = &self.plan[index];
                    // What is kept ends where the segment does.
                    let kept = rows.clone().zip(positions.end - rows.len()..);
                    for (row, position) in kept.filter(|(_, position)| position + 1 >= from) {
                        if position + 1 < positions.end {
                            let token = self.jobs[*sequence].ids[position + 1];
                            scoring.push(Scoring { span, token, normed: decoder.final_norm(row) });
                        } else if !is_last {
                            scored[span].last = decoder.final_norm(row);
                        }
                    }
                }
                if self.plan[index].is_last
                    && let Some(row) = rows.next_back()
                {
                    reads[span].take(decoder, &self.jobs[self.plan[index].sequence], true, layer, row);
                }
            }
            ControlFlow::Continue(())
        };
        decoder.forward(&mut spans, &self.angles, blocks, &mut self.pool, &mut visit);
        self.score(&scoring, &mut scored);
        let mut done = Vec::new();
        for before in segments.iter().filter_map(|&index| self.plan[index].before) {
            self.uncomputed[before] -= 1;
            if self.uncomputed[before] == 0 {
                // The keys of those behind it hold its keys.
                self.computed[before] = None;
            }
        }
        let brought = keys.into_iter().zip(pools).zip(reads).zip(scored);
        for (&index, (((mut keys, pools), mut read), scored)) in segments.iter().zip(brought) {
            keys.advance(self.plan[index].positions.len());
            keys.free_left();
            if !self.plan[index].is_last {
                self.computed[index] = Some(Computed { keys: Arc::new(keys), pools, scored });
                // The next one is at the end.
                self.ready.extend(&self.behind[index]);
                continue;
            }
            let signals = signals(&self.jobs[self.plan[index].sequence], &mem::take(&mut read.last), pools);
            let counted = self.positions_kept(index);
            let held = Held { segment: index, keys, fed: Vec::new(), counted, is_apart: false };
            done.push(Done { held, signals, own: scored.log_probs, read });
        }
        done
    }

    /// The log-probabilities with which a segment's scores begin: of the tokens before it, those
    /// from its own `scored_from` on. If its first token is scored, also that token with the normed
    /// state that predicts it. Nothing for a segment that is scored from a later position, or that
    /// begins its sequence.
    fn scored_before(&self, index: usize) -> (Vec<f32>, Option<(TokenId, Vec<f32>)>) {
        let segment = &self.plan[index];
        let start = segment.positions.start;
        let from = self.scored_from[index].filter(|&from| from <= start);
        let before =
            segment.before.and_then(|before| Some((self.computed[before].as_ref()?, self.scored_from[before]?)));
        let (Some(from), Some((Computed { scored, .. }, first))) = (from, before) else { return (Vec::new(), None) };
        let log_probs = scored.log_probs.get(from - first..).unwrap_or_default().to_vec();
        (log_probs, Some((self.jobs[segment.sequence].ids[start], scored.last.clone())))
    }

    /// Appends each token's log-probability to the scores of its segment. `scoring` has the tokens
    /// of one segment in their order. Logits are made for [`LOGIT_ROWS`] tokens at a time, so that
    /// a long prompt does not hold `[positions, d_vocab]` numbers at once. A number that is not
    /// finite among the logits makes a NaN, which is refused with the reading.
    fn score(&self, scoring: &[Scoring], scored: &mut [Scored]) {
        let config = &self.decoder.spec;
        for some in scoring.chunks(LOGIT_ROWS) {
            let states: Vec<f32> = some.iter().flat_map(|one| &one.normed).copied().collect();
            let mut logits = self.decoder.logits(&states);
            let rows = logits.par_chunks_exact_mut(self.decoder.spec.d_vocab.max(1)).zip(some);
            let log_prob = |(row, one): (&mut [f32], &Scoring)| {
                let next = NextToken::new(row, config.final_soft_cap, "a scored token");
                next.map_or(f32::NAN, |next| next.log_prob(one.token) as f32) // which is refused with the reading
            };
            let found: Vec<f32> = rows.map(log_prob).collect();
            some.iter().zip(found).for_each(|(one, log_prob)| scored[one.span].log_probs.push(log_prob));
        }
    }

    /// Gives finished sequences to the driver, with logits over the vocabulary where they are asked
    /// for, for [`LOGIT_ROWS`] sequences at a time. A sequence for which `take` returns a token
    /// goes to `writing`; any other is over, and its keys are freed.
    fn hand_over(&mut self, done: Vec<Done>, take: &mut Take<'_>) -> Result<(), Error> {
        let mut done = done.into_iter().peekable();
        while done.peek().is_some() {
            let some: Vec<Done> = done.by_ref().take(LOGIT_ROWS).collect();
            // Of those that need logits, one row each.
            let states: Vec<f32> = some.iter().flat_map(|one| &one.read.normed).copied().collect();
            let mut logits = if states.is_empty() { Vec::new() } else { self.decoder.logits(&states) };
            let mut rows = logits.chunks_exact_mut(self.decoder.spec.d_vocab.max(1));
            let (mut found, mut held) = (Vec::with_capacity(some.len()), Vec::with_capacity(some.len()));
            for Done { held: one, signals, own, read } in some {
                let row = if read.normed.is_empty() { None } else { rows.next() };
                let next = row.map_or(Next::Unknown, Next::Logits);
                let brought = Brought { states: read.states, signals, own, fed: read.last };
                found.push(Found { job: self.plan[one.segment].sequence, brought, next });
                held.push(one);
            }
            for (held, token) in held.into_iter().zip(take(found)?) {
                match token {
                    Some(token) => self.writing.push_back(Writing { held, token }),
                    None => self.release(held),
                }
            }
        }
        Ok(())
    }

    /// Drops a sequence's keys and takes it out of the account. Predecessors that no other sequence
    /// needs any longer go with it: their keys are freed with the last that holds them, and their
    /// positions no longer count as kept.
    fn release(&mut self, Held { segment, keys, counted, is_apart, .. }: Held) {
        drop(keys);
        self.kept -= counted;
        let mut before = if is_apart { None } else { self.plan[segment].before };
        while let Some(gone) = before {
            self.dependants[gone] -= 1;
            if self.dependants[gone] > 0 {
                break;
            }
            self.kept -= self.positions_kept(gone);
            before = self.plan[gone].before;
        }
    }

    /// Positions that a sequence may still have behind the first `len`.
    fn left(&self, segment: usize, len: usize) -> usize {
        let job = &self.jobs[self.plan[segment].sequence];
        job.ids.len() + job.new_tokens() - len
    }

    /// Positions that texts need before their next token. What is begun beside them is preempted again
    /// for these, so nothing is begun in their place.
    fn due(&self) -> usize {
        let full = self.writing.iter().filter(|text| text.held.keys.is_full());
        full.map(|text| self.left(text.held.segment, text.held.keys.end()).min(self.growth)).sum()
    }

    /// The texts that are fed next, each with room for a position; the others are preempted. See
    /// *Memory* at the top of this file.
    fn with_room(&mut self) -> Vec<Writing> {
        let mut texts: Vec<Writing> = Vec::with_capacity(self.writing.len());
        while let Some(mut text) = self.writing.pop_front() {
            if text.held.keys.is_full() {
                let more = self.left(text.held.segment, text.held.keys.end()).min(self.growth);
                while self.kept + more > self.max_tokens
                    && let Some(last) = self.writing.pop_back()
                {
                    self.preempt(last);
                }
                if self.kept + more > self.max_tokens && !texts.is_empty() {
                    self.preempt(text);
                    continue;
                }
                self.kept += more;
                text.held.counted += more;
                text.held.keys = text.held.keys.go_on(more);
                text.held.keys.free_left();
            }
            texts.push(text);
        }
        texts
    }

    /// Drops the keys of a text, which came before all that were preempted.
    fn preempt(&mut self, Writing { mut held, token }: Writing) {
        let (segment, fed) = (held.segment, mem::take(&mut held.fed));
        self.release(held);
        self.preempted.push_front(Preempted { segment, fed, token });
    }

    /// Computes the keys of the first text that was preempted, if there is room for them or no other
    /// text is being written. Whether it did.
    fn resume(&mut self) -> bool {
        let Some(Preempted { segment, fed, token }) = self.preempted.pop_front() else { return false };
        let job = &self.jobs[self.plan[segment].sequence];
        let len = job.ids.len() + fed.len();
        let room = len + self.left(segment, len).min(self.growth);
        let counted = room + self.decoder.memory_in_positions(self.blocks);
        if self.kept + self.due() + counted > self.max_tokens && !self.writing.is_empty() {
            self.preempted.push_front(Preempted { segment, fed, token });
            return false;
        }
        self.kept += counted;
        let mut keys = KvCache::new(self.decoder.key_places(true), None, room);
        let ids: Vec<TokenId> = job.ids.iter().chain(&fed).copied().collect();
        for ids in ids.chunks(PASS.min(self.max_tokens)) {
            let mut spans = [Span { ids, keys: &mut keys, keep: 0..0, entropies: &[] }];
            let mut visit = |_: usize, _: &Stream<'_>| ControlFlow::Continue(());
            self.decoder.forward(&mut spans, &self.angles, self.blocks, &mut self.pool, &mut visit);
            keys.advance(ids.len());
        }
        let held = Held { segment, keys, fed, counted, is_apart: true };
        self.writing.push_back(Writing { held, token });
        true
    }

    /// Feeds the chosen token of at most [`PASS`] texts in one pass and returns what is read behind
    /// it.
    fn extend(&mut self, mut writing: Vec<Writing>) -> Vec<Done> {
        let decoder = self.decoder;
        let mut reads: Vec<Read> = writing.iter().map(|_| Read::default()).collect();
        let jobs: Vec<&Job<'_>> = writing.iter().map(|one| &self.jobs[self.plan[one.held.segment].sequence]).collect();
        let mut spans: Vec<Span<'_>> = writing
            .iter_mut()
            .map(|Writing { held, token }| Span {
                ids: std::slice::from_ref(token),
                keys: &mut held.keys,
                keep: 0..1,
                entropies: &[],
            })
            .collect();
        let mut visit = |layer: usize, stream: &Stream<'_>| {
            for (span, (job, read)) in jobs.iter().zip(&mut reads).enumerate() {
                if let Some(row) = stream.rows(span).next_back() {
                    read.take(decoder, job, false, layer, row);
                }
            }
            ControlFlow::Continue(())
        };
        decoder.forward(&mut spans, &self.angles, self.blocks, &mut self.pool, &mut visit);
        let done = writing.into_iter().zip(reads).map(|(Writing { mut held, token }, read)| {
            held.keys.advance(1);
            held.fed.push(token);
            Done { held, signals: Signals::default(), own: Vec::new(), read }
        });
        done.collect()
    }
}

impl Passes for SharedPasses<'_> {
    /// One pass over segments, then their finished sequences; or, as long as there are any, a text that
    /// was preempted. `false` if nothing is left or nothing fits.
    fn prefill(&mut self, take: &mut Take<'_>) -> Result<bool, Error> {
        if !self.preempted.is_empty() {
            return Ok(self.resume());
        }
        let segments = self.next_pass();
        if segments.is_empty() {
            return Ok(false);
        }
        let done = self.compute(&segments);
        self.hand_over(done, take)?;
        Ok(true)
    }

    /// Feeds one token to every text that has room for it, in as many passes as they need. `false` if
    /// no text is being written.
    fn step(&mut self, take: &mut Take<'_>) -> Result<bool, Error> {
        let mut texts = self.with_room().into_iter().peekable();
        if texts.peek().is_none() {
            return Ok(false);
        }
        while texts.peek().is_some() {
            let some = texts.by_ref().take(PASS).collect();
            let done = self.extend(some);
            self.hand_over(done, take)?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
