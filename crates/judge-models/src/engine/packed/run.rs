//! Plans what of some sequences is computed together, makes the passes, and reads them.

use std::collections::HashMap;
use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;

use judge_core::{HeadEntropies, Layer, Lens, PooledState, Pooling, Signal, TokenId};
use rayon::prelude::*;

use super::decoder::{Angles, PackedDecoder, Span, Stream};
use super::keys::{Keys, TILE};
use super::plan::{Stretch, plan};
use super::rows::BufferPool;
use crate::Error;
use crate::reading::groups::Group;
use crate::reading::jobs::{Brought, Job, Signals};
use crate::reading::labels::{States, wants_state};
use crate::reading::next_token::{LOGIT_ROWS, NextLogProbs, NextToken};
use crate::reading::passes::{Found, Next, Passes, Take};
use crate::reading::pooling::Pool;

/// Rows of one pass: enough that reading the weights costs little beside the products, few enough that the rows stay in reach
/// of the caches.
pub(super) const PASS: usize = 1024;

/// Sequences that share passes.
pub(super) struct SharedPasses<'a> {
    decoder: &'a PackedDecoder,
    jobs: &'a [Job<'a>],
    blocks: usize,
    max_tokens: usize,
    angles: Angles,
    plan: Vec<Stretch>,
    /// Of each stretch, what pools all positions of a sequence through it.
    whole: Vec<Vec<(Layer, Signal)>>,
    /// Of each stretch, the first position from which tokens are scored in any sequence through it.
    scored_from: Vec<Option<usize>>,
    /// Of each stretch, those directly behind it.
    behind: Vec<Vec<usize>>,
    /// Of each stretch, how many of those behind it still hold its keys, or will.
    holders: Vec<usize>,
    /// What those behind it need of a stretch.
    computed: Vec<Option<Computed>>,
    /// Stretches whose predecessor is computed; the next one is at the end.
    ready: Vec<usize>,
    /// Positions for which keys are kept.
    kept: usize,
    writing: Vec<Writing>,
    pool: BufferPool,
}

/// What is kept of a stretch.
struct Computed {
    keys: Arc<Keys>,
    pools: Pools,
    scored: Scored,
}

/// What is scored so far of a sequence, or of several that have been one until here.
#[derive(Clone, Default)]
struct Scored {
    /// The log-probabilities of the tokens up to here; NaN where the logits are not finite.
    log_probs: Vec<f32>,
    /// The normed output of the last block at the last position, if the token that follows is scored, which each sequence has of its own.
    last: Vec<f32>,
}

/// What is pooled so far, of a sequence or of several that have been one until here.
type Pools = Vec<((Layer, Signal), Pool)>;

/// What a pass brings for one of its sequences.
#[derive(Default)]
struct Read {
    /// What label logits are made from.
    states: States,
    /// The last position's state of layers that are wanted as they are.
    last: Vec<(Layer, Vec<f32>)>,
    /// The normed output of the last block, if the logits over the vocabulary are needed.
    normed: Vec<f32>,
}

/// A sequence of which all positions were read.
struct Done {
    /// The last stretch of it.
    stretch: usize,
    keys: Keys,
    signals: Signals,
    own: Vec<f32>,
    read: Read,
}

/// A token to be scored.
struct Scoring {
    /// Which sequence of the pass.
    span: usize,
    token: TokenId,
    /// The normed output of the last block at the position before it.
    normed: Vec<f32>,
}

/// A sequence whose text is being written.
struct Writing {
    /// The last one of the sequence.
    stretch: usize,
    keys: Keys,
    /// The last token that was written.
    token: TokenId,
}

