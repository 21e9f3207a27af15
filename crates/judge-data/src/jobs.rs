//! What programs do with a whole file: read all its prompts with a model, or judge all its records.

use std::borrow::Cow;
use std::ops::ControlFlow;

use judge_core::{
    Backbone, Fields, ItemId, ItemResult, Judge, JudgeError, LagerJudge, Outcome, Prompt, ReadOnly, RunEvent,
    RunSettings, RunSummary, Runner, TextModel, Want,
};

use crate::{Error, Extra, Fate, JudgedScore, LabelTable, Record, Run, ScoreOutcome, ScoreRow};

/// A record with its place in the file, counted from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Numbered {
    /// The place.
    pub row: usize,
    /// The record.
    pub record: Record,
}

impl Fields for Numbered {
    fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        self.record.field(name)
    }

    fn names(&self) -> Vec<String> {
        self.record.names()
    }
}

/// Judges the records of a data set that a run does not have yet, and writes what `row` makes of each result. The rows are in the run's file when this
/// returns; [`Run::finish`] puts the file in place.
///
/// `observe` sees every event of the run, a result before it is written; [`ControlFlow::Break`] ends the work, and
/// the summary says that it was cancelled.
///
/// # Errors
/// Whatever is wrong with a record, with `row`, or with the disk; as [`Run::judged_by`]; [`Error::Core`] if the judge or the model fails. What was written
/// before stays.
pub fn judge_rows<T: serde::Serialize>(
    run: &mut Run,
    model: &dyn TextModel,
    judges: Vec<&dyn Judge<Numbered>>,
    records: impl Iterator<Item = Result<Record, Error>>,
    mut row: impl FnMut(ItemResult<Numbered>) -> Result<(T, Fate), Error>,
    mut observe: impl FnMut(&RunEvent<Numbered>) -> ControlFlow<()>,
) -> Result<RunSummary, Error> {
    run.judged_by(judges.iter().copied())?;
    let done: Vec<bool> = (0..run.rows()).map(|row| run.is_done(row)).collect();
    let pending = records.enumerate().filter(|(row, record)| record.is_err() || done.get(*row) != Some(&true));
    let items = pending.map(|(row, record)| record.map(|record| (record.id().clone(), Numbered { row, record })));
    let settings = RunSettings { in_order: false, unique_ids: false, ..RunSettings::default() }; // the data set checks them
    let runner = Runner::new(model, judges).with_settings(settings);
    let summary = runner.try_run(items, |event| -> Result<ControlFlow<()>, Error> {
        let flow = observe(&event);
        let RunEvent::Item(result) = event else { return Ok(flow) };
        let place = result.item.row;
        let (value, fate) = row(result)?;
        run.push(place, &value, fate)?;
        Ok(flow)
    });
    summary.map_err(Error::of_run)
}

/// Runs the same [`Want`] on every prompt and calls `store` with each outcome as it completes, together with the caller's data for
/// that prompt.
///
/// # Errors
/// Of the prompts, the model, or `store`; what was stored before stays.
pub fn read_rows<T>(
    model: &dyn TextModel,
    want: Want,
    prompts: impl Iterator<Item = Result<(ItemId, T, Prompt), Error>>,
    mut store: impl FnMut(&ItemId, T, &Outcome) -> Result<ControlFlow<()>, Error>,
) -> Result<RunSummary, Error> {
    let judge = ReadOnly::new(want);
    let settings = RunSettings { in_order: false, unique_ids: false, ..RunSettings::default() }; // the data set checks them
    let runner = Runner::new(model, vec![&judge as &dyn Judge<(T, Prompt)>]).with_settings(settings);
    let items = prompts.map(|prompt| prompt.map(|(id, beside, prompt)| (id, (beside, prompt))));
    let summary = runner.try_run(items, |event| -> Result<ControlFlow<()>, Error> {
        let RunEvent::Item(result) = event else { return Ok(ControlFlow::Continue(())) };
        match result.outcomes.iter().flatten().flatten().next() {
            Some(outcome) => store(&result.id, result.item.0, outcome),
            None => Ok(ControlFlow::Continue(())), // it asks once for each
        }
    });
    summary.map_err(Error::of_run)
}

