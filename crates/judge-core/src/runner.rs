//! Puts the requests of judges about items before a model, and their verdicts before an observer.

mod event;
mod flight;
mod flow;
mod pass;
mod queue;
mod read;
mod turns;

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::{Error, ItemId, Judge, TextModel, panicked};
pub use event::{ItemResult, Progress, RunEvent, RunSettings, RunSummary, Tally};
use flight::{Flight, Supply};
pub use flow::Flow;
pub use queue::{JudgeQueue, Pending, QueueError};
pub use read::{ReadOnly, read};

/// Asks judges about items through one model.
///
/// Items come from an iterator as the model has room for them, and at most [`RunSettings::window`] of them are open at a time, so a run's
/// memory does not grow with the number of items (but for 16 bytes per id, which find duplicates). There is no barrier: while the last
/// answers about one item are computed, the next items are on their way. Equal prompts that wait together are passed once, with everything
/// that any judge wants of them. Results come in the order of the items unless told otherwise, each as soon as it and those before it are
/// known. They do not depend on the window, on the other items or on the other judges.
///
/// A run is resumed by leaving out the items whose results are stored already, as `judge-data` does.
pub struct Runner<'a, Item> {
    model: &'a dyn TextModel,
    judges: Vec<&'a dyn Judge<Item>>,
    settings: RunSettings,
}

impl<Item> fmt::Debug for Runner<'_, Item> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let judges: Vec<&str> = self.judges.iter().map(|judge| judge.name()).collect();
        f.debug_struct("Runner").field("judges", &judges).field("settings", &self.settings).finish_non_exhaustive()
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
    /// [`Error::DuplicateId`], [`Error::Item`] (a judge cannot work, or asks the model for what it does not have),
    /// [`Error::TooManyRounds`], [`Error::Contract`], [`Error::Backbone`], and [`Error::Observer`] with the observer's
    /// own error. Results delivered before stay valid. A fault of one item is no error but a
    /// [`Verdict::Unscored`](crate::Verdict::Unscored).
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
        self.run_supply(&mut items, &mut |event| observer(event).flow())
    }

    fn run_supply(
        &self,
        items: &mut dyn Supply<Item>,
        observer: &mut dyn FnMut(RunEvent<Item>) -> Result<ControlFlow<()>, Box<dyn StdError + Send + Sync>>,
    ) -> Result<RunSummary, Error> {
        let mut flight = Flight::new(&self.judges, &self.settings, items, observer);
        let served = loop {
            match catch_unwind(AssertUnwindSafe(|| self.model.serve(&mut flight))) {
                Ok(served) => break served,
                Err(panic) if flight.outlives(&panicked::message(&*panic)) => {}
                Err(panic) => resume_unwind(panic),
            }
        };
        flight.finish(served, self.model)
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
