//! The passes of batches: prompts, and one token of each text at a time.

use std::ops::ControlFlow;

use burn::tensor::{Tensor, TensorData};
use judge_core::{Layer, TokenId};

use super::Batched;
use super::host::on_device;
use super::past::Past;
use super::plan::{Batch, plan};
use super::reads::{Fetched, Reads};
use super::rotation::Rotation;
use super::slots::Slots;
use crate::Error;
use crate::reading::groups::Group;
use crate::reading::jobs::{Brought, Job, Signals};
use crate::reading::next_token::LOGIT_ROWS;
use crate::reading::passes::{Found, Next, Passes, Take};

/// The passes of some sequences, batch by batch.
pub(super) struct BatchedPasses<'a> {
    engine: &'a Batched,
    group: &'a Group<'a>,
    /// What is not begun, the next one at the end, each with whether text is written behind its prompts.
    batches: Vec<(Batch, bool)>,
    writing: Option<Writing<'a>>,
}

/// A batch of which some texts are not finished.
struct Writing<'a> {
    passes: OneBatch<'a>,
    rotations: Vec<Rotation>,
    slots: Slots,
    /// The head in f32. Widened once: it may be gigabytes, which each token would read and write anew.
    head: Tensor<2>,
    /// The last token of the text in each row that goes on.
    tokens: Vec<Option<TokenId>>,
}

impl<'a> BatchedPasses<'a> {
    /// Batches have at most `max_tokens` positions, or one member.
    pub(super) fn new(engine: &'a Batched, group: &'a Group<'a>, max_tokens: usize) -> Self {
        let (writing, reading): (Vec<usize>, Vec<usize>) =
            (0..group.jobs.len()).partition(|&job| group.jobs[job].want.generate.is_some());
        let mut batches = Vec::new();
        for (jobs, writes) in [(reading, false), (writing, true)] {
            let len = |&job: &usize| (group.jobs[job].ids.len(), group.jobs[job].new_tokens());
            let lens: Vec<(usize, usize)> = jobs.iter().map(len).collect();
            for mut batch in plan(&lens, engine.shapes, max_tokens) {
                batch.members.iter_mut().for_each(|member| *member = jobs[*member]);
                batches.push((batch, writes));
            }
        }
        batches.reverse();
        Self { engine, group, batches, writing: None }
    }
}

impl Passes for BatchedPasses<'_> {
    fn prefill(&mut self, take: &mut Take<'_>) -> Result<bool, Error> {
        if self.writing.is_some() {
            return Ok(false);
        }
        let Some((batch, writes)) = self.batches.pop() else { return Ok(false) };
        let jobs: Vec<&Job<'_>> = batch.members.iter().map(|&member| &self.group.jobs[member]).collect();
        let passes = OneBatch { engine: self.engine, jobs, batch, blocks: self.group.blocks };
        let rotations = on_device(|| Ok(passes.rotations()))?;
        if !writes {
            let fetched = on_device(|| passes.prefill(&rotations, None))?;
            let found = (0..passes.jobs.len()).map(|row| passes.found(row, &fetched, None)).collect();
            take(found)?;
            return Ok(true);
        }
        let lens = passes.jobs.iter().map(|job| job.ids.len()).collect();
        let mut slots = Slots::new(self.engine.decoder.spec().n_layers(), lens, passes.batch.seq, passes.batch.new);
        let head = on_device(|| Ok(self.engine.decoder.wide_head()))?;
        let fetched = on_device(|| passes.prefill(&rotations, Some((&mut slots, head.clone()))))?;
        let tokens = vec![None; passes.jobs.len()];
        let mut writing = Writing { passes, rotations, slots, head, tokens };
        let all: Vec<usize> = (0..writing.tokens.len()).collect();
        writing.hand_over(&all, &fetched, true, take)?;
        self.writing = Some(writing).filter(Writing::goes_on);
        Ok(true)
    }

    fn step(&mut self, take: &mut Take<'_>) -> Result<bool, Error> {
        let Some(mut writing) = self.writing.take() else { return Ok(false) };
        writing.step(take)?;
        self.writing = Some(writing).filter(Writing::goes_on);
        Ok(true)
    }
}

