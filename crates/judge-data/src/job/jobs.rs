//! What programs do with a whole file: read all its prompts with a model, or judge all its records.

use std::ops::ControlFlow;
use std::path::Path;

use judge_core::{
    Backbone, Fields, ItemId, ItemResult, Judge, JudgeError, Layer, Outcome, Prompt, PromptTemplate, Request, Rounds,
    Runner, Score, TextModel, Unscored, Verdict, Want,
    lager::LagerJudge,
    model::BackboneError,
    runner::{RunEvent, RunSettings, RunSummary},
};

use serde_json::{Value, json};

use crate::rows::row::describe;
use crate::{Carry, Dataset, Error, Fate, JudgedScore, LabelTable, Numbered, ScoreOutcome, ScoreRow};

/// Runs the same [`Want`] on every prompt and calls `store` with each outcome as it completes, together with the caller's data for
/// that prompt. Of what has no prompt, such as a [`Record::Unread`](crate::Record::Unread), the reason is its outcome.
///
/// # Errors
/// Of the prompts, the model, or `store`; what was stored before stays.
pub fn read_rows<T>(
    model: &dyn TextModel,
    want: Want,
    prompts: impl Iterator<Item = Result<(ItemId, T, Result<Prompt, Unscored>), Error>>,
    mut store: impl FnMut(&ItemId, T, &Outcome) -> Result<ControlFlow<()>, Error>,
) -> Result<RunSummary, Error> {
    let judge = Reader { want, prompt: |(_, prompt): &(T, Result<Prompt, Unscored>)| prompt.clone() };
    let settings = RunSettings { in_order: false, unique_ids: false, ..RunSettings::default() }; // the data set checks them
    let runner = Runner::new(model, vec![&judge as &dyn Judge<(T, Result<Prompt, Unscored>)>]).with_settings(settings);
    let items = prompts.map(|prompt| prompt.map(|(id, beside, prompt)| (id, (beside, prompt))));
    let summary = runner.try_run(items, |event| -> Result<ControlFlow<()>, Error> {
        let RunEvent::Item(result) = event else { return Ok(ControlFlow::Continue(())) };
        let ItemResult { id, item: (beside, prompt), outcomes, .. } = result;
        match (prompt, outcomes.into_iter().flatten().flatten().next()) {
            (Err(why), _) => store(&id, beside, &Outcome::Unscored(why)),
            (Ok(_), Some(outcome)) => store(&id, beside, &outcome),
            (Ok(_), None) => Ok(ControlFlow::Continue(())), // it asks once for each
        }
    });
    summary.map_err(Error::of_run)
}

/// A judge that asks for the same of each item, and has no opinion: `prompt` says of what, or why nothing is read.
pub(crate) struct Reader<P> {
    pub(crate) want: Want,
    pub(crate) prompt: P,
}

impl<I: ?Sized, P: Fn(&I) -> Result<Prompt, Unscored> + Send + Sync> Judge<I> for Reader<P> {
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

/// Looks for a field of the templates that none of the rows of the file's head has: the rows are not to blame then.
/// A field with a default need not be there.
///
/// # Errors
/// [`Error::NoRowHas`]; whatever is wrong with the records that are looked at.
pub fn check_templates<'t>(
    records: Dataset,
    templates: impl IntoIterator<Item = &'t PromptTemplate>,
) -> Result<(), Error> {
    let path = records.path().to_path_buf();
    check_templates_on(&path, &records.into_head()?, templates)
}

/// The same of records, or of items that are made of them.
///
/// # Errors
/// [`Error::NoRowHas`].
pub fn check_templates_on<'t, I: Fields>(
    path: &Path,
    head: &[I],
    templates: impl IntoIterator<Item = &'t PromptTemplate>,
) -> Result<(), Error> {
    let rows = head.len();
    if rows == 0 {
        return Ok(());
    }
    for template in templates {
        let fields = template.field_names().into_iter();
        let absent = |field: &&str| !head.iter().any(|item| item.field(field).is_some());
        if let Some(field) = fields.filter(|field| !template.defaults().contains_key(*field)).find(absent) {
            let mut found: Vec<String> = Vec::new();
            for name in head.iter().flat_map(Fields::names) {
                if !found.contains(&name) {
                    found.push(name);
                }
            }
            let holds = head.iter().find_map(|item| item.json(field)).map(|json| describe(&json.to_string()));
            return Err(Error::NoRowHas { path: path.to_path_buf(), rows, field: field.to_owned(), holds, found });
        }
    }
    Ok(())
}