impl<'a> SharedPasses<'a> {
    /// At most `max_tokens` positions are kept for later passes at a time, and as many more as one sequence has, copies of tiles that were begun
    /// among them.
    pub(super) fn new(decoder: &'a PackedDecoder, group: &'a Group<'a>, max_tokens: usize) -> Self {
        let Group { blocks, jobs } = group;
        let len = |job: &Job<'_>| job.ids.len() + job.new_tokens();
        let longest = jobs.iter().map(len).max().unwrap_or(0);
        let sequences: Vec<&[TokenId]> = jobs.iter().map(|job| job.ids.as_slice()).collect();
        let plan = plan(&sequences, PASS.min(max_tokens));
        let mut whole: Vec<Vec<(Layer, Signal)>> = vec![Vec::new(); plan.len()];
        let mut scored_from = vec![None; plan.len()];
        let mut behind = vec![Vec::new(); plan.len()];
        // Backwards: whoever comes after a stretch has been seen before it.
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
            holders: behind.iter().map(Vec::len).collect(),
            behind,
            ready,
            kept: 0,
            writing: Vec::new(),
            pool: BufferPool::default(),
        }
    }

    /// Takes as many stretches as fit into a pass and into what may be kept; if nothing else goes on, at least one.
    fn next_pass(&mut self) -> Vec<usize> {
        let (mut taken, mut rows) = (Vec::new(), 0);
        while let Some(&index) = self.ready.last() {
            let (len, keep) = (self.plan[index].positions.len(), self.positions_kept(index));
            let fits = rows + len <= PASS.min(self.max_tokens) && self.kept + keep <= self.max_tokens;
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

    /// Positions of a stretch for which keys are kept, new tokens included, and what they copy of a tile that those before began; and as many as take the memory
    /// of what blocks without keys remember at its end.
    fn positions_kept(&self, index: usize) -> usize {
        let stretch = &self.plan[index];
        let kept = stretch.positions.start % TILE + stretch.positions.len();
        let kept = kept + self.decoder.memory_in_positions(self.blocks);
        match self.jobs[stretch.sequence].new_tokens() {
            0 if stretch.is_last => 0,
            new if stretch.is_last => kept + new,
            _ => kept,
        }
    }

    /// Computes stretches, and returns the sequences that end with them.
    fn compute(&mut self, stretches: &[usize]) -> Vec<Done> {
        let (decoder, blocks) = (self.decoder, self.blocks);
        let mut keys = Vec::with_capacity(stretches.len());
        let mut pools: Vec<Pools> = Vec::with_capacity(stretches.len());
        let mut scored: Vec<Scored> = Vec::with_capacity(stretches.len());
        let mut scoring: Vec<Scoring> = Vec::new();
        for (span, &index) in stretches.iter().enumerate() {
            let stretch = &self.plan[index];
            let before = stretch.before.and_then(|before| self.computed[before].as_ref());
            let inherited = |wanted: &(Layer, Signal)| {
                let at = before.and_then(|before| {
                    let whole = &self.whole[stretch.before?];
                    before.pools.get(whole.iter().position(|known| known == wanted)?)
                });
                let pooling = match wanted.1 {
                    Signal::State(pooling) => pooling,
                    Signal::AttentionEntropy => Pooling::Mean,
                };
                at.map_or_else(|| (*wanted, Pool::new(pooling)), Clone::clone)
            };
            pools.push(self.whole[index].iter().map(inherited).collect());
            let (log_probs, first) = self.scored_before(index);
            scored.push(Scored { log_probs, last: Vec::new() });
            scoring.extend(first.map(|(token, normed)| Scoring { span, token, normed }));
            let new = if stretch.is_last { self.jobs[stretch.sequence].new_tokens() } else { 0 };
            let capacity = stretch.positions.len() + new;
            let before = before.map(|before| Arc::clone(&before.keys));
            keys.push(Keys::new(decoder.key_places(self.positions_kept(index) > 0), before, capacity));
        }
        let mut reads: Vec<Read> = stretches.iter().map(|_| Read::default()).collect();
        let entropies: Vec<Vec<Layer>> = stretches.iter().map(|&index| entropies(&self.whole[index])).collect();
        let mut spans: Vec<Span<'_>> = keys
            .iter_mut()
            .zip(stretches)
            .zip(&entropies)
            .map(|((keys, &index), entropies)| {
                let Stretch { sequence, positions, is_last, .. } = &self.plan[index];
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
            for (span, &index) in stretches.iter().enumerate() {
                let mut rows = stream.rows(span);
                for ((_, signal), pool) in pools[span].iter_mut().filter(|((wanted, _), _)| wanted.0 == layer) {
                    match signal {
                        Signal::AttentionEntropy => stream.entropies(span).for_each(|row| pool.add(row)),
                        Signal::State(_) if layer == decoder.spec.n_layers() => {
                            rows.clone().for_each(|row| pool.add(&decoder.final_norm(row)));
                        }
                        Signal::State(_) => rows.clone().for_each(|row| pool.add(row)),
                    }
                }
                if layer == decoder.spec.n_layers()
                    && let Some(from) = self.scored_from[index]
                {
                    let Stretch { sequence, positions, is_last, .. } = &self.plan[index];
                    // What is kept ends where the stretch does.
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
        let brought = keys.into_iter().zip(pools).zip(reads).zip(scored);
        for (&index, (((mut keys, pools), read), scored)) in stretches.iter().zip(brought) {
            keys.advance(self.plan[index].positions.len());
            if !self.plan[index].is_last {
                self.computed[index] = Some(Computed { keys: Arc::new(keys), pools, scored });
                // The next one is at the end.
                self.ready.extend(&self.behind[index]);
                continue;
            }
            let signals = signals(&self.jobs[self.plan[index].sequence], &read, pools);
            done.push(Done { stretch: index, keys, signals, own: scored.log_probs, read });
        }
        done
    }

    /// Of the tokens that are scored in a stretch, the log-probabilities of those before it, and, if the stretch's first one is scored, that token
    /// with the normed state that predicts it.
    fn scored_before(&self, index: usize) -> (Vec<f32>, Option<(TokenId, Vec<f32>)>) {
        let stretch = &self.plan[index];
        let start = stretch.positions.start;
        let from = self.scored_from[index].filter(|&from| from <= start);
        let before =
            stretch.before.and_then(|before| Some((self.computed[before].as_ref()?, self.scored_from[before]?)));
        let (Some(from), Some((Computed { scored, .. }, first))) = (from, before) else { return (Vec::new(), None) };
        let log_probs = scored.log_probs.get(from - first..).unwrap_or_default().to_vec();
        (log_probs, Some((self.jobs[stretch.sequence].ids[start], scored.last.clone())))
    }

    /// Puts the log-probabilities of tokens, those of one sequence in their order, behind what is scored of their sequences.
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

    /// Hands over what was brought, with logits where they are asked for: those of so many sequences are there at once. Sequences behind which a token is
    /// written go on, the others are over.
    fn hand_over(&mut self, done: Vec<Done>, take: &mut Take<'_>) -> Result<(), Error> {
        let mut done = done.into_iter().peekable();
        while done.peek().is_some() {
            let some: Vec<Done> = done.by_ref().take(LOGIT_ROWS).collect();
            // Of those that need logits, one row each.
            let states: Vec<f32> = some.iter().flat_map(|one| &one.read.normed).copied().collect();
            let mut logits = if states.is_empty() { Vec::new() } else { self.decoder.logits(&states) };
            let mut rows = logits.chunks_exact_mut(self.decoder.spec.d_vocab.max(1));
            let (mut found, mut held) = (Vec::with_capacity(some.len()), Vec::with_capacity(some.len()));
            for Done { stretch, keys, signals, own, read } in some {
                let row = if read.normed.is_empty() { None } else { rows.next() };
                let next = row.map_or(Next::Unknown, Next::Logits);
                let brought = Brought { states: read.states, signals, own };
                found.push(Found { job: self.plan[stretch].sequence, brought, next });
                held.push((stretch, keys));
            }
            for ((stretch, keys), token) in held.into_iter().zip(take(found)?) {
                match token {
                    Some(token) => self.writing.push(Writing { stretch, keys, token }),
                    None => {
                        drop(keys);
                        self.release(stretch);
                    }
                }
            }
        }
        Ok(())
    }

    /// Says that a sequence, whose last stretch this is, is over: its keys are gone, and with them those before that nobody else holds.
    fn release(&mut self, last: usize) {
        let mut gone = last;
        loop {
            self.kept -= self.positions_kept(gone);
            let Some(before) = self.plan[gone].before else { break };
            self.holders[before] -= 1;
            if self.holders[before] > 0 {
                break;
            }
            self.computed[before] = None;
            gone = before;
        }
    }

    /// Reads what follows the token that was written last, for texts that fit into a pass.
    fn extend(&mut self, mut writing: Vec<Writing>) -> Vec<Done> {
        let decoder = self.decoder;
        let mut reads: Vec<Read> = writing.iter().map(|_| Read::default()).collect();
        let jobs: Vec<&Job<'_>> = writing.iter().map(|one| &self.jobs[self.plan[one.stretch].sequence]).collect();
        let mut spans: Vec<Span<'_>> = writing
            .iter_mut()
            .map(|one| Span { ids: std::slice::from_ref(&one.token), keys: &mut one.keys, keep: 0..1, entropies: &[] })
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
        let done = writing.into_iter().zip(reads).map(|(Writing { stretch, mut keys, .. }, read)| {
            keys.advance(1);
            Done { stretch, keys, signals: Signals::default(), own: Vec::new(), read }
        });
        done.collect()
    }
}

impl Passes for SharedPasses<'_> {
    fn prefill(&mut self, take: &mut Take<'_>) -> Result<bool, Error> {
        let stretches = self.next_pass();
        if stretches.is_empty() {
            return Ok(false);
        }
        let done = self.compute(&stretches);
        self.hand_over(done, take)?;
        Ok(true)
    }

    fn step(&mut self, take: &mut Take<'_>) -> Result<bool, Error> {
        let mut writing = mem::take(&mut self.writing).into_iter().peekable();
        if writing.peek().is_none() {
            return Ok(false);
        }
        while writing.peek().is_some() {
            let done = self.extend(writing.by_ref().take(PASS).collect());
            self.hand_over(done, take)?;
        }
        Ok(true)
    }
}

impl Drop for SharedPasses<'_> {
    /// From the ends to the beginnings: keys that hold those before them, and these others, would be dropped in as many calls.
    fn drop(&mut self) {
        self.writing.clear();
        while self.computed.pop().is_some() {}
    }
}

impl Read {
    /// Takes what `job` asks of the row of the last position at `layer`, that of the prompt or of a token behind it.
    fn take(&mut self, decoder: &PackedDecoder, job: &Job<'_>, is_prompt: bool, layer: usize, row: &[f32]) {
        let step = usize::from(!is_prompt);
        let n_layers = decoder.spec.n_layers();
        let (want, layer, is_final) = (job.want, Layer(layer), layer == n_layers);
        let wants = |lens| wants_state(want, step, layer, lens, n_layers);
        let is_last_pooled = is_prompt && want.pooled.contains(&(layer, Pooling::Last));
        if is_last_pooled && !is_final {
            self.last.push((layer, row.to_vec()));
        }
        if wants(Lens::Raw) {
            self.states.insert((layer, Lens::Raw), row.to_vec());
        }
        let needs_logits = is_final && job.needs_logits(step);
        if !(needs_logits || wants(Lens::Normed) || is_last_pooled && is_final) {
            return;
        }
        let normed = decoder.final_norm(row);
        if is_last_pooled && is_final {
            self.last.push((layer, normed.clone()));
        }
        if wants(Lens::Normed) {
            self.states.insert((layer, Lens::Normed), normed.clone());
        }
        if needs_logits {
            self.normed = normed;
        }
    }
}

fn is_state(signal: Signal) -> bool {
    matches!(signal, Signal::State(_))
}

/// The layers whose attention entropies are among these.
fn entropies(wanted: &[(Layer, Signal)]) -> Vec<Layer> {
    wanted.iter().filter(|(_, signal)| !is_state(*signal)).map(|&(layer, _)| layer).collect()
}

/// What the positions of a job brought.
fn signals(job: &Job<'_>, read: &Read, pools: Pools) -> Signals {
    let whole: HashMap<(Layer, Signal), Vec<f32>> =
        pools.into_iter().map(|(wanted, pool)| (wanted, pool.finish())).collect();
    let get = |wanted| whole.get(&wanted).cloned().unwrap_or_default();
    let state = |&(layer, pooling): &(Layer, Pooling)| {
        let last = || read.last.iter().find(|(at, _)| *at == layer).map(|(_, state)| state.clone());
        let values = match pooling {
            Pooling::Last => last().unwrap_or_default(),
            _ => get((layer, Signal::State(pooling))),
        };
        PooledState { layer, pooling, values }
    };
    let heads = |&layer: &Layer| HeadEntropies { layer, values: get((layer, Signal::AttentionEntropy)) };
    Signals {
        pooled: job.want.pooled.iter().map(state).collect(),
        attention_entropy: job.want.attention_entropy.iter().map(heads).collect(),
    }
}

#[cfg(test)]
mod tests;
