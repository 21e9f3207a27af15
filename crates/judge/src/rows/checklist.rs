//! Responses judged by a list of criteria, each a yes-or-no question of its own.
//!
//! `judge checklist --model FOLDER --input responses.jsonl --checklist criteria.json --output scores.jsonl`

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use judge_cli::args::decisions::{DecisionArgs, NO_ANSWER, refuse_dressing};
use judge_cli::args::files::{CarryArgs, InputArgs, OutputArgs};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::checklists::{criteria, read_checklist};
use judge_cli::row_job::{RowJob, Words, resolved};
use judge_cli::terminal::console::{end_of_rows, tell_label_mass, usage};
use judge_core::decision::{ChecklistJudge, DecisionJudge};
use judge_core::{Fields, ItemResult, Unscored, Verdict};
use judge_data::{Carry, DatasetFormat, Error, Fate, Human, Judged, Numbered, OutputRow, Outputs, Settings};
use serde::Serialize;
use serde_json::{Map, Value, json};

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
    #[command(flatten)]
    pub(crate) carry: CarryArgs,
    #[command(flatten)]
    decisions: DecisionArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

const PROGRAM: &str = "checklist";

const WORDS: Words = Words { doing: "judging", rows: "rows", done: "scored" };

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

pub(crate) fn run(cli: &Cli) -> Result<()> {
    refuse_dressing(&cli.model)?;
    cli.decisions.check_without_tables()?;
    let inputs = [&cli.input.input].into_iter().chain(&cli.checklist).chain(cli.decisions.inputs());
    let outputs = Outputs::new(inputs).rows([&cli.output.output]);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let list = cli.checklist.as_deref().map(read_checklist).transpose()?;
    let source = cli.input.source(&cli.input.open()?, Some(DatasetFormat::Graded), cli.model.limit);
    let job = RowJob::new(PROGRAM, WORDS, source, &cli.output, &cli.carry, cli.model.quiet);
    let mut has_list = list.is_some();
    let checked = job.check(Checked::KNOWN, |Numbered { record, .. }| {
        has_list |= record.json("checklist").is_some() || record.field("checklist").is_some();
        Ok(None)
    })?;
    if !has_list {
        return Err(usage("no row has a `checklist` of its own; --checklist has the criteria for rows without"));
    }
    let (decisions, model) = cli.decisions.settings(&cli.model, None, false)?;
    let settings = [("decision".to_owned(), decisions.to_json()), ("checklist".to_owned(), json!(list))];
    let job = job.with_settings(settings).with_model(&model, None)?;
    let finished = job.run(&checked, |pending| {
        let model = model.load()?;
        let judge = ChecklistJudge::new(DecisionJudge::new(decisions, &model)?, list)?;
        let resolved = resolved(&model, None, Settings::new());
        let result = pending.judge(resolved, &model, &[&judge], |result| row(result, &cli.carry.fields()))?;
        tell_label_mass(&result.summary, "the labels of the criteria's answers", NO_ANSWER);
        Ok(result)
    })?;
    end_of_rows(&finished.counts)
}

fn row(result: ItemResult<Numbered>, carry: &Carry) -> Result<(OutputRow<Checked>, Fate), Error> {
    let checked = match &result.verdicts[0] {
        Verdict::Unscored(unscored) => Checked::Unscored { unscored: unscored.clone() },
        Verdict::Scored(score) => Checked::Scored { score: score.value, criteria: criteria(score) },
    };
    let record = result.item.record;
    let (id, human) = (record.id().clone(), Human::Numbers(record.raters().into_owned()));
    OutputRow::of(id, human, checked, record.into_extra(), carry)
}
