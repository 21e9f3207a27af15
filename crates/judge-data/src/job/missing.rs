//! The rows of a job that are not written yet.

use std::borrow::Cow;
use std::error::Error as StdError;

use judge_core::{ItemResult, Judge, Outcome, Prompt, TextModel, Unscored, Verdict, Want};
use serde::Serialize;

use super::Source;
use super::cuts::cut;
use crate::job::jobs::Reader;
use crate::{Cut, Error, Fate, Observer, Resolved, RunResult, RunStart};

type AnyError = Box<dyn StdError + Send + Sync>;

/// The rows of a [`Job`](super::Job) that are not written yet, for whoever has them judged.
#[derive(Debug)]
pub struct Missing<'j, S: Clone> {
    pub(super) start: RunStart,
    pub(super) source: Cow<'j, S>,
    pub(super) cuts: &'j [Cut],
}

impl<S: Source> Missing<'_, S> {
    /// Judges them, as [`RunStart::judge`].
    ///
    /// # Errors
    /// As [`RunStart::judge`].
    pub fn judge<T: Serialize, E: Into<AnyError>>(
        self,
        resolved: Resolved,
        model: &dyn TextModel,
        judges: &[&dyn Judge<S::Item>],
        row: impl FnMut(ItemResult<S::Item>) -> Result<(T, Fate), E>,
        observer: &mut dyn Observer<S::Item>,
    ) -> Result<RunResult, Error> {
        let items = cut_all(&*self.source, self.cuts, model)?;
        self.start.judge(resolved, model, judges, items, row, observer)
    }

    /// Reads the same of each: `prompt` is what is read of a row, or why nothing is, and `row` makes its row of the outcome.
    ///
    /// # Errors
    /// As [`judge`](Self::judge).
    pub fn read<T: Serialize, E: Into<AnyError>>(
        self,
        resolved: Resolved,
        model: &dyn TextModel,
        want: Want,
        prompt: impl Fn(&S::Item) -> Result<Prompt, Unscored> + Send + Sync,
        mut row: impl FnMut(S::Item, &Outcome) -> Result<(T, Fate), E>,
        observer: &mut dyn Observer<S::Item>,
    ) -> Result<RunResult, Error> {
        let reader = Reader { want, prompt };
        let row = |result: ItemResult<S::Item>| {
            let ItemResult { item, outcomes, verdicts, .. } = result;
            // It asks once for each, or says why it cannot.
            let outcome = match (outcomes.into_iter().flatten().flatten().next(), verdicts.into_iter().next()) {
                (Some(outcome), _) => outcome,
                (None, Some(Verdict::Unscored(why))) => Outcome::Unscored(why),
                (None, _) => return Err(Error::from(judge_core::Error::NotRead { what: "prompt" }).into()),
            };
            row(item, &outcome).map_err(Into::into)
        };
        let items = cut_all(&*self.source, self.cuts, model)?;
        self.start.judge::<_, T, _, AnyError>(resolved, model, &[&reader], items, row, observer)
    }
}

/// The items of a source, whose fields are cut.
fn cut_all<S: Source>(
    source: &S,
    cuts: &[Cut],
    model: &dyn TextModel,
) -> Result<impl Iterator<Item = Result<S::Item, Error>>, Error> {
    if !cuts.is_empty() && model.tokens_in("").is_none() {
        return Err(Error::NoTokenCount);
    }
    Ok(source.items()?.map(move |item| {
        let mut item = item?;
        if !cuts.is_empty() {
            // A text that the tokenizer fails on stays as it is, and costs its row where it is read.
            cut(&mut item, cuts, &|text| model.tokens_in(text).unwrap_or_default())?;
        }
        Ok(item)
    }))
}
