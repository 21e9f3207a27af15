//! Typed questions about a state, with a probability for every option.
//!
//! `judge decide --model FOLDER --input states.jsonl --questions questions.json --output answers.jsonl`

mod measured;
mod service;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use judge_core::decision::{DecisionJudge, DecisionOrigin, DecisionTable, DecisionWeights, Questions};
use judge_core::{Backbone, ItemResult, Outcome};
use judge_data::{
    Carry, CarryCheck, Counts, DecisionRecord, DecisionRow, Fate, Input, Opened, Outputs, Resolved, RunRecord, Settings,
};
use serde_json::json;

use crate::args::bars::{self, BarArgs, rows_used_json};
use crate::args::decisions::{DecisionArgs, questions, refuse_dressing};
use crate::args::files::{InputArgs, OutputArgs};
use crate::args::model_args::ModelArgs;
use crate::report::write_json;
use crate::terminal::console::{end_of_rows, say, tell_label_mass, usage};
use crate::terminal::options::offered;
use crate::terminal::pace::Watch;
use crate::unread::Unread;
use measured::{Fitting, Measured};
use service::Service;

/// How the help of the command ends.
const EXAMPLES: &str = "\
Examples:
  judge decide --input states.jsonl --questions questions.json --output answers.jsonl --model path/to/model
  judge decide --input labelled.jsonl --questions questions.json --output answers.jsonl --model path/to/model --fit weights.json

More: docs/decisions.md";

/// Answer typed questions about a state: yes or no, a choice, an ordered score.
///
/// Input: {"id", "state": text or JSON, "questions"?: {name: question}, "labels"?: {name: an option, a level, true or false, or {option:
/// share}}}. A question is {"type": "noul", "instructions"?, "criteria"?: {"true"?, "false"?}}, {"type": "choice", "instructions"?,
/// "criteria": {option: text or null}} or {"type": "score", "instructions"?, "criteria": [a text for each level]}. Output: {"id", "answers":
/// {name: answer with a probability for every option}, "label_mass", "input_tokens"} and the row's other fields. Nothing is written by the
/// model: the probabilities are read where its reply would begin. Rows with labels are measured, and --fit learns from them. With
/// --base-url a service that takes decisions is asked in the place of a model on this machine.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Questions for rows that have none of their own: a JSON object of questions by name
    #[arg(long, value_name = "FILE")]
    questions: Option<PathBuf>,
    /// Where accuracy, KL divergence, Brier score and calibration error go, of rows with labels
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    #[command(flatten)]
    bars: BarArgs,
    #[command(flatten)]
    fitting: Fitting,
    /// Which other fields are carried to the output: all, none, or names with commas between
    #[arg(long, default_value = "all", value_name = "FIELDS")]
    carry: Carry,
    #[command(flatten)]
    decisions: DecisionArgs,
    #[command(flatten)]
    service: Service,
    #[command(flatten)]
    model: ModelArgs,
}

/// What little probability on the labels means, and what to do.
pub(super) const NO_ANSWER: &str = "; what the model considers so little says little: the prompt may not lead it to an answer (see \
                                    --decision-prompt and --decision-template)";

/// The name in records.
const PROGRAM: &str = "decide";

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.bars.gate(PROGRAM, || decided(cli))
}

fn decided(cli: &Cli) -> Result<bars::Measured> {
    refuse_dressing(&cli.model)?;
    cli.decisions.check(cli.fitting.fit.is_some())?;
    let inputs = [&cli.input.input].into_iter().chain(&cli.questions).chain(cli.decisions.inputs());
    let outputs =
        Outputs::new(inputs).rows([&cli.output.output]).reports(PROGRAM, cli.json.iter().chain(cli.bars.reports()));
    let outputs = outputs.documents::<DecisionWeights>(&cli.fitting.fit);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let input = cli.input.open()?;
    let asked = cli.questions.as_deref().map(questions).transpose()?;
    let (rows, has_labels) = cli.check_rows(&input, asked.is_some())?;
    let Done { origin, counts } = match cli.service.named() {
        Some(named) => named.ask(cli, &input, rows, asked.as_ref())?,
        None => cli.read(&input, rows, asked.as_ref())?,
    };
    end_of_rows(&counts)?;
    let mut measured = if has_labels { Measured::of(cli, asked.as_ref())? } else { Measured::nothing() };
    measured.figures.statistics.extend(rows_used_json(counts.scored, counts.rows()));
    if let (Some(path), Some(origin)) = (&cli.fitting.fit, &origin) {
        measured.fit(&cli.fitting, origin, path, cli.output.write.overwrite)?;
    }
    if let Some(path) = &cli.json {
        write_json(path, PROGRAM, &measured.figures)?;
    }
    measured.print()?;
    Ok(bars::Measured { statistics: measured.figures.statistics.into(), worst: String::new() })
}

/// What a run leaves beside its rows.
struct Done {
    /// What weights that are fitted on the rows belong to, where they are to be fitted.
    origin: Option<DecisionOrigin>,
    /// What became of the rows.
    counts: Counts,
}

