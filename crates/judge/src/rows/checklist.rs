//! Responses judged by a list of criteria, each a yes-or-no question of its own.
//!
//! `judge checklist --model FOLDER --input responses.jsonl --checklist criteria.json --output scores.jsonl`

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::Args;
use judge_core::decision::{Checklist, ChecklistJudge, DecisionJudge};
use judge_core::settings::settings_from_json;
use judge_core::{Backbone, Fields, ItemResult, Score, Unscored, Verdict};
use judge_data::{
    Carry, CarryCheck, DatasetFormat, Fate, Human, Input, Judged, Numbered, Opened, OutputRow, Outputs, Resolved,
    Settings,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::args::decisions::{DecisionArgs, refuse_dressing};
use crate::args::files::{InputArgs, OutputArgs};
use crate::args::model_args::ModelArgs;
use crate::missing_fields::Unread;
use crate::rows::decide::NO_ANSWER;
use crate::terminal::console::{end_of_rows, say, tell_label_mass, usage};
use crate::terminal::pace::Watch;

/// Judge responses by a list of criteria, each of which the model is asked about by itself.
///
/// Input: {"id", "instruction", "response", "reference"?, "checklist"?, "human"?}. A checklist is a list of texts, or of {"criterion",
/// "name"?, "weight"?, "fatal"?}; weights below 0 are of what a response should not do. Output: {"id", "human", "score", "criteria": {name:
/// the probability that it is met}} and the row's other fields. The score, from 0 to 1, is the weighted share of the criteria that are
/// met; it is 0 where a fatal one is more likely unmet.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// The criteria for rows that have none of their own
    #[arg(long, value_name = "FILE")]
    checklist: Option<PathBuf>,
    /// Which other fields are carried to the output: all, none, or names with commas between
    #[arg(long, default_value = "all", value_name = "FIELDS")]
    carry: Carry,
    #[command(flatten)]
    decisions: DecisionArgs,
    #[command(flatten)]
    model: ModelArgs,
}

const PROGRAM: &str = "checklist";

/// What is said of a response.
#[derive(Serialize)]
#[serde(untagged)]
enum Checked {
    Scored { score: f64, criteria: Map<String, Value> },
    Unscored { unscored: Unscored },
}

impl Judged for Checked {
    const KNOWN: &'static [&'static str] = &["id", "human", "score", "criteria", "unscored"];

    fn unscored(&self) -> Option<&Unscored> {
        match self {
            Self::Scored { .. } => None,
            Self::Unscored { unscored } => Some(unscored),
        }
    }
}

/// A list of criteria from a file.
pub(crate) fn read_checklist(path: &Path) -> Result<Checklist> {
    settings_from_json(&judge_data::read_text(path)?).with_context(|| path.display().to_string())
}

/// The probability that each criterion is met, by name.
pub(crate) fn criteria(score: &Score) -> Map<String, Value> {
    score.parts.iter().filter_map(|part| Some((part.name.clone(), part.verdict.value()?.into()))).collect()
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    refuse_dressing(&cli.model)?;
    cli.decisions.check(false)?;
    let inputs = [&cli.input.input].into_iter().chain(&cli.checklist).chain(cli.decisions.inputs());
    let outputs = Outputs::new(inputs).rows([&cli.output.output]);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let list = cli.checklist.as_deref().map(read_checklist).transpose()?;
    let input = cli.input.open()?;
    let rows = cli.check_rows(&input, list.is_some())?;
    let (decisions, model) = cli.decisions.settings(&cli.model, None)?;
    let settings = Settings::from([
        ("carry".to_owned(), json!(format!("{:?}", cli.carry))),
        ("decision".to_owned(), decisions.to_json()),
        ("checklist".to_owned(), json!(list)),
    ]);
    let plan = cli.output.plan(PROGRAM, &input, rows, &cli.input, &model, None, settings)?;
    let start = match plan.open()? {
        Opened::Complete(record) => {
            let path = cli.output.output.display();
            say(format_args!("{path} is complete: {} of {rows} rows scored; nothing to do", record.counts.scored))?;
            return end_of_rows(&record.counts);
        }
        Opened::Ready(start) => start,
    };
    let model = model.load()?;
    let judge = ChecklistJudge::new(DecisionJudge::new(decisions, &model)?, list);
    let resolved = Resolved { model: Some(model.info().clone()), ..Resolved::default() };
    let records = cli.input.records(&input, Some(DatasetFormat::Graded), cli.model.limit)?;
    let mut watch = Watch::new("judging", "rows", cli.model.quiet)?;
    let result =
        start.judge(resolved, &model, &[&judge], Numbered::all(records), |result| cli.row(result), &mut watch)?;
    watch.finish(result.summary.cancelled)?;
    tell_label_mass(&result.summary, "the labels of the criteria's answers", NO_ANSWER);
    let counts = result.counts;
    say(format_args!("{} of {rows} rows scored -> {}", counts.scored, cli.output.output.display()))?;
    end_of_rows(&counts)
}

impl Cli {
    /// Reads the whole input before any model work: how many rows there are.
    fn check_rows(&self, input: &Input, has_list: bool) -> Result<usize> {
        let (mut rows, mut unread, mut without) = (0, Unread::default(), 0);
        let mut carried = CarryCheck::new(&self.carry, Checked::KNOWN);
        for record in self.input.records(input, Some(DatasetFormat::Graded), self.model.limit)? {
            let record = record?;
            unread.see(&record);
            without += usize::from(record.json("checklist").is_none() && record.field("checklist").is_none());
            carried.see(record)?;
            rows += 1;
        }
        carried.finish(input)?;
        unread.tell();
        match rows {
            0 => Err(usage(format!("{} has no rows", input.path().display()))),
            _ if without == rows && !has_list => {
                Err(usage("no row has a `checklist` of its own; --checklist has the criteria for rows without"))
            }
            _ => Ok(rows),
        }
    }

    fn row(&self, result: ItemResult<Numbered>) -> Result<(OutputRow<Checked>, Fate)> {
        let checked = match &result.verdicts[0] {
            Verdict::Unscored(unscored) => Checked::Unscored { unscored: unscored.clone() },
            Verdict::Scored(score) => Checked::Scored { score: score.value, criteria: criteria(score) },
        };
        let record = result.item.record;
        let (id, human) = (record.id().clone(), Human::Numbers(record.raters().into_owned()));
        Ok(OutputRow::of(id, human, checked, record.into_extra(), &self.carry)?)
    }
}
