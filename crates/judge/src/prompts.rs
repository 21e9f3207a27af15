//! The prompts of a file, passed through a model.

use anyhow::{Context, Result, ensure};
use judge_core::{Backbone, ItemId, Outcome, Prompt, TextModel, Unscored, Want, model::LabelInContext};
use judge_data::{Dataset, DatasetFormat, Error, Input, PromptInput, Record, read_rows, split_label};

use crate::args::files::InputArgs;
use crate::args::model_args::ModelArgs;
use crate::missing_fields::Unread;
use crate::terminal::pace::Watch;

/// The prompts of an input, as the options of the model want them.
pub struct Prompts<'a> {
    /// The file.
    pub input: &'a Input,
    /// Its columns.
    pub columns: &'a InputArgs,
    /// How they are dressed, and how many are read.
    pub model: &'a ModelArgs,
    /// The opening of the reply.
    pub prefill: &'a str,
}

impl Prompts<'_> {
    /// Reads the whole input once, so that whatever is wrong with it is said before any model work;
    /// `check` may find more wrong with a record. Returns the number of
    /// rows.
    ///
    /// # Errors
    /// What is wrong, with its line; an input without rows.
    pub fn check(&self, mut check: impl FnMut(&Record) -> Result<(), Error>) -> Result<usize> {
        let (mut rows, mut unread) = (0, Unread::default());
        for record in self.records()? {
            let record = record?;
            check(&record).with_context(|| format!("{}", self.input.path().display()))?;
            unread.see(&record);
            rows += 1;
        }
        ensure!(rows > 0, "{}: no row was read: there are none", self.input.path().display());
        unread.tell();
        Ok(rows)
    }

    /// As [`split_label`], after the first prompt that the model reads.
    ///
    /// # Errors
    /// Whatever is wrong with the records before it.
    pub fn split_label(&self, model: &dyn Backbone, labels: &[String]) -> Result<Option<(String, LabelInContext)>> {
        let prompts = self.records()?.map(|record| Ok(self.prompt(&record?).ok()));
        Ok(split_label(model, prompts.filter_map(Result::transpose), labels)?)
    }

    fn records(&self) -> Result<Dataset> {
        self.columns.records(self.input, Some(DatasetFormat::Prompts), self.model.limit)
    }

    /// The prompt of a record, or why it has none.
    fn prompt(&self, record: &Record) -> Result<Prompt, Unscored> {
        let input = match record {
            Record::Prompt(record) => &record.input,
            Record::Unread(record) => return Err(record.why.clone()),
            _ => &PromptInput::Messages(Vec::new()), // the format is given: there are no other records
        };
        let args = self.model;
        let prompt = if args.raw_prompt { input.to_raw() } else { args.dress(input.to_chat()) };
        // What asks nothing stays empty: a prefill must not make a prompt of it.
        Ok(if prompt.is_empty() { prompt } else { prompt.with_prefill(self.prefill) })
    }

    /// Puts the rows of which `pending` says so before the model with the same wish, and hands over each outcome with its row and record as
    /// it is known.
    ///
    /// # Errors
    /// Of the input, the model, or `store`; [`Stopped`](crate::terminal::interrupt::Stopped) after a signal. What was stored before stays.
    pub fn read(
        &self,
        model: &dyn TextModel,
        want: Want,
        pending: &[bool],
        store: impl FnMut(&ItemId, (usize, Record), &Outcome) -> Result<(), Error>,
    ) -> Result<()> {
        let rows = self.records()?.enumerate().filter(|(row, _)| pending.get(*row) == Some(&true));
        let prompts = rows.map(|(row, record)| {
            let record = record?;
            let prompt = self.prompt(&record);
            Ok((record.id().clone(), (row, record), prompt))
        });
        let open = pending.iter().filter(|&&open| open).count();
        read(model, want, [pending.len(), open], self.model.quiet, prompts, store)
    }
}

/// Puts prompts before a model with the same wish and hands over each outcome with what came beside its prompt, with progress.
/// `[total, open]` are the rows in all, and those that are read now.
///
/// # Errors
/// Of `prompts`, the model, or `store`; [`Stopped`](crate::terminal::interrupt::Stopped) after a signal.
pub fn read<T>(
    model: &dyn TextModel,
    want: Want,
    [total, open]: [usize; 2],
    quiet: bool,
    prompts: impl Iterator<Item = Result<(ItemId, T, Result<Prompt, Unscored>), Error>>,
    mut store: impl FnMut(&ItemId, T, &Outcome) -> Result<(), Error>,
) -> Result<()> {
    let mut watch = Watch::new("reading", "rows", quiet)?;
    watch.start(total - open, total);
    let summary = read_rows(model, want, prompts, |id, beside, outcome| {
        let flow = watch.read(outcome);
        store(id, beside, outcome)?;
        Ok(flow)
    })?;
    watch.finish(summary.cancelled)
}