/// The row of a LAGER judge's result: the table of these layers, its score, the human scores, and the other fields of the record.
/// Weights are fitted on a file of such rows if its run record says what the tables are read from:
/// [`Resolved::with_origin`](crate::Resolved::with_origin).
///
/// ```
/// use std::ops::ControlFlow;
///
/// use judge_core::testing::ScriptedBackbone;
/// use judge_core::{Backbone, Judge, Scale, lager::{LagerJudge, LagerSettings}, runner::RunEvent};
/// use judge_data::{Carry, Error, Job, MadeBy, Numbered, Program, Resolved, ScoreRow, ScoreTable, score_row};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let (input, output) = (folder.path().join("rows.jsonl"), folder.path().join("scores.jsonl"));
/// # std::fs::write(&input, r#"{"id": 1, "instruction": "2 + 2?", "response": "4", "human": 5}"#)?;
/// let model = ScriptedBackbone::new(4);
/// let judge = LagerJudge::new(LagerSettings::prompt_end(Scale::integers(1, 5)?), &model)?;
/// let resolved = Resolved::of(model.info(), [&judge as &dyn Judge<Numbered>])?.with_origin(judge.origin());
///
/// let job = Job::open(&input, &output, Program::new("my_judge", env!("CARGO_PKG_VERSION")))?;
/// let job = Job { made_by: MadeBy::Model(resolved.clone()), ..job };
/// let checked = job.check(&ScoreRow::KNOWN, |_| Ok::<_, Error>(None))?;
/// job.run(&checked, |missing| {
///     let row = |result| score_row(&judge, result, &model.info().layers(), &Carry::All);
///     missing.judge(resolved, &model, &[&judge], row, &mut |_: &RunEvent<Numbered>| ControlFlow::Continue(()))
/// })?;
/// assert_eq!(ScoreTable::read(&output)?.origin.as_ref(), Some(judge.origin()));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::FieldClash`] for a carried field that the row has one of its own for; [`Error::Core`] if the result is not this judge's, or for
/// a layer that the model does not have.
pub fn score_row(
    judge: &LagerJudge,
    result: ItemResult<Numbered>,
    layers: &[Layer],
    carry: &Carry,
) -> Result<(ScoreRow, Fate), Error> {
    let outcome = match result.verdicts.first() {
        Some(Verdict::Scored(score)) => match judge.step(&result.rounds(0)) {
            Ok((labels, step)) => {
                let names: Vec<String> = judge.settings().scale.labels().map(str::to_owned).collect();
                let completion = score.text.as_deref().unwrap_or_default();
                let table = LabelTable::from_step(labels, step, layers, &names, completion)?;
                ScoreOutcome::Read(table, Some(JudgedScore::from(score)))
            }
            Err(JudgeError::Unscored(unscored)) => ScoreOutcome::Unscored(unscored),
            Err(JudgeError::Failed(source)) => return Err(judge_core::Error::Observer { source }.into()),
        },
        Some(Verdict::Unscored(unscored)) => ScoreOutcome::Unscored(unscored.clone()),
        None => return Err(judge_core::Error::NotRead { what: "verdict" }.into()),
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

/// Says where the tokenizer would not put a label as a token of its own right after the first of these prompts that the model reads: the
/// label, its tokens there, and its own. `None` if it would for all. A prompt that has no tokens, or that the chat template refuses, is
/// passed over; it will be unscored.
///
/// # Errors
/// Those of the prompts' source; [`Error::Core`] if the model cannot be asked.
pub fn split_label(
    model: &dyn Backbone,
    prompts: impl IntoIterator<Item = Result<Prompt, Error>>,
    labels: &[String],
) -> Result<Option<(String, judge_core::model::LabelInContext)>, Error> {
    'prompts: for prompt in prompts {
        let prompt = prompt?;
        if prompt.is_empty() {
            continue;
        }
        for label in labels {
            match model.label_in_context(&prompt, label) {
                Ok(found) if !found.agrees => return Ok(Some((label.clone(), found))),
                Ok(_) => {}
                Err(BackboneError::Prompt { .. }) => continue 'prompts,
                Err(error) => return Err(judge_core::Error::from(error).into()),
            }
        }
        break;
    }
    Ok(None)
}
