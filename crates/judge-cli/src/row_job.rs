//! What all commands over rows do and say around what each of them makes: [`judge_data::Job`] with a terminal.

use anyhow::{Result, bail};
use judge_core::{Backbone, ItemResult, Judge, Outcome, Prompt, TextModel, Unscored, Want};
use judge_data::{Checked, Error, Fate, Finished, Job, Missing, Resolved, RunResult, Settings, Source, split_label};
use judge_models::Model;
use serde::Serialize;

use crate::args::files::{CarryArgs, OutputArgs, program, tell_json_lines};
use crate::args::model_args::ModelArgs;
use crate::missing_fields::tell_unread;
use crate::terminal::console::{say, tell};
use crate::terminal::options::offered;
use crate::terminal::pace::Watch;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// The words of a command: it is `doing` something to `rows`, which then are `done`.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// `judging`
    pub doing: &'static str,
    /// `rows`
    pub rows: &'static str,
    /// `judged`
    pub done: &'static str,
}

/// A command's rows, once its options are checked.
#[derive(Clone, Debug)]
pub struct RowJob<S> {
    /// What is read, and where it goes.
    pub job: Job<S>,
    words: Words,
    quiet: bool,
}

impl<S: Source> RowJob<S> {
    /// Rows of a source, written as these options say by a program of this name; a note says so where the output's name promises another
    /// format.
    pub fn new(name: &str, words: Words, source: S, output: &OutputArgs, carry: &CarryArgs, quiet: bool) -> Self {
        tell_json_lines(&output.output);
        let job = Job {
            carry: carry.chosen.clone(),
            cuts: carry.cuts.clone(),
            write: output.write.options(),
            ..Job::new(source, &output.output, program(name))
        };
        Self { job, words, quiet }
    }

    /// As [`Job::check`]; says which rows get no score, and which grades of people are none.
    ///
    /// # Errors
    /// As [`Job::check`].
    pub fn check(
        &self,
        known: &'static [&'static str],
        see: impl FnMut(&S::Item) -> Result<Option<String>>,
    ) -> Result<Checked> {
        let checked = self.job.check(known, see)?;
        tell_unread(&checked.unread);
        Ok(checked)
    }

    /// What else decides about a row.
    #[must_use]
    pub fn with_settings(mut self, settings: impl IntoIterator<Item = (String, serde_json::Value)>) -> Self {
        self.job.settings.extend(settings);
        self
    }

    /// A model on this machine makes the rows; `template` is the content id of its prompt template, where there is one.
    ///
    /// # Errors
    /// If the model's folder cannot be read; a usage error for rows that [need a model](ModelArgs::admit).
    pub fn with_model(mut self, model: &ModelArgs, template: Option<&str>) -> Result<Self> {
        self.job.source.input().map_or(Ok(()), |input| model.admit(input))?;
        let (made_by, settings) = model.described(template)?;
        self.job.made_by = made_by;
        Ok(self.with_settings(settings))
    }

    /// As [`Job::run`]; says how many rows there are, and that nothing was left to do where that is so.
    ///
    /// # Errors
    /// As [`Job::run`].
    pub fn run<J: Into<Made>>(
        &self,
        checked: &Checked,
        judge: impl FnOnce(Pending<'_, S>) -> Result<J>,
    ) -> Result<Finished<'_, S>> {
        let mut details = String::new();
        let finished = self.job.run(checked, |missing| {
            let made = judge(Pending { missing, words: self.words, quiet: self.quiet })?.into();
            details = made.details;
            anyhow::Ok(made.result)
        })?;
        let (Words { rows, done, .. }, of, path) = (self.words, checked.rows, self.job.output.display());
        let scored = finished.counts.scored;
        match finished.summary {
            Some(_) => say(format_args!("{scored} of {of} {rows} {done}{details} -> {path}"))?,
            None => say(format_args!("{path} is complete: {scored} of {of} {rows} {done}; nothing to do"))?,
        }
        Ok(finished)
    }

    /// Says so where the tokenizer would not put one of these labels as a token of its own right after the first prompt that the model
    /// reads; `prompt` is that of a row, if it has one.
    ///
    /// # Errors
    /// As [`split_label`].
    pub fn tell_split_label(
        &self,
        model: &Model,
        labels: &[String],
        prompt: impl Fn(&S::Item) -> Option<Prompt>,
    ) -> Result<()> {
        let prompts = self.job.source.items()?.filter_map(|item| item.map(|item| prompt(&item)).transpose());
        if let Some((label, found)) = split_label(model, prompts, labels)? {
            let hint = offered(["; --prefill may end the prompt better".to_owned()]).unwrap_or_default();
            tell(format_args!(
                "note: after the first prompt the tokenizer would write label {label:?} as {:?}, not as {:?}{hint}",
                found.together, found.apart
            ));
        }
        Ok(())
    }

    /// Says something to people, unless they want to hear nothing.
    pub fn tell(&self, line: impl std::fmt::Display) {
        if !self.quiet {
            tell(line);
        }
    }
}

