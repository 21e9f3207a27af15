//! Answers requests batch by batch.

use std::ops::ControlFlow;

use burn::tensor::{Int, Tensor, TensorData};
use judge_core::{Layer, Request, TokenId};

use super::Batched;
use super::plan::{Batch, plan};
use super::reads::{Fetched, Reads};
use super::slots::Slots;
use crate::Error;
use crate::answers::{Answers, Sink};
use crate::cache::Past;
use crate::jobs::{self, Job, Scores, Text};
use crate::labels::{Heads, Steps};
use crate::model::Model;
use crate::next_token::NextToken;
use crate::rope::Rotation;

/// Answers each request once, as soon as it is known. After [`ControlFlow::Break`] nothing more is begun. Batches have at most
/// `max_tokens` positions, unless one sequence alone has more.
pub(crate) fn run(
    model: &Model,
    engine: &Batched,
    requests: &[Request],
    heads: &Heads<'_>,
    max_tokens: usize,
    sink: &mut Sink<'_>,
) -> Result<(), Error> {
    let mut answers = Answers::new(sink);
    let ControlFlow::Continue(groups) = jobs::groups(model, requests, heads, &mut answers)? else { return Ok(()) };
    for group in groups {
        let blocks = group.blocks;
        let (writing, reading): (Vec<_>, Vec<_>) = group.jobs.iter().partition(|job| job.want.generate.is_some());
        for (jobs, writes) in [(reading, false), (writing, true)] {
            let lens: Vec<(usize, usize)> = jobs.iter().map(|job| (job.ids.len(), job.new_tokens())).collect();
            for batch in plan(&lens, engine.shapes, max_tokens) {
                let members: Vec<&Job<'_>> = batch.members.iter().map(|&member| jobs[member]).collect();
                let pass = Passes { model, engine, jobs: &members, batch: &batch, blocks };
                let flow = if writes { pass.write(&mut answers)? } else { pass.read(&mut answers)? };
                if flow.is_break() {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// The passes of one batch.
struct Passes<'a> {
    model: &'a Model,
    engine: &'a Batched,
    /// One per row.
    jobs: &'a [&'a Job<'a>],
    batch: &'a Batch,
    blocks: usize,
}

impl Passes<'_> {
    /// Reads prompts that nothing is written behind.
    fn read(&self, answers: &mut Answers<'_>) -> Result<ControlFlow<()>, Error> {
        let fetched = self.prefill(&self.rotations(), None)?;
        for (row, job) in self.jobs.iter().enumerate() {
            let next = fetched.next(row, job);
            let mut steps = Steps::new(job.want, job.heads, self.model.config.n_layers);
            steps.read(0, None, &fetched.states(row, job.want), Some(&next));
            let scores = Scores { own: fetched.own(row, self.jobs), ends: job.score_ends(&next) };
            if answers.take(job, job.part(steps, fetched.signals(row, job), scores, None)).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads prompts and writes behind them, one token of each text per pass, until the last text is finished.
    fn write(&self, answers: &mut Answers<'_>) -> Result<ControlFlow<()>, Error> {
        let rotations = self.rotations();
        let lens = self.jobs.iter().map(|job| job.ids.len()).collect();
        let mut slots = Slots::new(self.model.config.n_layers, lens, self.batch.seq, self.batch.new);
        // Widened once: it may be gigabytes, which each token would read and write anew.
        let head = self.engine.decoder.wide_head();
        let mut fetched = self.prefill(&rotations, Some((&mut slots, head.clone())))?;
        let mut texts: Vec<Option<Text<'_>>> = self
            .jobs
            .iter()
            .enumerate()
            .map(|(row, job)| {
                let steps = Steps::new(job.want, job.heads, self.model.config.n_layers);
                let generation = job.want.generate.as_ref()?;
                let scores = Scores { own: fetched.own(row, self.jobs), ends: Vec::new() };
                Some(Text::new(job, generation, steps, fetched.signals(row, job), scores))
            })
            .collect();
        loop {
            for (row, place) in texts.iter_mut().enumerate() {
                let Some(text) = place.take() else { continue };
                if self.choose(text, row, &fetched, place, answers).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if texts.iter().all(Option::is_none) {
                return Ok(ControlFlow::Continue(()));
            }
            // A finished text's row goes on with any token: rows do not see one another, and nobody looks at it.
            let last = texts.iter().map(|text| text.as_ref().and_then(|text| text.tokens.last().copied()).unwrap_or(0));
            let positions = slots.positions();
            let at: Vec<Rotation> = rotations.iter().map(|rotation| rotation.at_each(&positions)).collect();
            let reads = Reads::of_step(&self.engine.decoder, self.jobs, head.clone());
            fetched = self.pass(last, 1, &at, Some(&mut slots), reads)?;
            slots.advance();
        }
    }

    /// Chooses the next token of a text; puts it back into its place if it goes on, answers it if not.
    fn choose<'t>(
        &self,
        mut text: Text<'t>,
        row: usize,
        fetched: &Fetched,
        place: &mut Option<Text<'t>>,
        answers: &mut Answers<'_>,
    ) -> ControlFlow<()> {
        let job = text.job;
        let mut logits = fetched.logits(row).to_vec();
        let place_in_text = format_args!("step {}", text.tokens.len());
        let next = NextToken::new(&mut logits, self.model.config.final_soft_cap, place_in_text);
        let finish = next.map(|next| text.write(self.model, &fetched.states(row, job.want), &next));
        match finish.transpose() {
            Some(finish) => answers.take(job, finish.and_then(|finish| text.finish(finish, self.model))),
            None => {
                *place = Some(text);
                ControlFlow::Continue(())
            }
        }
    }

    /// The rotation of all positions, padding included, on the device of each stage. All members have the frequencies of the longest.
    fn rotations(&self) -> Vec<Rotation> {
        let len = self.jobs.iter().map(|job| job.ids.len() + job.new_tokens()).max().unwrap_or(0);
        let positions = self.batch.seq + self.batch.new;
        let devices = self.engine.decoder.devices();
        devices.iter().map(|device| Rotation::padded(&self.model.config.rope, len, positions, device)).collect()
    }

    /// Feeds the prompts. Where text is written behind them, their keys are kept, and the head in f32 gives the first logits.
    fn prefill(&self, rotations: &[Rotation], text: Option<(&mut Slots, Tensor<2>)>) -> Result<Fetched, Error> {
        let seq = self.batch.seq;
        let ids = self.jobs.iter().flat_map(|job| {
            let padding = std::iter::repeat_n(0, seq - job.ids.len()); // the plan pads to at least the longest
            job.ids.iter().copied().chain(padding)
        });
        let (slots, head) = text.unzip();
        let reads = Reads::of_prompts(&self.engine.decoder, self.jobs, seq, head);
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
        let data = TensorData::new(ids, [self.jobs.len(), seq]);
        let tokens = Tensor::<2, Int>::from_data(data, &self.engine.decoder.device());
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
