//! Answers requests: plans what is computed together, makes passes, reads them, and writes text.

use std::collections::HashMap;
use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;

use judge_core::{HeadEntropies, Layer, Lens, Outcome, PooledState, Pooling, ReadAt, Request, Signal, TokenId, Want};

use super::decoder::{Angles, BufferPool, PackedDecoder, Span, Stream};
use super::keys::Keys;
use super::plan::{Stretch, plan};
use crate::Error;
use crate::generate::choose;
use crate::jobs::{self, Job, Signals, Sink, Text};
use crate::model::Model;
use crate::pooling::Pool;
use crate::read::{States, Steps};

/// Rows of one pass: enough that reading the weights costs little beside the products, few enough that the rows stay in reach
/// of the caches.
const PASS: usize = 1024;

/// Rows whose logits over the whole vocabulary are there at once.
const LOGIT_ROWS: usize = 32;

/// Answers each request once, as soon as it is known. After [`ControlFlow::Break`] nothing more is begun. At most `max_tokens`
/// positions are kept for later passes at a time, and as many more as one sequence has.
pub(crate) fn run<'a>(
    model: &Model,
    decoder: &PackedDecoder,
    requests: &'a [Request],
    heads: &'a HashMap<&[TokenId], Vec<f32>>,
    max_tokens: usize,
    sink: &mut Sink<'_>,
) -> Result<(), Error> {
    let ControlFlow::Continue(groups) = jobs::groups(model, requests, heads, sink)? else { return Ok(()) };
    for group in groups {
        if Group::new(model, decoder, &group.jobs, group.blocks, max_tokens).run(sink).is_break() {
            break;
        }
    }
    Ok(())
}

/// Sequences that share passes.
struct Group<'a> {
    model: &'a Model,
    decoder: &'a PackedDecoder,
    jobs: &'a [Job<'a>],
    blocks: usize,
    max_tokens: usize,
    angles: Angles,
    plan: Vec<Stretch>,
    /// Of each stretch, what pools all positions of a sequence through it.
    whole: Vec<Vec<(Layer, Signal)>>,
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
    writing: Vec<Writing<'a>>,
    pool: BufferPool,
}

/// What is kept of a stretch.
struct Computed {
    keys: Arc<Keys>,
    pools: Pools,
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
    /// The normed output of the last block, if text goes on from it.
    normed: Vec<f32>,
}

/// A sequence whose text is being written.
struct Writing<'a> {
    text: Text<'a>,
    /// The last one of the sequence.
    stretch: usize,
    keys: Keys,
    read: Read,
}

