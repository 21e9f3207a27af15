//! Typed questions about a state, with a probability for every option.
//!
//! `judge decide --model FOLDER --input states.jsonl --questions questions.json --output answers.jsonl`

mod measured;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use judge_core::decision::{DecisionJudge, DecisionWeights};
use judge_core::{Backbone, ItemResult, JudgeError, Outcome};
use judge_data::{Carry, DecisionRecord, DecisionRow, Fate, Input, Opened, Outputs, Resolved};
use serde_json::json;

use crate::args::decisions::{DecisionArgs, questions, refuse_dressing};
use crate::args::files::{InputArgs, OutputArgs};
use crate::args::model_args::ModelArgs;
use crate::report::write_json;
use crate::terminal::console::{check_scored, say, tell, usage};
use crate::terminal::pace::Watch;
use measured::{Fitting, Measured};

/// Answer typed questions about a state: yes or no, a choice, an ordered score.
///
/// Input: {"id", "state": text or JSON, "questions"?: {name: question}, "labels"?: {name: an option, a level, true or false, or {option:
/// share}}}. A question is {"type": "noul", "instructions"?, "criteria"?: {"true"?, "false"?}}, {"type": "choice", "instructions"?,
/// "criteria": {option: text or null}} or {"type": "score", "instructions"?, "criteria": [a text for each level]}. Output: {"id", "answers":
/// {name: answer with a probability for every option}, "label_mass", "input_tokens"} and the row's other fields. Nothing is written by the
/// model: the probabilities are read where its reply would begin. Rows with labels are measured, and --fit learns from them.
#[derive(Args)]
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
    fitting: Fitting,
    /// Which other fields are carried to the output: all, none, or names with commas between
    #[arg(long, default_value = "all", value_name = "FIELDS")]
    carry: Carry,
    #[command(flatten)]
    decisions: DecisionArgs,
    #[command(flatten)]
    model: ModelArgs,
}

/// The name in records.
const PROGRAM: &str = "decide";

pub(crate) fn run(cli: &Cli) -> Result<()> {
    refuse_dressing(&cli.model)?;
    let inputs = [&cli.input.input].into_iter().chain(&cli.questions).chain(cli.decisions.inputs());
    let outputs = Outputs::new(inputs).rows([&cli.output.output]).reports(PROGRAM, &cli.json);
    let outputs = outputs.documents::<DecisionWeights>(&cli.fitting.fit);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let input = cli.input.open()?;
    let asked = cli.questions.as_deref().map(questions).transpose()?;
    let (rows, has_labels) = cli.check_rows(&input, asked.is_some())?;
    let (mut settings, model) = cli.decisions.settings(&cli.model, asked)?;
    settings.every_layer |= cli.fitting.fit.is_some();

    let mut of_plan = judge_data::Settings::default();
    of_plan.insert("carry".to_owned(), json!(format!("{:?}", cli.carry)));
    of_plan.insert("decision".to_owned(), settings.to_json());
    let plan = cli.output.plan(PROGRAM, &input, rows, &cli.input, &model, None, of_plan)?;
    let (judge, counts) = match plan.open()? {
        Opened::Complete(record) => {
            let path = cli.output.output.display();
            say(format_args!("{path} is complete: {} of {rows} rows answered; nothing to do", record.counts.scored))?;
            // The model is needed to say what weights belong to, and for nothing else.
            let judge =
                cli.fitting.fit.as_ref().map(|_| anyhow::Ok(DecisionJudge::new(settings.clone(), &model.load()?)?));
            (judge.transpose()?, None)
        }
        Opened::Ready(start) => {
            let loaded = model.load()?;
            let judge = DecisionJudge::new(settings.clone(), &loaded)?;
            let resolved = Resolved { model: Some(loaded.info().clone()), ..Resolved::default() };
            let records = DecisionRecord::all(&input, cli.model.limit)?;
            let mut watch = Watch::new("deciding", "rows", cli.model.quiet)?;
            let row = |result| cli.row(&judge, result);
            let result = start.judge(resolved, &loaded, &[&judge], records, row, &mut watch)?;
            watch.finish(result.summary.cancelled)?;
            say(format_args!("{} of {rows} rows answered -> {}", result.counts.scored, cli.output.output.display()))?;
            for (reason, count) in &result.counts.unscored {
                say(format_args!("unscored, {reason}: {count}"))?;
            }
            (Some(judge), Some(result.counts))
        }
    };
    let measured = if has_labels { Measured::of(cli, &settings)? } else { Measured::nothing() };
    if let (Some(path), Some(judge)) = (&cli.fitting.fit, &judge) {
        measured.fit(&cli.fitting, &judge.origin(), path, cli.output.write.overwrite)?;
    }
    if let Some(counts) = counts {
        check_scored(counts.scored, counts.unscored)?;
    }
    if let Some(path) = &cli.json {
        write_json(path, PROGRAM, &measured.figures)?;
    }
    measured.print()
}

impl Cli {
    /// Reads the whole input before any model work: how many rows there are, and whether any has labels. All must have questions.
    fn check_rows(&self, input: &Input, has_questions: bool) -> Result<(usize, bool)> {
        let (mut rows, mut unread, mut without, mut has_labels) = (0, None, 0, false);
        for record in DecisionRecord::all(input, self.model.limit)? {
            let record = record?;
            if let Some(why) = &record.unread {
                unread.get_or_insert_with(|| format!("row {}: {}", record.id, why.detail));
            }
            has_labels |= !record.labels.is_empty();
            without += usize::from(record.questions.is_none() && record.unread.is_none());
            self.carry.of_row(record.extra, DecisionRow::KNOWN)?;
            rows += 1;
        }
        if rows == 0 {
            return Err(usage(format!("{} has no rows", input.path().display())));
        }
        if let Some(first) = unread {
            tell(format_args!("note: rows that cannot be read are written as unscored; the first is {first}"));
        }
        if !has_questions && without > 0 {
            let what =
                format!("{without} of {rows} rows have no `questions`; --questions has those for all rows without");
            return Err(usage(what));
        }
        Ok((rows, has_labels))
    }

    /// The row of a result.
    fn row(&self, judge: &DecisionJudge, result: ItemResult<DecisionRecord>) -> Result<(DecisionRow, Fate)> {
        let rounds = result.rounds(0);
        let tokens = |outcome: &Outcome| outcome.reading().ok().and_then(|reading| reading.prompt_tokens);
        let input_tokens = rounds.outcomes().filter_map(tokens).reduce(|sum, tokens| sum + tokens);
        let verdict = &result.verdicts[0];
        let (mut answered, mut tables) = (Vec::new(), Vec::new());
        if verdict.score().is_some() {
            let questions = judge.questions(&result.item).map_err(failed)?;
            answered = questions.answers(verdict)?;
            if judge.settings().every_layer {
                tables = judge.tables(questions, &rounds).map_err(failed)?;
            }
        }
        let (verdict, item) = (verdict.clone(), result.item);
        Ok(DecisionRow::new(item, &verdict, answered, tables, input_tokens, &self.carry)?)
    }
}

/// What a judge's error is to the program.
fn failed(error: JudgeError) -> anyhow::Error {
    anyhow::Error::msg(error.to_string())
}
