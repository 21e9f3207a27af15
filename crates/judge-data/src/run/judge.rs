//! A run whose rows are what judges say of items.

use std::error::Error as StdError;
use std::ops::ControlFlow;

use judge_core::{
    ItemId, ItemResult, Judge, JudgeError, Request, Rounds, Runner, Score, TextModel, Unscored,
    runner::{RunEvent, RunSettings, RunSummary},
};
use serde::Serialize;

use crate::{Counts, Error, Extra, Fate, Numbered, Resolved, RowColumns, RunStart};

type AnyError = Box<dyn StdError + Send + Sync>;

/// An item that is a row of an input, and so of the output of a run.
pub trait RowItem {
    /// Its place in the source, from 0.
    fn row(&self) -> usize;

    /// Its id.
    fn id(&self) -> ItemId;

    /// Why no judge can be asked about it: it could not be read.
    fn unread(&self) -> Option<&Unscored> {
        None
    }

    /// Why what people gave it is no grade, where they gave something.
    fn no_grade(&self) -> Option<&str> {
        None
    }

    /// Its other fields, which its row of the output may get; `None` if it gets none.
    fn extra(&self) -> Option<&Extra> {
        None
    }

    /// The same, to add to.
    fn extra_mut(&mut self) -> Option<&mut Extra> {
        None
    }

    /// Which columns its fields were read from; `None` where their names are fixed.
    fn columns(&self) -> Option<&RowColumns> {
        None
    }

    /// The name of the field that is called so, or was read from a column of this name; any other name as it is.
    fn field_named<'n>(&self, name: &'n str) -> &'n str {
        self.columns().map_or(name, |columns| columns.field_named(name))
    }

    /// The names of texts within a field that [`edit`](Self::edit) takes by themselves.
    fn inner(&self) -> Vec<String> {
        Vec::new()
    }

    /// Changes each text of this field, called as [`field_named`](Self::field_named) has it, before a judge sees it. Of a field without a
    /// text nothing happens.
    fn edit(&mut self, field: &str, change: &mut dyn FnMut(&mut String)) {
        let _ = (field, change);
    }
}

/// The parts of [`RowItem`] that a record has as fields of the same names: `row`, `id` and `extra`.
macro_rules! of_fields {
    () => {
        fn row(&self) -> usize {
            self.row
        }

        fn id(&self) -> judge_core::ItemId {
            self.id.clone()
        }

        fn extra(&self) -> Option<&$crate::Extra> {
            Some(&self.extra)
        }

        fn extra_mut(&mut self) -> Option<&mut $crate::Extra> {
            Some(&mut self.extra)
        }
    };
}
pub(crate) use of_fields;

impl RowItem for Numbered {
    fn row(&self) -> usize {
        self.row
    }

    fn id(&self) -> ItemId {
        self.record.id().clone()
    }

    fn unread(&self) -> Option<&Unscored> {
        self.record.unread()
    }

    fn no_grade(&self) -> Option<&str> {
        self.record.no_grade()
    }

    fn extra(&self) -> Option<&Extra> {
        Some(self.record.extra())
    }

    fn extra_mut(&mut self) -> Option<&mut Extra> {
        Some(self.record.extra_mut())
    }

    fn columns(&self) -> Option<&RowColumns> {
        self.record.columns()
    }

    fn edit(&mut self, field: &str, change: &mut dyn FnMut(&mut String)) {
        self.record.edit(field, change);
    }
}

/// Follows the work on a file: shows how far it is, and may end it.
pub trait Observer<I> {
    /// The work begins. Of `rows` rows, `before` are there from earlier starts.
    fn begin(&mut self, before: usize, rows: usize);

    /// Sees every event, a result before it is written. [`ControlFlow::Break`] ends the work; the same run resumes it.
    fn see(&mut self, event: &RunEvent<I>) -> ControlFlow<()>;
}

/// A function that sees the events, and nothing else.
impl<I, F: FnMut(&RunEvent<I>) -> ControlFlow<()>> Observer<I> for F {
    fn begin(&mut self, _: usize, _: usize) {}

    fn see(&mut self, event: &RunEvent<I>) -> ControlFlow<()> {
        self(event)
    }
}

/// What became of the rows of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Of all rows, those of earlier starts included; of those so far if the work was ended.
    pub counts: Counts,
    /// What was done this time, and whether it was ended: `cancelled`.
    pub summary: RunSummary,
}

impl RunStart {
    /// Judges the items whose rows are not there yet, writes what `row` makes of each result, and, unless the observer ended the work,
    /// puts the file in place. An item that is [unread](RowItem::unread) is unscored with its reason, whatever the judges are.
    ///
    /// # Errors
    /// As [`begin`](Self::begin) and [`finish`](crate::Run::finish); [`Error::JudgeSettings`] for a judge that does not say what its
    /// verdicts depend on; whatever is wrong with an item or with `row`; [`Error::Core`] if a judge or the model fails.
    /// What was written before stays.
    pub fn judge<I: RowItem, T: Serialize, E: Into<AnyError>, R: Into<AnyError>>(
        self,
        resolved: Resolved,
        model: &dyn TextModel,
        judges: &[&dyn Judge<I>],
        items: impl IntoIterator<Item = Result<I, E>>,
        mut row: impl FnMut(ItemResult<I>) -> Result<(T, Fate), R>,
        observer: &mut dyn Observer<I>,
    ) -> Result<RunResult, Error> {
        let mut run = self.begin(resolved)?;
        run.judged_by(judges.iter().copied())?;
        observer.begin(run.resumed().rows, run.rows());
        let done: Vec<bool> = (0..run.rows()).map(|row| run.is_done(row)).collect();
        let is_done = |item: &I| done.get(item.row()) == Some(&true);
        let items = items.into_iter().map(|item| item.map_err(Into::into));
        let pending = items.filter(|item| !item.as_ref().is_ok_and(is_done));
        let pending = pending.map(|item| item.map(|item| (item.id(), item)));

        let settings = RunSettings { in_order: false, unique_ids: false, ..RunSettings::default() }; // the source or the job checks them
        let judges: Vec<OfRead<'_, I>> = judges.iter().map(|judge| OfRead(*judge)).collect();
        let judges = judges.iter().map(|judge| judge as &dyn Judge<I>).collect();
        let runner = Runner::new(model, judges).with_settings(settings);
        let summary = runner.try_run(pending, |event| -> Result<ControlFlow<()>, AnyError> {
            let flow = observer.see(&event);
            let RunEvent::Item(result) = event else { return Ok(flow) };
            let place = result.item.row();
            let (value, fate) = row(result).map_err(Into::into)?;
            run.push(place, &value, fate)?;
            Ok(flow)
        });
        let summary = summary.map_err(Error::of_run)?;
        let counts = if summary.cancelled { run.counts() } else { run.finish()?.counts };
        Ok(RunResult { counts, summary })
    }
}

/// A judge before items of which some could not be read.
struct OfRead<'j, I>(&'j dyn Judge<I>);

impl<I: RowItem> Judge<I> for OfRead<'_, I> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn ask(&self, item: &I) -> Result<Vec<Request>, JudgeError> {
        match item.unread() {
            Some(why) => Err(why.clone().into()),
            None => self.0.ask(item),
        }
    }

    fn follow_up(&self, item: &I, rounds: &Rounds<'_>) -> Result<Vec<Request>, JudgeError> {
        self.0.follow_up(item, rounds)
    }

    fn decide(&self, item: &I, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        self.0.decide(item, rounds)
    }

    fn settings(&self) -> Option<serde_json::Value> {
        self.0.settings()
    }
}