impl<'a> Group<'a> {
    fn new(
        model: &'a Model,
        decoder: &'a PackedDecoder,
        jobs: &'a [Job<'a>],
        blocks: usize,
        max_tokens: usize,
    ) -> Self {
        let len = |job: &Job<'_>| job.ids.len() + job.new_tokens();
        let longest = jobs.iter().map(len).max().unwrap_or(0);
        let sequences: Vec<&[TokenId]> = jobs.iter().map(|job| job.ids.as_slice()).collect();
        let plan = plan(&sequences, PASS.min(max_tokens));
        let mut whole: Vec<Vec<(Layer, Signal)>> = vec![Vec::new(); plan.len()];
        let mut behind = vec![Vec::new(); plan.len()];
        // Backwards: whoever comes after a stretch has been seen before it.
        for index in (0..plan.len()).rev() {
            if plan[index].is_last {
                whole[index] = jobs[plan[index].sequence].whole().collect();
            }
            if let Some(before) = plan[index].before {
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
            model,
            decoder,
            jobs,
            blocks,
            max_tokens,
            // All have the frequencies of the longest.
            angles: Angles::new(&model.config, longest, longest),
            computed: plan.iter().map(|_| None).collect(),
            plan,
            whole,
            holders: behind.iter().map(Vec::len).collect(),
            behind,
            ready,
            kept: 0,
            writing: Vec::new(),
            pool: BufferPool::default(),
        }
    }

    fn run(mut self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        let flow = self.go_on(sink);
        // From the ends to the beginnings: keys that hold those before them, and these others, would be dropped in as many calls.
        self.writing.clear();
        while self.computed.pop().is_some() {}
        flow
    }

    fn go_on(&mut self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        loop {
            let stretches = self.next_pass();
            if !stretches.is_empty() {
                self.prefill(&stretches, sink)?;
            } else if !self.writing.is_empty() {
                self.write(sink)?;
            } else {
                return ControlFlow::Continue(());
            }
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

    /// Positions of a stretch for which keys are kept, new tokens included.
    fn positions_kept(&self, index: usize) -> usize {
        let stretch = &self.plan[index];
        match self.jobs[stretch.sequence].new_tokens() {
            0 if stretch.is_last => 0,
            new if stretch.is_last => stretch.positions.len() + new,
            _ => stretch.positions.len(),
        }
    }

    fn prefill(&mut self, stretches: &[usize], sink: &mut Sink<'_>) -> ControlFlow<()> {
        let (decoder, blocks) = (self.decoder, self.blocks);
        let mut keys = Vec::with_capacity(stretches.len());
        let mut pools: Vec<Pools> = Vec::with_capacity(stretches.len());
        for &index in stretches {
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
            let keep = self.positions_kept(index);
            let (capacity, n_blocks) = (keep.max(stretch.positions.len()), if keep > 0 { blocks } else { 1 });
            let before = before.map(|before| Arc::clone(&before.keys));
            keys.push(Keys::new(decoder.key_shape(), before, capacity, n_blocks));
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
                let keep = match is_last {
                    _ if self.whole[index].iter().any(|&(layer, signal)| layer.0 == blocks && is_state(signal)) => {
                        0..len
                    }
                    true => len - 1..len,
                    false => 0..0,
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
                        Signal::State(_) if layer == decoder.config.n_layers => {
                            rows.clone().for_each(|row| pool.add(&decoder.final_norm(row)));
                        }
                        Signal::State(_) => rows.clone().for_each(|row| pool.add(row)),
                    }
                }
                if self.plan[index].is_last
                    && let Some(row) = rows.next_back()
                {
                    reads[span].take(decoder, self.jobs[self.plan[index].sequence].want, 0, layer, row);
                }
            }
            ControlFlow::Continue(())
        };
        decoder.forward(&mut spans, &self.angles, blocks, &mut self.pool, &mut visit);
        let mut begun = Vec::new();
        for ((&index, (mut keys, pools)), read) in stretches.iter().zip(keys.into_iter().zip(pools)).zip(reads) {
            keys.advance(self.plan[index].positions.len());
            if self.plan[index].is_last {
                let job = &self.jobs[self.plan[index].sequence];
                let signals = signals(job, &read, pools);
                let mut steps = Steps::new(job.want, job.head);
                match &job.want.generate {
                    Some(generation) => {
                        let text = Text::new(job, generation, steps, signals);
                        begun.push(Writing { text, stretch: index, keys, read });
                    }
                    None => {
                        drop(keys);
                        self.release(index);
                        steps.read(0, None, &read.states);
                        job.answer(steps, signals, None, sink)?;
                    }
                }
            } else {
                self.computed[index] = Some(Computed { keys: Arc::new(keys), pools });
                // The next one is at the end.
                self.ready.extend(&self.behind[index]);
            }
        }
        self.choose(begun, sink)
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

    /// Writes one more token of each text.
    fn write(&mut self, sink: &mut Sink<'_>) -> ControlFlow<()> {
        let mut writing = mem::take(&mut self.writing);
        writing.chunks_mut(PASS).for_each(|some| self.extend(some));
        self.choose(writing, sink)
    }

    /// Reads what follows the token that was written last, for texts that fit into a pass.
    fn extend(&mut self, writing: &mut [Writing<'a>]) {
        let decoder = self.decoder;
        let mut reads: Vec<Read> = writing.iter().map(|_| Read::default()).collect();
        let wants: Vec<(&Want, usize)> = writing.iter().map(|one| (one.text.job.want, one.text.tokens.len())).collect();
        let mut spans: Vec<Span<'_>> = writing
            .iter_mut()
            .map(|one| Span {
                ids: one.text.tokens.last_chunk::<1>().map_or(&[], |last| last),
                keys: &mut one.keys,
                keep: 0..1,
                entropies: &[],
            })
            .collect();
        let mut visit = |layer: usize, stream: &Stream<'_>| {
            for (span, ((want, step), read)) in wants.iter().zip(&mut reads).enumerate() {
                if let Some(row) = stream.rows(span).next_back() {
                    read.take(decoder, want, *step, layer, row);
                }
            }
            ControlFlow::Continue(())
        };
        decoder.forward(&mut spans, &self.angles, self.blocks, &mut self.pool, &mut visit);
        for (one, read) in writing.iter_mut().zip(reads) {
            one.keys.advance(1);
            one.read = read;
        }
    }

    /// Chooses the next token of each text from what its last pass brought; those that go on are kept.
    fn choose(&mut self, mut writing: Vec<Writing<'a>>, sink: &mut Sink<'_>) -> ControlFlow<()> {
        let mut logits = Vec::new();
        for some in writing.chunks(LOGIT_ROWS) {
            let states: Vec<f32> = some.iter().flat_map(|one| &one.read.normed).copied().collect();
            let all = self.decoder.logits(&states);
            // Chosen chunk by chunk, so that no more rows of logits are there at once.
            logits.extend(some.iter().zip(all.chunks_exact(self.decoder.config.d_vocab.max(1))).map(|(one, row)| {
                let step = one.text.tokens.len();
                let row = self.model.choice_logits(row.to_vec(), step)?;
                Ok(choose(&row, &one.text.generation.sampling, step))
            }));
        }
        for (mut one, token) in writing.drain(..).zip(logits) {
            let finish = match token {
                Err(unscored) => Err(unscored),
                Ok(token) => match one.text.take(token, &self.model.eos, &one.read.states) {
                    None => {
                        self.writing.push(one);
                        continue;
                    }
                    Some(finish) => Ok(finish),
                },
            };
            let Writing { text, stretch, keys, .. } = one;
            drop(keys);
            self.release(stretch);
            match finish {
                Err(unscored) => sink(text.job.index, Outcome::Unscored(unscored))?,
                Ok(finish) => text.answer(finish, self.model, sink)?,
            }
        }
        ControlFlow::Continue(())
    }
}

impl Read {
    /// Takes what `want` asks of the row of the last position at `layer`, which predicts the token of `step`.
    fn take(&mut self, decoder: &PackedDecoder, want: &Want, step: usize, layer: usize, row: &[f32]) {
        let n_layers = decoder.config.n_layers;
        let normed = (layer == n_layers).then(|| decoder.final_norm(row));
        let as_read = || normed.clone().unwrap_or_else(|| row.to_vec());
        if let Some(read) = want.labels.as_ref().filter(|read| step == 0 || read.at != ReadAt::PromptEnd)
            && read.layers.contains(&Layer(layer))
        {
            let state = match read.lens {
                Lens::Normed if normed.is_none() => decoder.final_norm(row),
                _ => as_read(),
            };
            self.states.insert(Layer(layer), state);
        }
        if step == 0 && want.pooled.contains(&(Layer(layer), Pooling::Last)) {
            self.last.push((Layer(layer), as_read()));
        }
        if let (Some(normed), Some(_)) = (normed, &want.generate) {
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
