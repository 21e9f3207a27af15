use std::ops::ControlFlow;

use super::merge::{Pass, merge};
use super::{ItemResult, RunEvent, RunSettings, RunSummary};
use crate::{Backbone, BackboneError, ContractBreach, Error, ItemId, Judge, Outcome, Reason, Request, Verdict};

type Observer<'r, Item> = &'r mut dyn FnMut(RunEvent<Item>) -> ControlFlow<()>;

/// Some items on their way from questions to verdicts.
pub(super) struct Window<'r, 'a, Item> {
    judges: &'r [&'a dyn Judge<Item>],
    settings: &'r RunSettings,
    summary: &'r mut RunSummary,
    observer: Observer<'r, Item>,
    slots: Vec<Slot<Item>>,
    /// Slots before this one are delivered.
    delivered: usize,
    /// Questions for the next round.
    queue: Vec<Question>,
}

struct Slot<Item> {
    id: ItemId,
    /// Taken when the result is delivered.
    item: Option<Item>,
    tracks: Vec<Track>,
}

/// One judge's work on one item.
#[derive(Default)]
struct Track {
    rounds: usize,
    answered: Vec<Outcome>,
    /// The current round.
    pending: Vec<Option<Outcome>>,
    verdict: Option<Verdict>,
}

/// One request, and whose it is.
struct Question {
    slot: usize,
    judge: usize,
    position: usize,
    request: Request,
    /// Not to be merged with others.
    alone: bool,
}

