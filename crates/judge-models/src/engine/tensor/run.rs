//! The passes of a group's batches: prompts first, then one token of each text at a time.
//!
//! The driver (`reading/driver.rs`) calls `prefill` and `step` through the trait [`Passes`].
//! `schedule.rs` lists the passes; [`OneBatch`] runs one over a batch, and [`Writing`] holds a batch
//! while its texts go on:
//!
//! ```text
//! prefill   prefixes ─► path: slots that keep their keys, for what comes behind them
//!           next batch ─► pass over [batch, seq] ─► wait ─► next batch's passes are queued ─► take
//!             nothing is written behind it    ─► done
//!             text is written behind it       ─► Writing: slots hold the keys, take has chosen the first tokens
//! step      Writing ─► pass over [batch, 1], each row at its own position ─► next step's pass is queued ─► wait ─► take
//!           ─► done when all texts are over
//! ```
//!
//! Jobs with text and jobs without are in different batches, so that no keys are kept for prompts
//! that are only read. While the host reads what a batch brought, the device runs the next one. At
//! most one batch is being written at a time; `prefill` returns `false` meanwhile. Texts that are
//! over leave the batch when they are a quarter of it.
//!
//! Where all texts of a batch are written greedily, the tokens that the device has chosen are fed
//! without the host: a step is queued before the one before it is waited for. So the device runs one
//! while the host reads the other, and where all texts turn out to be over, one was run in vain.
//! Rows leave only where no step is queued, so none is where they are to leave next.
//!
//! A device whose memory is full has what it lost computed again (`retry.rs`).
//!
//! What waits for a device runs inside [`on_device`]; `take`, which calls code of others, never
//! does.

use std::collections::VecDeque;
use std::mem;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::Ordering;

use burn::tensor::{Tensor, TensorData};
use judge_core::{Layer, request::TokenId};

use super::batched::Batched;
use super::decoder::{Fed, Pass};
use super::fetched::{Fetched, Queued};
use super::host::on_device;
use super::reads::Reads;
use super::room::Watch;
use super::rotation::Rotation;
use super::schedule::{Feeds, Planned};
use super::slots::Slots;
use crate::Error;
use crate::reading::groups::Group;
use crate::reading::jobs::{Brought, Job, Signals};
use crate::reading::next_token::LOGIT_ROWS;
use crate::reading::passes::{Found, Next, Passes, Take};

/// Columns of new tokens that are made together, in steps of padding: few copies of the keys, and
/// little that attention walks over in vain.
const ROOM: usize = 4;

/// Texts that wait to be computed again.
pub(super) struct Parked<'a> {
    /// Where the prefix ends that they are behind; 0 if there is none.
    pub(super) start: usize,
    /// The jobs' places in the group.
    pub(super) members: Vec<usize>,
    /// The jobs.
    pub(super) jobs: Vec<&'a Job<'a>>,
    /// What each has written, the last token not fed yet.
    pub(super) written: Vec<Vec<TokenId>>,
}

/// The passes of the jobs of one group, batch by batch.
pub(super) struct BatchedPasses<'a> {
    /// The decoder and the shapes it is run in.
    pub(super) engine: &'a Batched,
    /// The jobs, and how many blocks they need.
    pub(super) group: &'a Group<'a>,
    /// Passes that are not begun, in their order.
    pub(super) planned: VecDeque<Planned>,
    /// What the prefixes before the next pass have left, the shortest first.
    pub(super) path: Vec<Slots>,
    /// The batch whose prompts are queued on the devices.
    ahead: Option<Prompts<'a>>,
    /// The batch whose texts are being written.
    writing: Option<Writing<'a>>,
    /// Texts that a full device has lost the keys of; they go on before other prompts are fed.
    pub(super) parked: VecDeque<Parked<'a>>,
    /// What has been seen of failures that no wait tells.
    pub(super) watch: Watch,
    /// Whether something was tried again already.
    pub(super) is_again: bool,
}