/// Refuses an input, though not a part of one, of which no row can be used: `what` says for what, and the hint what to do.
///
/// # Errors
/// The first row and why it cannot be used.
pub fn refuse_unusable(source: &impl Source, checked: &Checked, what: &str, hint: Option<String>) -> Result<()> {
    let Some((id, why)) = checked.unread.all().filter(|_| source.part().is_none()) else { return Ok(()) };
    let what = format!("{}: no row {what}; the first is {id}: {why}", source.path().display());
    bail!([Some(what), hint].into_iter().flatten().collect::<Vec<_>>().join("\n  "))
}

/// Rows that were made now, and what is said of them behind their number.
#[derive(Debug)]
pub struct Made {
    /// The rows.
    pub result: RunResult,
    /// ` (…)`, or nothing.
    pub details: String,
}

impl From<RunResult> for Made {
    fn from(result: RunResult) -> Self {
        Self { result, details: String::new() }
    }
}

/// The rows that are missing, before whoever makes them.
pub struct Pending<'j, S: Clone> {
    /// The rows.
    pub missing: Missing<'j, S>,
    words: Words,
    quiet: bool,
}

impl<S: Source> Pending<'_, S> {
    /// The progress that is shown from now on. From now on, too, a signal waits for the end of a row: until the model is there it ends the
    /// process at once.
    ///
    /// # Errors
    /// If signals cannot be caught.
    pub fn watch(&self) -> Result<Watch> {
        Watch::new(self.words.doing, self.words.rows, self.quiet)
    }

    /// As [`Missing::judge`].
    ///
    /// # Errors
    /// As [`Missing::judge`]; [`Stopped`](crate::terminal::interrupt::Stopped) after a signal.
    pub fn judge<T: Serialize, E: Into<AnyError>>(
        self,
        resolved: Resolved,
        model: &dyn TextModel,
        judges: &[&dyn Judge<S::Item>],
        row: impl FnMut(ItemResult<S::Item>) -> Result<(T, Fate), E>,
    ) -> Result<RunResult> {
        let mut watch = self.watch()?;
        let result = self.missing.judge(resolved, model, judges, row, &mut watch)?;
        watch.finish(result.summary.cancelled)?;
        Ok(result)
    }

    /// As [`Missing::read`].
    ///
    /// # Errors
    /// As [`judge`](Self::judge).
    pub fn read<T: Serialize>(
        self,
        resolved: Resolved,
        model: &dyn TextModel,
        want: Want,
        prompt: impl Fn(&S::Item) -> Result<Prompt, Unscored> + Send + Sync,
        row: impl FnMut(S::Item, &Outcome) -> Result<(T, Fate), Error>,
    ) -> Result<RunResult> {
        let mut watch = self.watch()?;
        let result = self.missing.read(resolved, model, want, prompt, row, &mut watch)?;
        watch.finish(result.summary.cancelled)?;
        Ok(result)
    }
}

/// What is known of a run once its model is loaded.
#[must_use]
pub fn resolved(model: &Model, template: Option<String>, settings: Settings) -> Resolved {
    Resolved { model: Some(model.info().clone()), template, settings, ..Resolved::default() }
}
