//! The prompts of a file, passed through a model.

use anyhow::{Context, Result};
use judge_core::{ItemId, Outcome, Prompt, TextModel, Want};
use judge_data::{Dataset, DatasetFormat, Error, Input, PromptInput, PromptRecord, Record, read_rows};

use crate::files::InputArgs;
use crate::model_args::ModelArgs;
use crate::pace::Watch;

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
    /// Reads the whole input once, so that whatever is wrong with it is said before any model work; `check` may find more wrong with a record. Returns the number of
    /// rows and the first prompt.
    ///
    /// # Errors
    /// What is wrong, with its line; an input without rows.
    pub fn check(&self, check: impl Fn(&PromptRecord) -> Result<(), Error>) -> Result<(usize, Prompt)> {
        let (mut rows, mut first) = (0, None);
        for record in self.records()? {
            if let Record::Prompt(record) = record? {
                check(&record).with_context(|| format!("{}", self.input.path().display()))?;
                first.get_or_insert_with(|| self.prompt(&record.input));
            }
            rows += 1;
        }
        let first =
            first.with_context(|| format!("{}: no row was read: there are none", self.input.path().display()))?;
        Ok((rows, first))
    }

    fn records(&self) -> Result<Dataset> {
        self.columns.records(self.input, Some(DatasetFormat::Prompts), self.model.limit)
    }

    fn prompt(&self, input: &PromptInput) -> Prompt {
        let args = self.model;
        let prompt = if args.raw_prompt { input.to_raw() } else { args.dress(input.to_chat()) };
        // What asks nothing stays empty: a prefill must not make a prompt of it.
        if prompt.is_empty() { prompt } else { prompt.with_prefill(self.prefill) }
    }

    /// Puts the rows of which `pending` says so before the model with the same wish, and hands over each outcome with its row and record as it is known.
    ///
    /// # Errors
    /// Of the input, the model, or `store`; [`Stopped`](crate::interrupt::Stopped) after a signal. What was stored before stays.
    pub fn read(
        &self,
        model: &dyn TextModel,
        want: Want,
        pending: &[bool],
        store: impl FnMut(&ItemId, (usize, PromptRecord), &Outcome) -> Result<(), Error>,
    ) -> Result<()> {
        let rows = self.records()?.enumerate();
        let prompts =
            rows.filter(|(row, _)| pending.get(*row) == Some(&true)).filter_map(|(row, record)| match record {
                Ok(Record::Prompt(record)) => {
                    let prompt = self.prompt(&record.input);
                    Some(Ok((record.id.clone(), (row, record), prompt)))
                }
                Ok(_) => None, // the format is given: there are no other records
                Err(error) => Some(Err(error)),
            });
        read(
            model,
            want,
            [pending.len(), pending.iter().filter(|&&open| open).count()],
            self.model.quiet,
            prompts,
            store,
        )
    }
}

/// Puts prompts before a model with the same wish and hands over each outcome with what came beside its prompt, with progress. `[total, open]` are the rows in all, and those that are read now.
///
/// # Errors
/// Of `prompts`, the model, or `store`; [`Stopped`](crate::interrupt::Stopped) after a signal.
pub fn read<T>(
    model: &dyn TextModel,
    want: Want,
    [total, open]: [usize; 2],
    quiet: bool,
    prompts: impl Iterator<Item = Result<(ItemId, T, Prompt), Error>>,
    mut store: impl FnMut(&ItemId, T, &Outcome) -> Result<(), Error>,
) -> Result<()> {
    let mut watch = Watch::new("reading", total - open, total, quiet)?;
    let summary = read_rows(model, want, prompts, |id, beside, outcome| {
        let flow = watch.read(outcome);
        store(id, beside, outcome)?;
        Ok(flow)
    })?;
    watch.finish(summary.cancelled, "rows")
}