/// A batch whose prompts are queued.
struct Prompts<'a> {
    /// The batch.
    batch: OneBatch<'a>,
    /// What its pass brings, and what its texts need, if some are written. An error of what was queued, or of a prefix before it.
    queued: Result<(Queued, Option<Text>), Error>,
}

/// What the texts of a batch need.
pub(super) struct Text {
    /// Tables of all positions, prompts and new tokens, on the device of each stage.
    rotations: Vec<Rotation>,
    /// Keys and values of the prompts and of the tokens that were fed.
    slots: Slots,
}

/// A batch of which some texts are not finished.
pub(super) struct Writing<'a> {
    /// The batch, without the rows that have left.
    pub(super) batch: OneBatch<'a>,
    /// What its texts need.
    pub(super) text: Text,
    /// For each row the last token of its text, which is to be fed next; `None` if the text is
    /// over.
    pub(super) tokens: Vec<Option<TokenId>>,
    /// For each row all tokens of its text so far, to feed them again where a device loses their keys.
    pub(super) written: Vec<Vec<TokenId>>,
    /// The step that is queued already, with the tokens that the device has chosen.
    pub(super) ahead: Option<Queued>,
}

impl<'a> BatchedPasses<'a> {
    /// Plans the passes of a group. Batches have at most `max_tokens` positions, or one member.
    pub(super) fn new(engine: &'a Batched, group: &'a Group<'a>, max_tokens: usize) -> Self {
        let members: Vec<usize> = (0..group.jobs.len()).collect();
        let planned = engine.planned(group, &members, engine.room.load(Ordering::Relaxed).min(max_tokens));
        let watch = Watch::new(&engine.decoder);
        let (path, parked) = (Vec::new(), VecDeque::new());
        Self { engine, group, planned, path, ahead: None, writing: None, parked, watch, is_again: false }
    }

    /// Queues the prompts of the next batch, and what they need of prefixes; `None` if no batch is
    /// left. Waits for no device, but in blocks with experts.
    fn queue(&mut self) -> Option<Prompts<'a>> {
        let mut failure = None;
        while let Some(Planned { depth, feeds }) = self.planned.pop_front() {
            self.path.truncate(depth);
            match feeds {
                Feeds::Prefix { sequence, positions } if failure.is_none() => {
                    match on_device(|| Ok(self.prefix(sequence, positions))) {
                        Ok(slots) => self.path.push(slots),
                        Err(error) => failure = Some(error),
                    }
                }
                Feeds::Prefix { .. } => {}
                Feeds::Batch { batch, start, writes } => {
                    let jobs = batch.members.iter().map(|&member| &self.group.jobs[member]).collect();
                    let (members, engine, blocks) = (batch.members, self.engine, self.group.blocks);
                    let batch = OneBatch { engine, members, jobs, start, seq: batch.seq, blocks };
                    let queued = match failure {
                        Some(error) => Err(error),
                        None => on_device(|| Ok(batch.prompts(self.path.last(), writes))),
                    };
                    return Some(Prompts { batch, queued });
                }
            }
        }
        None
    }

    /// Feeds the positions that several sequences have in common, and keeps what they leave.
    fn prefix(&self, sequence: usize, positions: Range<usize>) -> Slots {
        let (decoder, before) = (&self.engine.decoder, self.path.last());
        let job = &self.group.jobs[sequence];
        let mut slots = Slots::of_prefix(decoder.spec().n_layers(), before, positions.len());
        let batch = OneBatch {
            engine: self.engine,
            members: vec![sequence],
            jobs: vec![job],
            start: positions.start,
            seq: positions.len(),
            blocks: self.group.blocks,
        };
        let rotations: Vec<Rotation> = batch.rotations(positions.end);
        let rotations: Vec<Rotation> =
            rotations.iter().map(|rotation| rotation.positions(positions.start, positions.len())).collect();
        // Nothing is read of it, so one row is enough where its keys are made.
        let first = [0];
        let kept = self.group.blocks.checked_sub(1).map(|block| (block, &first[..]));
        let pass = Pass { past: Some(&mut slots), entropies: None, kept };
        batch.pass(&host_ids(job.ids[positions].to_vec(), 1), &rotations, pass, &mut |_, _| {});
        slots.advance();
        slots
    }

    /// What becomes of a batch whose texts are being written, behind a pass and `take`: it goes on if some text is not over.
    ///
    /// # Errors
    /// [`Error::Device`].
    fn go_on(&mut self, mut writing: Writing<'a>) -> Result<(), Error> {
        match writing.shrink() {
            Ok(true) => self.writing = Some(writing),
            Ok(false) => {}
            Err(error) => self.write_again(writing, error)?,
        }
        Ok(())
    }

    /// Feeds parked texts again, all but their last tokens, behind their prefix if they have one. `false` if there are none.
    ///
    /// # Errors
    /// [`Error::Device`].
    fn resume(&mut self) -> Result<bool, Error> {
        let Some(Parked { start, members, jobs, written }) = self.parked.pop_front() else { return Ok(false) };
        let longest = jobs.iter().zip(&written).map(|(job, written)| job.ids.len() + written.len() - 1).max();
        let seq = self.engine.shapes.up(longest.unwrap_or(0) - start);
        let batch = OneBatch { engine: self.engine, members, jobs, start, seq, blocks: self.group.blocks };
        let text = on_device(|| {
            // The path was cleared, so this prefix has none before it.
            let before = (start > 0).then(|| self.prefix(batch.members[0], 0..start));
            Ok(batch.rewritten(before.as_ref(), &written))
        })?;
        let tokens = written.iter().map(|written| written.last().copied()).collect();
        self.writing = Some(Writing { batch, text, tokens, written, ahead: None });
        Ok(true)
    }
}