/// The row of a LAGER judge's result: its table, its score, the human scores, and the other fields of the record.
///
/// # Errors
/// [`Error::FieldClash`] for a carried field that the row has one of its own for; [`Error::Core`] if the result is not this judge's.
pub fn score_row(judge: &LagerJudge, result: ItemResult<Numbered>, carry: &Carry) -> Result<(ScoreRow, Fate), Error> {
    let rounds = result.rounds(0);
    let outcome = match (result.verdicts.first().and_then(|verdict| verdict.score()), judge.step(&rounds)) {
        (Some(score), Ok((labels, step))) => {
            let names: Vec<String> = judge.settings().scale.labels().map(str::to_owned).collect();
            let completion = score.text.as_deref().unwrap_or_default();
            ScoreOutcome::Read(LabelTable::from_step(labels, step, &names, completion)?, Some(JudgedScore::from(score)))
        }
        (_, Err(JudgeError::Unscored(unscored))) => ScoreOutcome::Unscored(unscored),
        (_, Err(JudgeError::Failed(source))) => return Err(judge_core::Error::Observer { source }.into()),
        (None, Ok(_)) => return Err(judge_core::Error::NotRead { what: "score of a table that was read" }.into()),
    };
    // Why there is no outcome is what the judge said, not that nothing was asked.
    let outcome = match result.verdicts.first().and_then(|verdict| verdict.unscored()) {
        Some(unscored) => ScoreOutcome::Unscored(unscored.clone()),
        None => outcome,
    };
    let human = result.item.record.raters().into_owned();
    let unscored = match &outcome {
        ScoreOutcome::Unscored(unscored) => Some(unscored.reason),
        ScoreOutcome::Read(..) => None,
    };
    let fate = Fate { unscored, graded: !human.is_empty() };
    let extra = carry.of(result.item.record.into_extra())?;
    Ok((ScoreRow { id: result.id, human, outcome, extra }, fate))
}

/// Which of a record's other fields are carried to the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Carry {
    /// All of them.
    #[default]
    All,
    /// These alone.
    Only(Vec<String>),
}

impl std::str::FromStr for Carry {
    type Err = std::convert::Infallible;

    /// `all`, `none`, or names with commas between.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "all" => Self::All,
            "none" => Self::Only(Vec::new()),
            names => Self::Only(names.split(',').map(|name| name.trim().to_owned()).collect()),
        })
    }
}

impl Carry {
    /// The fields that are carried.
    ///
    /// # Errors
    /// [`Error::FieldClash`] if a score row has a field of that name.
    pub fn of(&self, extra: Extra) -> Result<Extra, Error> {
        self.of_row(extra, &ScoreRow::KNOWN)
    }

    /// The fields that are carried to a row that has these fields of its own.
    ///
    /// # Errors
    /// [`Error::FieldClash`] for a field that is among them.
    pub fn of_row(&self, extra: Extra, known: &[&str]) -> Result<Extra, Error> {
        let extra = match self {
            Self::All => extra,
            Self::Only(names) => extra.retain(|name| names.iter().any(|wanted| wanted == name)),
        };
        if let Some((field, _)) = extra.iter().find(|(key, _)| known.contains(key)) {
            return Err(Error::FieldClash { field: field.to_owned() });
        }
        Ok(extra)
    }
}

/// Says where the tokenizer would not put a label as a token of its own right after `prompt`: the label, its tokens there, and its own. `None` if it would for all. A
/// prompt that has no tokens is passed over; it will be unscored.
///
/// # Errors
/// [`Error::Core`] if the model cannot be asked.
pub fn split_label(
    model: &dyn Backbone,
    prompt: &Prompt,
    labels: &[String],
) -> Result<Option<(String, judge_core::LabelInContext)>, Error> {
    if prompt.is_empty() {
        return Ok(None);
    }
    for label in labels {
        let found = model.label_in_context(prompt, label).map_err(judge_core::Error::from)?;
        if !found.agrees {
            return Ok(Some((label.clone(), found)));
        }
    }
    Ok(None)
}