impl Writing<'_> {
    fn goes_on(&self) -> bool {
        self.tokens.iter().any(Option::is_some)
    }

    /// Hands over what a pass brought of the texts in some rows, and keeps what is written behind them.
    fn hand_over(
        &mut self,
        rows: &[usize],
        fetched: &Fetched,
        is_prompt: bool,
        take: &mut Take<'_>,
    ) -> Result<(), Error> {
        for rows in rows.chunks(LOGIT_ROWS) {
            let mut logits: Vec<Vec<f32>> = rows.iter().map(|&row| fetched.logits(row).to_vec()).collect();
            let found = rows.iter().zip(&mut logits);
            let found =
                found.map(|(&row, logits)| self.passes.found(row, fetched, Some((is_prompt, logits)))).collect();
            for (&row, token) in rows.iter().zip(take(found)?) {
                self.tokens[row] = token;
            }
        }
        Ok(())
    }

    /// Feeds one token of each text.
    fn step(&mut self, take: &mut Take<'_>) -> Result<(), Error> {
        // A finished text's row goes on with any token: rows do not see one another, and nobody looks at it.
        let last: Vec<TokenId> = self.tokens.iter().map(|token| token.unwrap_or(0)).collect();
        let rows: Vec<usize> = (0..self.tokens.len()).filter(|&row| self.tokens[row].is_some()).collect();
        let positions = self.slots.positions();
        let fetched = on_device(|| {
            let at: Vec<Rotation> = self.rotations.iter().map(|rotation| rotation.at_each(&positions)).collect();
            let reads = Reads::of_step(&self.passes.engine.decoder, &self.passes.jobs, self.head.clone());
            self.passes.pass(last.into_iter(), 1, &at, Some(&mut self.slots), reads)
        })?;
        self.slots.advance();
        self.hand_over(&rows, &fetched, false, take)
    }
}

/// One batch.
struct OneBatch<'a> {
    engine: &'a Batched,
    /// One per row.
    jobs: Vec<&'a Job<'a>>,
    batch: Batch,
    blocks: usize,
}

impl OneBatch<'_> {
    /// What a pass brought of a row; where text is written, whether the pass fed its prompt, and the logits that it brought.
    fn found<'p>(&self, row: usize, fetched: &Fetched, text: Option<(bool, &'p mut Vec<f32>)>) -> Found<'p> {
        let job = self.jobs[row];
        let is_prompt = text.as_ref().is_none_or(|&(is_prompt, _)| is_prompt);
        let (signals, own) = match is_prompt {
            true => (fetched.signals(row, job), fetched.own(row, &self.jobs)),
            false => (Signals::default(), Vec::new()),
        };
        let next = match text {
            Some((_, logits)) => Next::Logits(logits),
            None => Next::Some(fetched.next(row, job)),
        };
        let brought = Brought { states: fetched.states(row, job.want), signals, own };
        Found { job: self.batch.members[row], brought, next }
    }

    /// The rotation of all positions, padding included, on the device of each stage. All members have the frequencies of the longest.
    fn rotations(&self) -> Vec<Rotation> {
        let len = self.jobs.iter().map(|job| job.ids.len() + job.new_tokens()).max().unwrap_or(0);
        let positions = self.batch.seq + self.batch.new;
        let devices = self.engine.decoder.devices();
        devices
            .iter()
            .map(|device| Rotation::padded(&self.engine.decoder.spec().ropes, len, positions, device))
            .collect()
    }

    /// Feeds the prompts. Where text is written behind them, their keys are kept, and the head in f32 gives the first logits.
    fn prefill(&self, rotations: &[Rotation], text: Option<(&mut Slots, Tensor<2>)>) -> Result<Fetched, Error> {
        let seq = self.batch.seq;
        let ids = self.jobs.iter().flat_map(|job| {
            let padding = std::iter::repeat_n(0, seq - job.ids.len()); // the plan pads to at least the longest
            job.ids.iter().copied().chain(padding)
        });
        let (slots, head) = text.unzip();
        let reads = Reads::of_prompts(&self.engine.decoder, &self.jobs, seq, head);
        let rotations: Vec<Rotation> = rotations.iter().map(|rotation| rotation.positions(0, seq)).collect();
        match slots {
            Some(slots) => {
                let fetched = self.pass(ids, seq, &rotations, Some(&mut *slots), reads);
                slots.advance();
                fetched
            }
            None => self.pass(ids, seq, &rotations, None, reads),
        }
    }

    /// One pass over `[batch, seq]` tokens, through no block above the highest that is wanted.
    fn pass(
        &self,
        ids: impl Iterator<Item = TokenId>,
        seq: usize,
        rotations: &[Rotation],
        slots: Option<&mut Slots>,
        mut reads: Reads<'_>,
    ) -> Result<Fetched, Error> {
        let ids: Vec<i32> = ids.map(TokenId::cast_signed).collect();
        let tokens = TensorData::new(ids, [self.jobs.len(), seq]);
        let past = slots.map(|slots| slots as &mut dyn Past);
        let mut entropies = reads.entropies();
        self.engine.decoder.forward(tokens, rotations, past, entropies.as_mut(), &mut |layer, x| {
            reads.visit(Layer(layer), x);
            if layer < self.blocks { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        if let Some(entropies) = entropies {
            reads.take(entropies);
        }
        reads.finish()
    }
}