impl Passes for BatchedPasses<'_> {
    /// Waits for the prompts of the next batch, unless texts are being written. `false` then, and
    /// when no batch is left.
    fn prefill(&mut self, take: &mut Take<'_>) -> Result<bool, Error> {
        if self.writing.is_some() || !self.parked.is_empty() {
            return Ok(false);
        }
        let next = self.ahead.take().or_else(|| self.queue());
        let Some(Prompts { batch, queued }) = next else { return Ok(false) };
        let fetched = queued.and_then(|(queued, text)| Ok((on_device(|| queued.fetch())?, text)));
        let (fetched, text) = match self.watch.checked(fetched) {
            Ok(found) => found,
            Err(error) => return self.plan_again(batch, error).map(|()| true),
        };
        let Some(text) = text else {
            // The device works on while the host reads. A failure of the next batch is not one of this.
            self.ahead = self.queue();
            let found = (0..batch.jobs.len()).map(|row| batch.found(row, &fetched, None)).collect();
            take(found)?;
            return Ok(true);
        };
        let (tokens, written) = (vec![None; batch.jobs.len()], vec![Vec::new(); batch.jobs.len()]);
        let mut writing = Writing { batch, text, tokens, written, ahead: None };
        let all: Vec<usize> = (0..writing.tokens.len()).collect();
        writing.hand_over(&all, &fetched, true, take)?;
        self.go_on(writing)?;
        Ok(true)
    }

    /// Feeds one token to each text of the batch that is being written; `false` if there is none.
    fn step(&mut self, take: &mut Take<'_>) -> Result<bool, Error> {
        let Some(mut writing) = self.writing.take() else { return self.resume() };
        let fetched = writing.step();
        match self.watch.checked(fetched) {
            Ok(fetched) => {
                let rows = writing.live();
                writing.hand_over(&rows, &fetched, false, take)?;
                self.go_on(writing)?;
            }
            Err(error) => self.write_again(writing, error)?,
        }
        Ok(true)
    }
}

