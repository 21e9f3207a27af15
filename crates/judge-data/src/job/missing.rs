//! The rows of a job that are not written yet.

use std::error::Error as StdError;

use judge_core::{
    ItemResult, Judge, JudgeError, Outcome, Prompt, Request, Rounds, Score, TextModel, Unscored, Verdict, Want,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::Source;
use crate::{Error, Fate, Observer, Resolved, Resumed, RowItem, RunResult, RunStart};

type AnyError = Box<dyn StdError + Send + Sync>;

/// The rows of a [`Job`](super::Job) that are not written yet, for whoever has them judged.
#[derive(Debug)]
pub struct Missing<'j, S> {
    pub(super) start: RunStart,
    pub(super) source: &'j S,
}

impl<S: Source> Missing<'_, S> {
    /// What is there from earlier starts.
    #[must_use]
    pub fn resumed(&self) -> Resumed {
        self.start.resumed()
    }

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
        self.start.judge(resolved, model, judges, self.source.items()?, row, observer)
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
            let outcome = match (result.rounds(0).outcomes().next(), result.verdicts.first()) {
                (Some(outcome), _) => outcome.clone(),
                (None, Some(Verdict::Unscored(why))) => Outcome::Unscored(why.clone()),
                (None, _) => return Err(Error::from(judge_core::Error::NotRead { what: "prompt" }).into()),
            };
            row(result.item, &outcome).map_err(Into::into)
        };
        self.start.judge::<_, T, _, AnyError>(resolved, model, &[&reader], self.source.items()?, row, observer)
    }
}

/// A judge that asks the same about each row and has no opinion.
struct Reader<P> {
    want: Want,
    prompt: P,
}

impl<I: RowItem, P: Fn(&I) -> Result<Prompt, Unscored> + Send + Sync> Judge<I> for Reader<P> {
    fn name(&self) -> &str {
        "read"
    }

    fn ask(&self, item: &I) -> Result<Vec<Request>, JudgeError> {
        Ok(vec![Request { prompt: (self.prompt)(item)?, want: self.want.clone() }])
    }

    fn decide(&self, _: &I, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        Ok(Score::new(rounds.only()?.prompt_tokens.unwrap_or_default() as f64))
    }

    /// What is read follows from the settings of the run.
    fn settings(&self) -> Option<Value> {
        Some(json!({"judge": "read"}))
    }
}
