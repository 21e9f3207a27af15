//! The passes of a group's batches: prompts first, then one token of each text at a time.
//!
//! The driver (`reading/driver.rs`) calls `prefill` and `step` through the trait [`Passes`].
//! `plan.rs` cuts the group into batches; [`OneBatch`] runs a pass of one, and [`Writing`] holds a
//! batch while its texts go on:
//!
//! ```text
//! prefill   next batch ─► rotations ─► pass over [batch, seq] ─► take
//!             nothing is written behind it    ─► done
//!             text is written behind it       ─► Writing: slots hold the keys, take has chosen the first tokens
//! step      Writing ─► pass over [batch, 1], each row at its own position ─► take ─► done when all texts are over
//! ```
//!
//! Jobs with text and jobs without are in different batches, so that no keys are kept for prompts
//! that are only read. At most one batch is being written at a time; `prefill` returns `false`
//! meanwhile. All texts of a batch go on together until the longest ends.
//!
//! What waits for a device runs inside [`on_device`]; `take`, which calls code of others, never
//! does.

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

/// The passes of the jobs of one group, batch by batch.
pub(super) struct BatchedPasses<'a> {
    /// The decoder and the shapes it is run in.
    engine: &'a Batched,
    /// The jobs, and how many blocks they need.
    group: &'a Group<'a>,
    /// Batches that are not begun, the next one at the end, each with whether text is written
    /// behind its prompts. Their members are places in the group.
    batches: Vec<(Batch, bool)>,
    /// The batch whose texts are being written.
    writing: Option<Writing<'a>>,
}

/// A batch of which some texts are not finished.
struct Writing<'a> {
    /// The batch.
    passes: OneBatch<'a>,
    /// Tables of all positions, prompts and new tokens, on the device of each stage.
    rotations: Vec<Rotation>,
    /// Keys and values of the prompts and of the tokens that were fed.
    slots: Slots,
    /// The head in f32, `[d_vocab, d_model]`. Widened once: it may be gigabytes, which each token
    /// would read and write anew.
    head: Tensor<2>,
    /// For each row the last token of its text, which is to be fed next; `None` if the text is
    /// over.
    tokens: Vec<Option<TokenId>>,
}

impl<'a> BatchedPasses<'a> {
    /// Plans the passes of a group. Batches have at most `max_tokens` positions, or one member.
    /// Those that only read come before those that write.
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
    /// Runs the prompts of the next batch, unless texts are being written. `false` then, and when
    /// no batch is left.
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

    /// Feeds one token to each text of the batch that is being written; `false` if there is none.
    fn step(&mut self, take: &mut Take<'_>) -> Result<bool, Error> {
        let Some(mut writing) = self.writing.take() else { return Ok(false) };
        writing.step(take)?;
        self.writing = Some(writing).filter(Writing::goes_on);
        Ok(true)
    }
}

impl Writing<'_> {
    /// Whether some text is not over.
    fn goes_on(&self) -> bool {
        self.tokens.iter().any(Option::is_some)
    }

    /// Hands over what a pass brought of the texts in `rows`, and keeps the tokens that are written
    /// behind them. `is_prompt` says whether the pass fed prompts.
    ///
    /// At most [`LOGIT_ROWS`] rows of logits are copied for `take` at a time.
    ///
    /// # Errors
    /// Those of `take`.
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

    /// Feeds one token of each text, and hands over what it brings.
    ///
    /// # Errors
    /// Those of the device and of `take`.
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

/// One batch, and what a pass over it needs.
struct OneBatch<'a> {
    /// The decoder.
    engine: &'a Batched,
    /// One per row, in the order of the batch's members.
    jobs: Vec<&'a Job<'a>>,
    /// Members and shape.
    batch: Batch,
    /// Blocks to run, from the first: those of the group.
    blocks: usize,
}

impl OneBatch<'_> {
    /// What a pass brought of a row, for the driver. `text` is given where text is written: whether
    /// the pass fed the row's prompt, and the logits that it brought. Signals and scores of own
    /// tokens come with prompts alone.
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

    /// The rotation of all positions, padding and room for new tokens included, on the device of
    /// each stage. Members have equal frequencies, since they are of one group; they are taken at
    /// the longest possible length of any member.
    fn rotations(&self) -> Vec<Rotation> {
        let len = self.jobs.iter().map(|job| job.ids.len() + job.new_tokens()).max().unwrap_or(0);
        let positions = self.batch.seq + self.batch.new;
        let devices = self.engine.decoder.devices();
        devices
            .iter()
            .map(|device| Rotation::padded(&self.engine.decoder.spec().ropes, len, positions, device))
            .collect()
    }

    /// Feeds the prompts. `text` is given where text is written behind them: `slots` then keep keys
    /// and values, and the head in f32 gives the first logits.
    ///
    /// # Errors
    /// [`Error::Device`].
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
    /// `ids` are the tokens row by row, padding included.
    ///
    /// # Errors
    /// [`Error::Device`].
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