impl Writing<'_> {
    /// The rows whose texts are not over.
    fn live(&self) -> Vec<usize> {
        (0..self.tokens.len()).filter(|&row| self.tokens[row].is_some()).collect()
    }

    /// Whether so many texts are over that their rows leave: a quarter of all or more. Keys are copied when
    /// rows leave, and each copy has three quarters of the last one at most.
    fn shrinks(&self) -> bool {
        4 * self.live().len() <= 3 * self.tokens.len()
    }

    /// Lets rows leave whose texts are over, if they are many, and no step is queued in which they are. `false` if no
    /// text is left.
    ///
    /// # Errors
    /// [`Error::Device`].
    fn shrink(&mut self) -> Result<bool, Error> {
        let rows = self.live();
        if rows.is_empty() {
            return Ok(false);
        }
        if self.ahead.is_none() && self.shrinks() {
            on_device(|| {
                self.text.slots.retain(&rows);
                Ok(())
            })?;
            self.batch.jobs = rows.iter().map(|&row| self.batch.jobs[row]).collect();
            self.batch.members = rows.iter().map(|&row| self.batch.members[row]).collect();
            self.written = rows.iter().map(|&row| mem::take(&mut self.written[row])).collect();
            self.tokens.retain(Option::is_some);
        }
        Ok(true)
    }

    /// Hands over what a pass brought of the texts in `rows`, and keeps the tokens that are written
    /// behind them. `is_prompt` says whether the pass fed prompts.
    ///
    /// At most [`LOGIT_ROWS`] rows of logits are copied for `take` at a time.
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
            let found = found.map(|(&row, logits)| self.batch.found(row, fetched, Some((is_prompt, logits)))).collect();
            for (&row, token) in rows.iter().zip(take(found)?) {
                self.tokens[row] = token;
                self.written[row].extend(token);
            }
        }
        Ok(())
    }

    /// Feeds one token of each text: what that brings. Where the device has chosen tokens that some text may go on with,
    /// the step that feeds them is queued before this one is waited for.
    ///
    /// # Errors
    /// [`Error::Device`].
    fn step(&mut self) -> Result<Fetched, Error> {
        let queued = match self.ahead.take() {
            Some(queued) => queued,
            None => {
                // A finished text's row continues with any token: rows do not see one another, and nobody looks at it.
                let last: Vec<TokenId> = self.tokens.iter().map(|token| token.unwrap_or(0)).collect();
                let last = host_ids(last, self.tokens.len());
                on_device(|| Ok(self.queue(&last)))?
            }
        };
        if let Some(chosen) = queued.chosen().filter(|_| self.may_go_on()) {
            // A failure here may be one of this step, where blocks wait, so nothing of this step is taken either.
            self.ahead = Some(on_device(|| Ok(self.queue(&Fed::Chosen(Box::new(chosen)))))?);
        }
        on_device(|| queued.fetch())
    }

    /// Whether a text may go on behind the token that the coming pass brings, so that it is fed: there is room for
    /// one more, or its state is read. Not where rows are to leave first.
    fn may_go_on(&self) -> bool {
        let goes_on = |row: usize| {
            let (job, fed) = (self.batch.jobs[row], self.written[row].len() + 1);
            fed < job.new_tokens() + usize::from(!job.want.reply.is_empty())
        };
        !self.shrinks() && self.live().into_iter().any(goes_on)
    }

    /// Queues a pass over one token of each text.
    fn queue(&mut self, tokens: &Fed) -> Queued {
        let Self { batch, text: Text { rotations, slots }, .. } = self;
        let at = rotations.iter().zip(slots.positions());
        let at: Vec<Rotation> = at.map(|(rotation, positions)| rotation.at_each(&positions)).collect();
        let mut reads = Reads::of_step(&batch.engine.decoder, &batch.jobs, batch.blocks);
        let pass = Pass { past: Some(&mut *slots), ..Pass::default() };
        batch.pass(tokens, &at, pass, &mut |layer, x| reads.visit(layer, x));
        slots.advance();
        reads.queued()
    }
}