impl<'r, 'a, Item> Window<'r, 'a, Item> {
    pub(super) fn new(
        judges: &'r [&'a dyn Judge<Item>],
        settings: &'r RunSettings,
        items: Vec<(ItemId, Item)>,
        summary: &'r mut RunSummary,
        observer: Observer<'r, Item>,
    ) -> Self {
        let slot =
            |(id, item)| Slot { id, item: Some(item), tracks: judges.iter().map(|_| Track::default()).collect() };
        let slots = items.into_iter().map(slot).collect();
        Self { judges, settings, summary, observer, slots, delivered: 0, queue: Vec::new() }
    }

    pub(super) fn judge(mut self, backbone: &dyn Backbone) -> Result<(), Error> {
        for slot in 0..self.slots.len() {
            for judge in 0..self.judges.len() {
                self.advance(slot, judge)?;
            }
        }
        if self.deliver().is_break() {
            self.summary.cancelled = true;
        }
        while !self.summary.cancelled && !self.queue.is_empty() {
            self.round(backbone)?;
        }
        Ok(())
    }

    /// Puts the queue before the backbone.
    fn round(&mut self, backbone: &dyn Backbone) -> Result<(), Error> {
        let questions = std::mem::take(&mut self.queue);
        let passes = merge(questions.iter().map(|question| (&question.request, question.alone)));
        let requests: Vec<Request> = passes.iter().map(|pass| pass.request.clone()).collect();
        self.summary.progress.requests += questions.iter().filter(|question| !question.alone).count();
        self.summary.progress.passes += requests.len();

        let mut answered = vec![false; requests.len()];
        let mut stopped = None;
        let ended = backbone.run(&requests, &mut |index, outcome| {
            let flow = match (&stopped, answered.get_mut(index)) {
                (Some(Err(_)), _) => return ControlFlow::Break(()), // the first error is the one to tell
                (Some(Ok(())), _) => Err(ContractBreach::CalledAfterBreak.into()),
                (None, None) => Err(ContractBreach::NoSuchRequest { request: index, requests: passes.len() }.into()),
                (None, Some(true)) => Err(ContractBreach::AnsweredTwice { request: index }.into()),
                (None, Some(first)) => {
                    *first = true;
                    self.take(&questions, &passes[index], outcome)
                }
            };
            match flow {
                Ok(ControlFlow::Continue(())) => return ControlFlow::Continue(()),
                Ok(ControlFlow::Break(())) => stopped = Some(Ok(())),
                Err(error) => stopped = Some(Err(error)),
            }
            ControlFlow::Break(())
        });
        if let Some(stopped) = stopped {
            self.summary.cancelled = stopped.is_ok();
            return stopped;
        }
        ended.map_err(|error| self.name_request(error, &questions, &passes))?;
        match answered.iter().position(|answered| !answered) {
            Some(request) => Err(ContractBreach::Unanswered { request, requests: requests.len() }.into()),
            None => Ok(()),
        }
    }

    /// Gives an answer to all who asked.
    fn take(&mut self, questions: &[Question], pass: &Pass, outcome: Outcome) -> Result<ControlFlow<()>, Error> {
        self.summary.progress.passes_answered += 1;
        // Where one judge's layer overflows, another judge who did not ask for that layer still gets its answer.
        let overflowed = matches!(&outcome, Outcome::Unscored(unscored) if unscored.reason == Reason::NonFinite);
        for question in pass.answers.iter().map(|&index| &questions[index]) {
            if overflowed && question.request.want != pass.request.want {
                let request = question.request.clone();
                self.queue.push(Question { request, alone: true, ..*question });
                continue;
            }
            let track = &mut self.slots[question.slot].tracks[question.judge];
            track.pending[question.position] = Some(outcome.clone());
            if track.pending.iter().all(Option::is_some) {
                self.advance(question.slot, question.judge)?;
            }
        }
        if (self.observer)(RunEvent::Progress(self.summary.progress)).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        Ok(self.deliver())
    }

    /// All questions of a judge's round are answered (or none was asked yet): asks more, or decides.
    fn advance(&mut self, slot: usize, judge: usize) -> Result<(), Error> {
        let Slot { id, item, tracks } = &mut self.slots[slot];
        let track = &mut tracks[judge];
        // An item is handed back only after its last verdict, and nothing advances after that.
        let Some(item) = item.as_ref() else { return Ok(()) };
        let fail = |source| Error::Item { judge, id: id.clone(), source: Box::new(source) };
        track.answered.extend(track.pending.drain(..).flatten());
        let asker = self.judges[judge];
        let requests = match track.rounds {
            0 => asker.ask(item),
            _ => asker.follow_up(item, &track.answered),
        }
        .map_err(fail)?;
        track.rounds += 1;
        if requests.is_empty() {
            track.verdict = Some(asker.decide(item, &track.answered).map_err(fail)?);
            return Ok(());
        }
        if track.rounds > self.settings.max_rounds {
            return Err(Error::TooManyRounds { judge, id: id.clone(), rounds: self.settings.max_rounds });
        }
        track.pending = vec![None; requests.len()];
        let question = |(position, request)| Question { slot, judge, position, request, alone: false };
        self.queue.extend(requests.into_iter().enumerate().map(question));
        Ok(())
    }

    /// Hands out results, in order, as far as they are known.
    fn deliver(&mut self) -> ControlFlow<()> {
        while let Some(slot) = self.slots.get_mut(self.delivered) {
            if slot.tracks.iter().any(|track| track.verdict.is_none()) {
                break;
            }
            let Some(item) = slot.item.take() else { break };
            self.delivered += 1;
            self.summary.progress.items_done += 1;
            let (mut verdicts, mut outcomes) = (Vec::new(), Vec::new());
            for (track, tally) in slot.tracks.drain(..).zip(&mut self.summary.judges) {
                verdicts.extend(track.verdict.inspect(|verdict| tally.count(verdict)));
                outcomes.push(track.answered);
            }
            (self.observer)(RunEvent::Item(ItemResult { id: slot.id.clone(), item, verdicts, outcomes }))?;
        }
        ControlFlow::Continue(())
    }

    /// A request that the backbone refused, by the item and the judge it came from.
    fn name_request(&self, error: BackboneError, questions: &[Question], passes: &[Pass]) -> Error {
        let request = match &error {
            BackboneError::Layer { request, .. }
            | BackboneError::Token { request, .. }
            | BackboneError::Request { request, .. } => Some(*request),
            _ => None,
        };
        match request.and_then(|index| passes.get(index)).and_then(|pass| questions.get(*pass.answers.first()?)) {
            Some(Question { slot, judge, .. }) => {
                Error::Item { judge: *judge, id: self.slots[*slot].id.clone(), source: Box::new(error.into()) }
            }
            None => error.into(),
        }
    }
}