impl Cli {
    /// Has a model on this machine read what is not answered yet.
    fn read(&self, input: &Input, rows: usize, asked: Option<&Questions>) -> Result<Done> {
        let (mut settings, model) = self.decisions.settings(&self.model, asked.cloned())?;
        settings.every_layer |= self.fitting.fit.is_some();
        let mut of_plan = self.settings();
        of_plan.insert("decision".to_owned(), settings.to_json());
        let plan = self.output.plan(PROGRAM, input, rows, &self.input, &model, None, of_plan)?;
        let start = match plan.open()? {
            Opened::Ready(start) => start,
            Opened::Complete(record) => {
                self.say_complete(&record, rows)?;
                // The model is needed to say what weights belong to, and for nothing else.
                let origin = match self.fitting.fit {
                    Some(_) => Some(DecisionJudge::new(settings, &model.load()?)?.origin()),
                    None => None,
                };
                return Ok(Done { origin, counts: record.counts });
            }
        };
        let loaded = model.load()?;
        let judge = DecisionJudge::new(settings, &loaded)?;
        let resolved = Resolved { model: Some(loaded.info().clone()), ..Resolved::default() };
        let records = self.records(input)?;
        let mut watch = Watch::new("deciding", "rows", self.model.quiet)?;
        let row = |result: ItemResult<DecisionRecord>| {
            let tables = |questions: &Questions| {
                let every_layer = judge.settings().every_layer;
                let tables = || judge.tables(questions, &result.rounds(0)).map_err(|error| anyhow::anyhow!("{error}"));
                if every_layer { tables() } else { Ok(Vec::new()) }
            };
            self.row(&result, asked, tables)
        };
        let result = start.judge(resolved, &loaded, &[&judge], records, row, &mut watch)?;
        watch.finish(result.summary.cancelled)?;
        self.say_counts(&result.counts, rows)?;
        tell_label_mass(&result.summary, "the labels of the options", NO_ANSWER);
        Ok(Done { origin: Some(judge.origin()), counts: result.counts })
    }

    /// What of these options decides about a row, whoever answers.
    fn settings(&self) -> Settings {
        [("carry".to_owned(), json!(format!("{:?}", self.carry)))].into()
    }

    fn say_complete(&self, record: &RunRecord, rows: usize) -> Result<()> {
        let path = self.output.output.display();
        say(format_args!("{path} is complete: {} of {rows} rows answered; nothing to do", record.counts.scored))
    }

    fn say_counts(&self, counts: &Counts, rows: usize) -> Result<()> {
        say(format_args!("{} of {rows} rows answered -> {}", counts.scored, self.output.output.display()))
    }

    /// The rows of the input.
    fn records(
        &self,
        input: &Input,
    ) -> Result<impl Iterator<Item = Result<DecisionRecord, judge_data::Error>> + use<>> {
        let columns = self.input.columns.clone().unwrap_or_default();
        Ok(DecisionRecord::all(input, self.model.limit, &columns)?)
    }

    /// Reads the whole input before any model work: how many rows there are, and whether any has labels. All must have questions.
    fn check_rows(&self, input: &Input, has_questions: bool) -> Result<(usize, bool)> {
        let (mut rows, mut unread, mut without, mut has_labels) = (0, Unread::default(), 0, false);
        let (mut no_labels, mut carried) = (Unread::default(), CarryCheck::new(&self.carry, DecisionRow::KNOWN));
        for record in self.records(input)? {
            let record = record?;
            unread.note(&record.id, record.unread.as_ref().map(|why| why.detail.clone()));
            no_labels.note(&record.id, record.no_labels);
            has_labels |= !record.labels.is_empty();
            without += usize::from(record.questions.is_none() && record.unread.is_none());
            carried.see_fields(record.extra)?;
            rows += 1;
        }
        if rows == 0 {
            return Err(usage(format!("{} has no rows", input.path().display())));
        }
        if let Some((id, why)) = unread.all().filter(|_| input.part().is_none()) {
            let what = format!("{}: no row can be asked about; the first is {id}: {why}", input.path().display());
            let hint = offered(["if the states are in another column: --columns state=NAME".to_owned()]);
            return Err(usage([Some(what), hint].into_iter().flatten().collect::<Vec<_>>().join("\n")));
        }
        carried.finish(input)?;
        unread.tell_that("cannot be asked about and are written as unscored");
        no_labels.tell_that("have labels that cannot be read and are left out");
        if !has_questions && without > 0 {
            let what =
                format!("{without} of {rows} rows have no `questions`; --questions has those for all rows without");
            return Err(usage(what));
        }
        Ok((rows, has_labels))
    }

    /// The row of a result; `asked` are the questions for rows without their own, and `tables` finds the label logits of all layers.
    fn row(
        &self,
        result: &ItemResult<DecisionRecord>,
        asked: Option<&Questions>,
        tables: impl FnOnce(&Questions) -> Result<Vec<DecisionTable>>,
    ) -> Result<(DecisionRow, Fate)> {
        let tokens = |outcome: &Outcome| outcome.reading().ok().and_then(|reading| reading.prompt_tokens);
        let input_tokens = result.rounds(0).outcomes().filter_map(tokens).reduce(|sum, tokens| sum + tokens);
        let verdict = &result.verdicts[0];
        let (mut answered, mut of_layers) = (Vec::new(), Vec::new());
        if let (Some(_), Some(questions)) = (verdict.score(), result.item.questions.as_ref().or(asked)) {
            answered = questions.answers(verdict)?;
            of_layers = tables(questions)?;
        }
        Ok(DecisionRow::new(result.item.clone(), verdict, answered, of_layers, input_tokens, &self.carry)?)
    }
}
