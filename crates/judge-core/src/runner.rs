//! Puts the requests of judges about items before a model, and their verdicts before an observer.

mod flight;
mod flow;
mod pass;
mod read;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error as StdError;

use crate::{Error, ItemId, Judge, Outcome, Reason, Rounds, Score, TextModel, Verdict};
use flight::Flight;
pub use flow::Flow;
pub use read::{ReadOnly, read};

/// Asks judges about items through one model.
///
/// Items come from an iterator as the model has room for them, and at most [`RunSettings::window`] of them are open at a time, so a run's memory does not grow
/// with the number of items (but for 16 bytes per id, which find duplicates). There is no barrier: while the last answers about one item are computed, the
/// next items are on their way. Equal prompts that wait together are passed once, with everything that any judge wants of them. Results come in the order of
/// the items unless told otherwise, each as soon as it and those before it are known. They do not depend on the window, on the other items or on the other judges.
///
/// A run is resumed by leaving out the items whose results are stored already, as `judge-data` does.
pub struct Runner<'a, Item> {
    model: &'a dyn TextModel,
    judges: Vec<&'a dyn Judge<Item>>,
    settings: RunSettings,
}

/// How a run goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSettings {
    /// Upper bound on open items: those that were taken from the iterator and whose results were not delivered; 0 counts as 1. Enough that it never keeps a
    /// model waiting, few enough for memory where readings are large.
    pub window: usize,
    /// Whether results come in the order of the items. If not, each comes as soon as it is known.
    pub in_order: bool,
    /// Rounds of requests that a judge may make about one item, the first included.
    pub max_rounds: usize,
    /// Whether an id that appears twice is an error. It costs some 30 bytes per item; a source that has seen to it already, such as a data set of `judge-data`,
    /// need not pay for it again.
    pub unique_ids: bool,
}

impl Default for RunSettings {
    /// 4,096 items, in order, 64 rounds, ids checked.
    fn default() -> Self {
        Self { window: 4096, in_order: true, max_rounds: 64, unique_ids: true }
    }
}

/// What a run tells its observer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum RunEvent<Item> {
    /// The model has answered.
    Progress(Progress),
    /// An item's verdicts.
    Item(ItemResult<Item>),
}

/// One item and what the judges say of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ItemResult<Item> {
    /// Its id.
    pub id: ItemId,
    /// The item, handed back.
    pub item: Item,
    /// One verdict per judge.
    pub verdicts: Vec<Verdict>,
    /// Per judge and round, what the model answered to its requests, in their order.
    pub outcomes: Vec<Vec<Vec<Outcome>>>,
}

impl<Item> ItemResult<Item> {
    /// The rounds of one judge; none for a judge that does not exist.
    pub fn rounds(&self, judge: usize) -> Rounds<'_> {
        Rounds::new(self.outcomes.get(judge).into_iter().flatten().map(Vec::as_slice))
    }
}

/// Counts of a run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Items taken from the iterator.
    pub items_read: usize,
    /// Items whose result was delivered.
    pub items_done: usize,
    /// Requests that judges have made.
    pub requests: usize,
    /// Passes put before the model; fewer than requests where prompts are shared.
    pub passes: usize,
    /// Passes answered.
    pub passes_answered: usize,
    /// Tokens read and written in these passes, as far as the model counts them; those of a pass count once, however many judges share it.
    pub tokens: usize,
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RunSummary {
    /// The counts at its end.
    pub progress: Progress,
    /// Per judge, how many items it scored and did not.
    pub judges: Vec<Tally>,
    /// Whether the observer ended it before the items did.
    pub cancelled: bool,
}

/// How many items a judge scored, and why it did not score the others.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Tally {
    /// The judge's name.
    pub name: String,
    /// Items with a score.
    pub scored: usize,
    /// Items without, by reason.
    pub unscored: BTreeMap<Reason, usize>,
    /// Scores that say how much of the model's probability lay on the labels.
    pub with_label_mass: usize,
    /// The sum of these shares.
    pub label_mass: f64,
}

impl Tally {
    /// No verdict yet, of the judge of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Counts one verdict.
    pub fn count(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Scored(Score { label_mass, .. }) => {
                self.scored += 1;
                if let Some(mass) = label_mass {
                    self.with_label_mass += 1;
                    self.label_mass += mass;
                }
            }
            Verdict::Unscored(unscored) => *self.unscored.entry(unscored.reason).or_default() += 1,
        }
    }

    /// The mean share of the model's probability that lay on the labels, where any score says it. Where it is small, the prompt does not lead the
    /// model to a label, and the scores rest on what it hardly considered.
    pub fn mean_label_mass(&self) -> Option<f64> {
        (self.with_label_mass > 0).then(|| self.label_mass / self.with_label_mass as f64)
    }
}

impl<'a, Item> Runner<'a, Item> {
    /// A runner with default settings.
    pub fn new(model: &'a dyn TextModel, judges: Vec<&'a dyn Judge<Item>>) -> Self {
        Self { model, judges, settings: RunSettings::default() }
    }

    /// The same runner with other settings.
    #[must_use]
    pub fn with_settings(mut self, settings: RunSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Judges the items. The observer sees every [`RunEvent`]; what it returns, any [`Flow`], goes on with the run, ends it, or fails it.
    ///
    /// # Errors
    /// [`Error::DuplicateId`], [`Error::Item`] (a judge cannot work, or asks the model for what it does not have), [`Error::TooManyRounds`],
    /// [`Error::Contract`], [`Error::Backbone`], and [`Error::Observer`] with the observer's own error. Results delivered before stay valid. A fault of one
    /// item is no error but a [`Verdict::Unscored`].
    pub fn run<F: Flow>(
        &self,
        items: impl IntoIterator<Item = (ItemId, Item)>,
        observer: impl FnMut(RunEvent<Item>) -> F,
    ) -> Result<RunSummary, Error> {
        self.try_run(items.into_iter().map(Ok::<_, Infallible>), observer)
    }

    /// As [`run`](Self::run), for items whose source can fail, e.g. a file that is read line by line.
    ///
    /// # Errors
    /// As [`run`](Self::run), and [`Error::Items`] with the source's error, after the items before it are judged.
    pub fn try_run<E: Into<Box<dyn StdError + Send + Sync>>, F: Flow>(
        &self,
        items: impl IntoIterator<Item = Result<(ItemId, Item), E>>,
        mut observer: impl FnMut(RunEvent<Item>) -> F,
    ) -> Result<RunSummary, Error> {
        let mut items = items.into_iter().map(|item| item.map_err(Into::into));
        let mut observer = |event: RunEvent<Item>| observer(event).flow();
        let mut flight = Flight::new(&self.judges, &self.settings, &mut items, &mut observer);
        let served = self.model.serve(&mut flight);
        flight.finish(served)
    }

    /// Judges the items and returns all results, in order. For what fits into memory.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn collect(&self, items: impl IntoIterator<Item = (ItemId, Item)>) -> Result<Vec<ItemResult<Item>>, Error> {
        let mut results = Vec::new();
        self.run(items, |event| {
            if let RunEvent::Item(result) = event {
                results.push(result);
            }
        })?;
        Ok(results)
    }
}
