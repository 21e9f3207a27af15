use std::collections::{HashSet, VecDeque};
use std::error::Error as StdError;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::event::{ItemResult, RunEvent, RunSettings, RunSummary, Tally};
use super::pass::{Pass, Question, Waiting, cut};
use crate::{
    Error, ItemId, Judge, JudgeError, Outcome, Request, Rounds, Score, TextModel, Verdict,
    model::{BackboneError, Exchange},
    panicked,
    testing::ContractBreach,
};

type BoxError = Box<dyn StdError + Send + Sync>;
type Observer<'r, Item> = &'r mut dyn FnMut(RunEvent<Item>) -> Result<ControlFlow<()>, BoxError>;

/// A run while the model works: items on their way from the iterator to their verdicts.
pub(super) struct Flight<'r, 'a, Item> {
    judges: &'r [&'a dyn Judge<Item>],
    settings: &'r RunSettings,
    items: &'r mut dyn Supply<Item>,
    observer: Observer<'r, Item>,
    summary: RunSummary,
    seen: HashSet<[u8; 16]>,
    /// Open items, and places of delivered ones behind an open one. The first is number `first` of the run.
    slots: VecDeque<Option<Slot<Item>>>,
    first: usize,
    /// Open items among the slots.
    open: usize,
    /// Items before this one are delivered, where results come in order.
    next: usize,
    waiting: Waiting,
    /// Passes that the model has taken, with the source of their items; the first is number `first_pass` of the run. Answered ones leave a gap.
    taken: VecDeque<Option<(u64, Pass)>>,
    first_pass: usize,
    /// Why no more items come although the iterator may have some.
    source: Source,
    /// How the run ends before the items do.
    stopped: Option<Stop>,
    /// Panics of the model since its last answer.
    panics: usize,
}

/// So many panics of a model without an answer between them, and it does not work.
const MOST_PANICS: usize = 3;

/// Where the items of a run come from.
pub(super) trait Supply<Item> {
    /// The next item. If `idle`, nothing is under way and no other event can come before one:
    /// then it waits, and never says [`Supplied::NoneYet`].
    fn next(&mut self, idle: bool) -> Supplied<Item>;

    /// Whether items are of several sources, which take turns, and each is taken as soon as it is there.
    fn is_shared(&self) -> bool {
        false
    }

    /// The items that nobody waits for any more, each told once.
    fn abandoned(&mut self) -> Vec<ItemId> {
        Vec::new()
    }

    /// Takes note of a panic over an item, which is no longer judged. If not, the panic goes on.
    fn panicked(&mut self, _id: &ItemId, _message: &str) -> bool {
        false
    }
}

/// What a [`Supply`] has.
pub(super) enum Supplied<Item> {
    /// An item of a source.
    Item(ItemId, Item, u64),
    /// None now; there may be one later.
    NoneYet,
    Ended,
    Failed(BoxError),
}

impl<Item, I: Iterator<Item = Result<(ItemId, Item), BoxError>>> Supply<Item> for I {
    fn next(&mut self, _idle: bool) -> Supplied<Item> {
        match Iterator::next(self) {
            Some(Ok((id, item))) => Supplied::Item(id, item, 0),
            Some(Err(error)) => Supplied::Failed(error),
            None => Supplied::Ended,
        }
    }
}

enum Source {
    Open,
    Ended,
    Failed(Error),
}

enum Stop {
    Cancelled,
    Failed(Error),
}

struct Slot<Item> {
    id: ItemId,
    item: Item,
    source: u64,
    tracks: Vec<Track>,
}

/// What a judge says once its requests are answered.
enum Step {
    Asks(Vec<Request>),
    Decides(Score),
}

/// One judge's work on one item.
#[derive(Default)]
struct Track {
    rounds: Vec<Vec<Outcome>>,
    /// The current round.
    pending: Vec<Option<Outcome>>,
    asked: usize,
    verdict: Option<Verdict>,
}