/// One batch, and what a pass over it needs.
pub(super) struct OneBatch<'a> {
    /// The decoder.
    engine: &'a Batched,
    /// The jobs' places in the group, one per row.
    pub(super) members: Vec<usize>,
    /// The jobs, one per row.
    pub(super) jobs: Vec<&'a Job<'a>>,
    /// The first position that is fed: behind a prefix, if there is one.
    pub(super) start: usize,
    /// Positions from `start` on that each prompt is padded to.
    seq: usize,
    /// Blocks to run, from the first: those of the group.
    blocks: usize,
}

impl OneBatch<'_> {
    /// Positions that are computed or have room: the prefix before, once, and of all rows prompts, padding and new tokens.
    pub(super) fn positions(&self) -> usize {
        let new = self.jobs.iter().map(|job| job.new_tokens()).max().unwrap_or(0);
        self.start + self.jobs.len() * (self.seq + self.engine.shapes.up(new))
    }

    /// What a pass brought of a row, for the driver. `text` is given where text is written: whether
    /// the pass fed the row's prompt, and the logits that it brought, if any. Signals and scores of
    /// own tokens come with prompts alone.
    fn found<'p>(&self, row: usize, fetched: &Fetched, text: Option<(bool, &'p mut Vec<f32>)>) -> Found<'p> {
        let job = self.jobs[row];
        let is_prompt = text.as_ref().is_none_or(|&(is_prompt, _)| is_prompt);
        let (signals, own, fed) = match is_prompt {
            true => (fetched.signals(row, job), fetched.own(row, &self.jobs), Vec::new()),
            false => (Signals::default(), Vec::new(), fetched.fed(row, job)),
        };
        let next = match text {
            Some((_, logits)) => match fetched.greedy(row, job, usize::from(!is_prompt)) {
                Some(greedy) => Next::Found(greedy),
                None => Next::Logits(logits),
            },
            None => Next::Found(fetched.next(row, job)),
        };
        let brought = Brought { states: fetched.labels(row, job.want), signals, own, fed };
        Found { job: self.members[row], brought, next }
    }

    /// The rotations of positions 0 to `positions - 1` on the device of each stage. Members have
    /// equal frequencies, since they are of one group; they are taken at the longest possible length
    /// of any member.
    fn rotations(&self, positions: usize) -> Vec<Rotation> {
        let len = self.jobs.iter().map(|job| job.ids.len() + job.new_tokens()).max().unwrap_or(0);
        let devices = self.engine.decoder.devices();
        devices
            .iter()
            .map(|device| Rotation::padded(&self.engine.decoder.spec().ropes, len, positions, device))
            .collect()
    }

    /// Queues the prompts behind the prefix `before`. Where text is written behind them, slots keep
    /// their keys and values.
    fn prompts(&self, before: Option<&Slots>, writes: bool) -> (Queued, Option<Text>) {
        let (decoder, shapes) = (&self.engine.decoder, self.engine.shapes);
        let n_layers = decoder.spec().n_layers();
        let new = shapes.up(self.jobs.iter().map(|job| job.new_tokens()).max().unwrap_or(0));
        let rotations = self.rotations(self.start + self.seq + new);
        let lens = || self.jobs.iter().map(|job| job.ids.len()).collect::<Vec<_>>();
        let mut text = writes.then(|| {
            let room = (new, ROOM * shapes.step);
            let slots = Slots::writing(n_layers, before, lens(), self.seq, room, &decoder.devices());
            Text { rotations: rotations.clone(), slots }
        });
        let mut reading = before.filter(|_| !writes).map(|before| Slots::reading(before, lens(), self.seq));
        let ids = self.jobs.iter().flat_map(|job| {
            let new = &job.ids[self.start..];
            let padding = std::iter::repeat_n(0, self.seq - new.len()); // the plan pads to at least the longest
            new.iter().copied().chain(padding)
        });
        let rotations: Vec<Rotation> =
            rotations.iter().map(|rotation| rotation.positions(self.start, self.seq)).collect();
        let mut reads = Reads::of_prompts(decoder, &self.jobs, self.blocks, (self.start, self.seq), writes);
        let mut entropies = reads.entropies();
        let kept = reads.kept();
        let past = match &mut text {
            Some(text) => Some(&mut text.slots),
            None => reading.as_mut(),
        };
        let kept = kept.as_ref().map(|(block, rows)| (*block, rows.as_slice()));
        let pass = Pass { past, entropies: entropies.as_mut(), kept };
        self.pass(&host_ids(ids.collect(), self.jobs.len()), &rotations, pass, &mut |layer, x| reads.visit(layer, x));
        if let Some(entropies) = entropies {
            reads.take(entropies);
        }
        if let Some(text) = &mut text {
            text.slots.advance();
        }
        (reads.queued(), text)
    }

    /// Queues prompts behind the prefix `before` and what is written behind each, but for the last token, which is to be fed next.
    /// Nothing is read of them.
    fn rewritten(&self, before: Option<&Slots>, written: &[Vec<TokenId>]) -> Text {
        let (decoder, shapes) = (&self.engine.decoder, self.engine.shapes);
        let fed: Vec<&[TokenId]> = written.iter().map(|written| &written[..written.len().saturating_sub(1)]).collect();
        let lens: Vec<usize> = self.jobs.iter().zip(&fed).map(|(job, fed)| job.ids.len() + fed.len()).collect();
        let left = self.jobs.iter().zip(&fed).map(|(job, fed)| job.new_tokens().saturating_sub(fed.len()));
        let new = shapes.up(left.max().unwrap_or(0));
        let rotations = self.rotations(self.start + self.seq + new);
        let room = (new, ROOM * shapes.step);
        let ids = self.jobs.iter().zip(&fed).zip(&lens).flat_map(|((job, fed), len)| {
            let padding = std::iter::repeat_n(0, self.start + self.seq - len);
            job.ids[self.start..].iter().chain(*fed).copied().chain(padding)
        });
        let ids = host_ids(ids.collect(), self.jobs.len());
        let n_layers = decoder.spec().n_layers();
        let mut slots = Slots::writing(n_layers, before, lens, self.seq, room, &decoder.devices());
        let at: Vec<Rotation> = rotations.iter().map(|rotation| rotation.positions(self.start, self.seq)).collect();
        // As of a prefix, one row is enough where keys are made.
        let first = [0];
        let kept = self.blocks.checked_sub(1).map(|block| (block, &first[..]));
        let pass = Pass { past: Some(&mut slots), entropies: None, kept };
        self.pass(&ids, &at, pass, &mut |_, _| {});
        slots.advance();
        Text { rotations, slots }
    }

    /// Queues one pass over tokens, `[rows, seq]` with their padding, through the blocks of the group.
    fn pass(&self, tokens: &Fed, rotations: &[Rotation], pass: Pass<'_>, visit: &mut dyn FnMut(Layer, &Tensor<3>)) {
        #[cfg(test)]
        super::faults::pass(tokens.dims());
        self.engine.decoder.forward(tokens, rotations, pass, &mut |layer, x| {
            visit(Layer(layer), x);
            if layer < self.blocks { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    }
}

/// Tokens of `rows` sequences, as many of each, row by row.
fn host_ids(ids: Vec<TokenId>, rows: usize) -> Fed {
    let seq = ids.len() / rows.max(1);
    let ids: Vec<i32> = ids.into_iter().map(TokenId::cast_signed).collect();
    Fed::Host(TensorData::new(ids, [rows, seq]))
}
