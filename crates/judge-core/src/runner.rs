//! Putting the questions of judges about items before a backbone.

mod merge;
mod window;

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::error::Error as StdError;
use std::ops::ControlFlow;

use crate::{Backbone, Error, ItemId, Judge, Outcome, Reason, Verdict};
use window::Window;

/// Asks judges about items through one backbone.
///
/// Items come from an iterator and are held `window` at a time, so a run's memory does not grow with the number of items (but for 16 bytes per id, which
/// find duplicates). The requests of all judges about a window's items go to the backbone together; equal prompts are passed once,
/// with everything that any judge wants of them. Results come in the order of the items, each as soon as it and those before it are known. They
/// do not depend on the window, on the other items or on the other judges.
///
/// To go on after an interruption, give the ids of the results that are stored as [`RunSettings::done`].
pub struct Runner<'a, Item> {
    backbone: &'a dyn Backbone,
    judges: Vec<&'a dyn Judge<Item>>,
    settings: RunSettings,
}

/// How a run goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSettings {
    /// Items held at a time; 0 counts as 1. More lets a backbone batch better and finds more equal prompts.
    pub window: usize,
    /// Ids that are done already; such items are skipped.
    pub done: HashSet<ItemId>,
    /// Rounds of questions that a judge may ask about one item, the first included.
    pub max_rounds: usize,
}

impl Default for RunSettings {
    /// 256 items, none done, 64 rounds.
    fn default() -> Self {
        Self { window: 256, done: HashSet::new(), max_rounds: 64 }
    }
}

/// What a run tells its observer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunEvent<Item> {
    /// An item is done already.
    Skipped(ItemId),
    /// The backbone has answered.
    Progress(Progress),
    /// An item's verdicts.
    Item(ItemResult<Item>),
}

/// One item and what the judges say of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemResult<Item> {
    /// Its id.
    pub id: ItemId,
    /// The item, handed back.
    pub item: Item,
    /// One verdict per judge.
    pub verdicts: Vec<Verdict>,
    /// Per judge, what the backbone answered to its requests, in their order.
    pub outcomes: Vec<Vec<Outcome>>,
}

/// Counts of a run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Items taken from the iterator, skipped ones included.
    pub items_read: usize,
    /// Items skipped because they are done already.
    pub items_skipped: usize,
    /// Items whose result was delivered.
    pub items_done: usize,
    /// Requests that judges have made.
    pub requests: usize,
    /// Passes put before the backbone; fewer than requests where prompts are shared.
    pub passes: usize,
    /// Passes answered.
    pub passes_answered: usize,
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSummary {
    /// The counts at its end.
    pub progress: Progress,
    /// Per judge, how many items it scored and did not.
    pub judges: Vec<Tally>,
    /// Whether the observer ended it before the items did.
    pub cancelled: bool,
}

/// How many items a judge scored, and why it did not score the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Items with a score.
    pub scored: usize,
    /// Items without, by reason.
    pub unscored: BTreeMap<Reason, usize>,
}

impl Tally {
    /// Counts one verdict.
    pub fn count(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Scored { .. } => self.scored += 1,
            Verdict::Unscored(unscored) => *self.unscored.entry(unscored.reason).or_default() += 1,
        }
    }
}

impl<'a, Item> Runner<'a, Item> {
    /// A runner with default settings.
    pub fn new(backbone: &'a dyn Backbone, judges: Vec<&'a dyn Judge<Item>>) -> Self {
        Self { backbone, judges, settings: RunSettings::default() }
    }

    /// The same runner with other settings.
    #[must_use]
    pub fn with_settings(mut self, settings: RunSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Judges the items. The observer sees every [`RunEvent`]; its [`ControlFlow::Break`] ends the run, which is no error.
    ///
    /// # Errors
    /// [`Error::DuplicateId`], [`Error::Item`] (a judge cannot work on an item, or asks the backbone for what it does not have), [`Error::TooManyRounds`],
    /// [`Error::Contract`] and [`Error::Backbone`]. Results delivered before stay valid. A fault of one item's text is
    /// no error but a [`Verdict::Unscored`].
    pub fn run(
        &self,
        items: impl IntoIterator<Item = (ItemId, Item)>,
        observer: &mut dyn FnMut(RunEvent<Item>) -> ControlFlow<()>,
    ) -> Result<RunSummary, Error> {
        self.try_run(items.into_iter().map(Ok::<_, Infallible>), observer)
    }

    /// As [`run`](Self::run), for items whose source can fail, e.g. a file that is read line by line.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`Error::Items`] with the source's error. Items read before it are not judged unless their window was full.
    pub fn try_run<E: Into<Box<dyn StdError + Send + Sync>>>(
        &self,
        items: impl IntoIterator<Item = Result<(ItemId, Item), E>>,
        observer: &mut dyn FnMut(RunEvent<Item>) -> ControlFlow<()>,
    ) -> Result<RunSummary, Error> {
        let mut summary = RunSummary { judges: vec![Tally::default(); self.judges.len()], ..RunSummary::default() };
        let mut seen: HashSet<[u8; 16]> = HashSet::new();
        let mut items = items.into_iter();
        loop {
            let mut waiting = Vec::new();
            while waiting.len() < self.settings.window.max(1) {
                let Some(next) = items.next() else { break };
                let (id, item) = next.map_err(|source| Error::Items { source: source.into() })?;
                if !seen.insert(digest(&id)) {
                    return Err(Error::DuplicateId { id });
                }
                summary.progress.items_read += 1;
                if self.settings.done.contains(&id) {
                    summary.progress.items_skipped += 1;
                    if observer(RunEvent::Skipped(id)).is_break() {
                        summary.cancelled = true;
                        return Ok(summary);
                    }
                } else {
                    waiting.push((id, item));
                }
            }
            if waiting.is_empty() {
                return Ok(summary);
            }
            Window::new(&self.judges, &self.settings, waiting, &mut summary, observer).judge(self.backbone)?;
            if summary.cancelled {
                return Ok(summary);
            }
        }
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