impl<'r, 'a, Item> Flight<'r, 'a, Item> {
    pub(super) fn new(
        judges: &'r [&'a dyn Judge<Item>],
        settings: &'r RunSettings,
        items: &'r mut dyn Supply<Item>,
        observer: Observer<'r, Item>,
    ) -> Self {
        let waiting = if items.is_shared() { Waiting::in_turns() } else { Waiting::default() };
        let tallies = judges.iter().map(|judge| Tally::new(judge.name())).collect();
        Self {
            judges,
            settings,
            items,
            observer,
            summary: RunSummary { judges: tallies, ..RunSummary::default() },
            seen: HashSet::new(),
            slots: VecDeque::new(),
            first: 0,
            open: 0,
            next: 0,
            waiting,
            taken: VecDeque::new(),
            first_pass: 0,
            source: Source::Open,
            stopped: None,
            panics: 0,
        }
    }

    /// The run's result, once the model has said that it is done.
    pub(super) fn finish(
        mut self,
        served: Result<(), BackboneError>,
        model: &dyn TextModel,
    ) -> Result<RunSummary, Error> {
        match self.stopped.take() {
            Some(Stop::Failed(error)) => return Err(error),
            Some(Stop::Cancelled) => {
                self.summary.cancelled = true;
                return Ok(self.summary);
            }
            None => {}
        }
        served.map_err(|error| self.name_request(error, model))?;
        let unanswered = self.taken.iter().position(Option::is_some).map(|place| self.first_pass + place);
        if let Some(request) = unanswered {
            let requests = self.first_pass + self.taken.len();
            return Err(ContractBreach::Unanswered { request, requests }.into());
        }
        if self.waiting.len() > 0 || matches!(self.source, Source::Open) {
            return Err(ContractBreach::EndedEarly.into());
        }
        match self.source {
            Source::Failed(error) => Err(error),
            _ => Ok(self.summary),
        }
    }

    /// Goes on after a panic of the model, which has lost what it had taken: the items of that are no longer judged. Says no where the
    /// items do not allow for it, or where it is not the first panic in a row.
    pub(super) fn outlives(&mut self, message: &str) -> bool {
        self.panics += 1;
        if self.stopped.is_some() || !self.items.is_shared() || self.panics >= MOST_PANICS || self.taken.is_empty() {
            return false;
        }
        let lost: Vec<usize> =
            self.taken.drain(..).flatten().flat_map(|(_, pass)| pass.questions).map(|question| question.item).collect();
        self.first_pass = 0; // the model counts anew
        self.waiting.end_turn();
        lost.into_iter().all(|item| self.lose(item, message))
    }

    /// No longer judges an item, because of a panic. Says whether the items allow for it.
    fn lose(&mut self, number: usize, message: &str) -> bool {
        let Some(slot) = self.discard(number, |_| true) else { return true };
        self.waiting.retain(|item| item != number);
        self.items.panicked(&slot.id, message)
    }

    /// No longer judges what nobody waits for.
    fn give_up_abandoned(&mut self) {
        let mut gone: HashSet<ItemId> = self.items.abandoned().into_iter().collect();
        if gone.is_empty() {
            return;
        }
        let open = self.slots.iter().enumerate().filter_map(|(place, slot)| Some((place, &slot.as_ref()?.id)));
        let numbers: Vec<usize> =
            open.filter_map(|(place, id)| gone.remove(id).then_some(self.first + place)).collect();
        for &number in &numbers {
            self.discard(number, |_| true);
        }
        self.waiting.retain(|item| !numbers.contains(&item));
    }

    /// Removes an open item if it meets the condition.
    fn discard(&mut self, number: usize, condition: impl Fn(&mut Slot<Item>) -> bool) -> Option<Slot<Item>> {
        let slot = self.slots.get_mut(number.checked_sub(self.first)?)?.take_if(condition)?;
        self.open -= 1;
        while self.slots.front().is_some_and(Option::is_none) {
            self.slots.pop_front();
            self.first += 1;
        }
        Some(slot)
    }

    /// Takes items until `most` passes wait, the window is full or the items end; of several sources, all items that are there.
    fn fill(&mut self, most: usize) -> Result<ControlFlow<()>, Error> {
        let most = if self.items.is_shared() { usize::MAX } else { most };
        while self.waiting.len() < most && self.open < self.settings.window.max(1) {
            if !matches!(self.source, Source::Open) {
                break;
            }
            // Nothing is under way: there is nothing else to do than to wait for an item.
            let idle = self.waiting.len() == 0 && self.taken.is_empty();
            let (id, item, source) = match self.items.next(idle) {
                Supplied::Item(id, item, source) => (id, item, source),
                Supplied::NoneYet => break,
                Supplied::Ended => {
                    self.source = Source::Ended;
                    break;
                }
                Supplied::Failed(source) => {
                    self.source = Source::Failed(Error::Items { source });
                    break;
                }
            };
            if self.settings.unique_ids && !self.seen.insert(digest(&id)) {
                self.source = Source::Failed(Error::DuplicateId { id });
                break;
            }
            self.summary.progress.items_read += 1;
            let tracks = self.judges.iter().map(|_| Track::default()).collect();
            self.slots.push_back(Some(Slot { id, item, source, tracks }));
            self.open += 1;
            let number = self.first + self.slots.len() - 1;
            for judge in 0..self.judges.len() {
                self.advance(number, judge)?;
            }
            if self.deliver(number)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// All requests of a judge's round are answered (or none was made yet): asks more, or decides.
    fn advance(&mut self, number: usize, judge: usize) -> Result<(), Error> {
        let Some(Some(slot)) = number.checked_sub(self.first).and_then(|place| self.slots.get_mut(place)) else {
            return Ok(());
        };
        let Slot { id, item, source, tracks } = slot;
        let track = &mut tracks[judge];
        if !track.pending.is_empty() {
            track.rounds.push(track.pending.drain(..).flatten().collect());
        }
        let asker = self.judges[judge];
        let rounds = Rounds::new(track.rounds.iter().map(Vec::as_slice));
        let step = catch_unwind(AssertUnwindSafe(|| {
            let asked = match track.asked {
                0 => asker.ask(item)?,
                _ => asker.follow_up(item, &rounds)?,
            };
            Ok(match asked.is_empty() {
                true => Step::Decides(asker.decide(item, &rounds)?.finite()?),
                false => Step::Asks(asked),
            })
        }));
        track.asked += 1;
        let step: Result<Step, JudgeError> = match step {
            Ok(step) => step,
            Err(panic) if self.lose(number, &panicked::message(&*panic)) => return Ok(()),
            Err(panic) => resume_unwind(panic),
        };
        track.verdict = Some(match step {
            Ok(Step::Asks(requests)) => {
                if track.asked > self.settings.max_rounds {
                    let (judge, rounds) = (asker.name().to_owned(), self.settings.max_rounds);
                    return Err(Error::TooManyRounds { judge, id: id.clone(), rounds });
                }
                track.pending = vec![None; requests.len()];
                self.summary.progress.requests += requests.len();
                for (place, Request { prompt, want }) in requests.into_iter().enumerate() {
                    let question = Question { item: number, judge, place, want };
                    self.summary.progress.passes += usize::from(self.waiting.push(*source, question, prompt));
                }
                return Ok(());
            }
            Ok(Step::Decides(score)) => Verdict::Scored(score),
            Err(JudgeError::Unscored(unscored)) => Verdict::Unscored(unscored),
            Err(JudgeError::Failed(source)) => {
                return Err(Error::Item { judge: asker.name().to_owned(), id: id.clone(), source });
            }
        });
        Ok(())
    }

    /// Gives an answer to all who asked.
    fn answer(&mut self, source: u64, pass: Pass, outcome: Outcome) -> Result<ControlFlow<()>, Error> {
        self.summary.progress.passes_answered += 1;
        if let Outcome::Read(reading) = &outcome {
            let written = reading.generated.as_ref().and_then(|generated| generated.n_tokens);
            self.summary.progress.tokens += reading.prompt_tokens.unwrap_or_default() + written.unwrap_or_default();
        }
        let mut complete = Vec::new();
        let mut left = pass.questions.len();
        let mut outcome = Some(outcome);
        for question in pass.questions {
            left -= 1;
            let want = &question.want;
            let given = match &outcome {
                // No judge sees what others wanted of the pass.
                Some(Outcome::Read(reading)) if *want != pass.request.want => Some(Outcome::Read(cut(reading, want))),
                // Where a pass fails for what one judge wants of it, another judge who did not want that still gets its answer.
                Some(Outcome::Unscored(_)) if *want != pass.request.want => {
                    self.waiting.push_alone(source, question, pass.request.prompt.clone());
                    self.summary.progress.passes += 1;
                    continue;
                }
                // States are large: the last one who asked, mostly the only one, gets the outcome itself.
                _ if left == 0 => outcome.take(),
                _ => outcome.clone(),
            };
            let place = question.item.checked_sub(self.first);
            let Some(Some(slot)) = place.and_then(|place| self.slots.get_mut(place)) else { continue };
            let track = &mut slot.tracks[question.judge];
            track.pending[question.place] = given;
            if track.pending.iter().all(Option::is_some) {
                complete.push((question.item, question.judge));
            }
        }
        for &(item, judge) in &complete {
            self.advance(item, judge)?;
        }
        if self.tell(RunEvent::Progress(self.summary.progress))?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        for &(item, _) in &complete {
            if self.deliver(item)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Hands out what can be after something has happened to this item.
    fn deliver(&mut self, number: usize) -> Result<ControlFlow<()>, Error> {
        if !self.settings.in_order {
            return self.hand_out(number);
        }
        while self.next < self.first + self.slots.len() {
            let before = self.summary.progress.items_done;
            if self.hand_out(self.next)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if self.summary.progress.items_done == before {
                break;
            }
            self.next += 1;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Hands out one item's result if it is open and known.
    fn hand_out(&mut self, number: usize) -> Result<ControlFlow<()>, Error> {
        let known = |slot: &mut Slot<Item>| slot.tracks.iter().all(|track| track.verdict.is_some());
        let Some(slot) = self.discard(number, known) else { return Ok(ControlFlow::Continue(())) };
        self.summary.progress.items_done += 1;
        let (mut verdicts, mut outcomes) = (Vec::new(), Vec::new());
        for (track, tally) in slot.tracks.into_iter().zip(&mut self.summary.judges) {
            verdicts.extend(track.verdict.inspect(|verdict| tally.count(verdict)));
            outcomes.push(track.rounds);
        }
        self.tell(RunEvent::Item(ItemResult { id: slot.id, item: slot.item, verdicts, outcomes }))
    }

    fn tell(&mut self, event: RunEvent<Item>) -> Result<ControlFlow<()>, Error> {
        (self.observer)(event).map_err(|source| Error::Observer { source })
    }

    /// A request that the model refused or failed at, by the item and the judge it came from. Of a shared pass that was refused that is the
    /// first judge whose own request is, and else the first.
    fn name_request(&self, error: BackboneError, model: &dyn TextModel) -> Error {
        let pass = error.request().and_then(|number| self.taken.get(number.checked_sub(self.first_pass)?)?.as_ref());
        let question = pass.and_then(|(_, pass)| refused(pass, &error, model).or(pass.questions.first()));
        let slot = question.and_then(|question| self.slots.get(question.item.checked_sub(self.first)?)?.as_ref());
        match (question, slot) {
            (Some(question), Some(slot)) => {
                let judge = self.judges[question.judge].name().to_owned();
                Error::Item { judge, id: slot.id.clone(), source: Box::new(error) }
            }
            _ => error.into(),
        }
    }

    fn settle(&mut self, flow: Result<ControlFlow<()>, Error>) -> ControlFlow<()> {
        match flow {
            Ok(ControlFlow::Continue(())) => return ControlFlow::Continue(()),
            Ok(ControlFlow::Break(())) => self.stopped = Some(Stop::Cancelled),
            Err(error) => self.stopped = Some(Stop::Failed(error)),
        }
        ControlFlow::Break(())
    }
}

impl<Item> Exchange for Flight<'_, '_, Item> {
    fn take(&mut self, most: usize) -> Vec<Request> {
        if self.stopped.is_some() {
            return Vec::new();
        }
        self.give_up_abandoned();
        if self.taken.is_empty() {
            self.waiting.end_turn();
        }
        let filled = self.fill(most);
        if self.settle(filled).is_break() {
            return Vec::new();
        }
        let mut requests = Vec::with_capacity(most.min(self.waiting.len()));
        while requests.len() < most
            && let Some((source, pass)) = self.waiting.pop()
        {
            requests.push(pass.request.clone());
            self.taken.push_back(Some((source, pass)));
        }
        requests
    }

    fn give(&mut self, index: usize, outcome: Outcome) -> ControlFlow<()> {
        match &self.stopped {
            Some(Stop::Failed(_)) => return ControlFlow::Break(()), // the first error is the one to tell
            Some(Stop::Cancelled) => {
                return self.settle(Err(ContractBreach::CalledAfterBreak.into()));
            }
            None => {}
        }
        let requests = self.first_pass + self.taken.len();
        if index >= requests {
            return self.settle(Err(ContractBreach::NoSuchRequest { request: index, requests }.into()));
        }
        let pass = index.checked_sub(self.first_pass).and_then(|place| self.taken[place].take());
        let Some((source, pass)) = pass else {
            return self.settle(Err(ContractBreach::AnsweredTwice { request: index }.into()));
        };
        while self.taken.front().is_some_and(Option::is_none) {
            self.taken.pop_front();
            self.first_pass += 1;
        }
        self.panics = 0;
        self.waiting.end_turn();
        let flow = self.answer(source, pass, outcome);
        self.settle(flow)
    }

    fn wait(&mut self) -> ControlFlow<()> {
        if self.stopped.is_some() {
            return ControlFlow::Break(());
        }
        let flow = self.tell(RunEvent::Waiting);
        self.settle(flow)
    }
}

/// The first question of a refused pass that the model refuses alone too. The model is asked, since no one else knows what it refuses.
fn refused<'p>(pass: &'p Pass, error: &BackboneError, model: &dyn TextModel) -> Option<&'p Question> {
    let Request { prompt, want: all } = &pass.request;
    let is_refused = |question: &&Question| {
        if question.want == *all {
            return true;
        }
        let alone = Request { prompt: prompt.clone(), want: question.want.clone() };
        let run = AssertUnwindSafe(|| model.run(&[alone], &mut |_, _| ControlFlow::Break(())).is_err());
        catch_unwind(run).unwrap_or(true)
    };
    // What a service answers is asked last, since it costs.
    let (text, inside): (Vec<_>, Vec<_>) = pass.questions.iter().partition(|question| question.want.is_text_only());
    match error {
        BackboneError::Layer { .. }
        | BackboneError::Token { .. }
        | BackboneError::Request { .. }
        | BackboneError::Unsupported { .. } => inside.into_iter().chain(text).find(is_refused),
        // Of a model that fails nothing is asked again.
        _ => None,
    }
}

/// 128 bits of BLAKE3: two of a thousand million ids share them with a probability below 1e-20.
fn digest(id: &ItemId) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    match id {
        ItemId::Integer(number) => hasher.update(b"i").update(&number.to_le_bytes()),
        ItemId::Text(text) => hasher.update(b"t").update(text.as_bytes()),
    };
    let mut digest = [0; 16];
    hasher.finalize_xof().fill(&mut digest);
    digest
}
