//! The logits of the score labels at every layer of a model, for each prompt of a file.
//!
//! `cargo run --release --example layer_logits -- --input prompts.jsonl --output logits.jsonl`

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum, value_parser};
use judge_core::{Backbone, Condition, Generation, JudgeError, LabelRead, Outcome, ScoreRule, TokenId, Unscored, Want};
use judge_data::{
    Carry, Error, Fate, LabelTable, Opened, Resolved, ScoreOutcome, ScoreRow, Settings, check_outputs, split_label,
};
use judge_examples::console::{check_scored, say, start, tell, usage};
use judge_examples::files::{InputArgs, OutputArgs};
use judge_examples::layers::{LayerList, LensArg};
use judge_examples::model_args::ModelArgs;
use judge_examples::prompts::Prompts;
use serde_json::json;

/// Read score-label logits at every layer.
///
/// Input: {"id", "prompt"} or {"id", "messages"}. Output, in input order: {"id", "layers", "labels", "logits", "step", "completion"}, or {"id", "unscored"} with
/// the reason; other fields are carried over.
#[derive(Parser)]
#[command(name = "layer_logits")]
struct Cli {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// The labels are the numbers 1 to N
    #[arg(long, default_value_t = 5, value_name = "N", conflicts_with = "labels", value_parser = value_parser!(u16).range(1..))]
    points: u16,
    /// The labels, in the order wanted
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    labels: Option<Vec<String>>,
    /// Where to read
    #[arg(long, value_enum, default_value_t = Position::PromptEnd)]
    position: Position,
    /// The text after which --position after-marker looks for a label
    #[arg(long, value_name = "TEXT", required_if_eq("position", "after-marker"))]
    marker: Option<String>,
    /// Plain text put after the rendered prompt: the opening of the reply
    #[arg(long, default_value = "", value_name = "TEXT")]
    prefill: String,
    /// Upper bound on generated tokens, where anything is generated [default: 256]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    max_new_tokens: Option<u32>,
    /// Whether inner states get the final norm before the head
    #[arg(long, value_enum, default_value_t = LensArg::Raw)]
    lens: LensArg,
    /// Which layers: all, or a list such as 0,5,12-16
    #[arg(long, default_value = "all", value_name = "LIST")]
    layers: LayerList,
    /// Which other fields are carried to the output: all, none, or names with commas between
    #[arg(long, default_value = "all", value_name = "FIELDS")]
    carry: Carry,
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Position {
    /// At the prompt's end; nothing is generated
    PromptEnd,
    /// At the last generated token that is a label
    LastLabel,
    /// At the first generated label after the marker's text
    AfterMarker,
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    cli.check()?;
    let labels = cli.labels()?;
    let condition = cli.condition();
    let input = cli.input.open()?;
    let prompts = Prompts { input: &input, columns: &cli.input, model: &cli.model, prefill: &cli.prefill };
    let (rows, first) = prompts.check(|record| cli.carry.of(record.extra.clone()).map(drop))?;
    let plan =
        cli.output.plan("layer_logits", &input, rows, &cli.input, &cli.model, cli.settings(&labels, &condition)?)?;
    let start = match plan.open()? {
        Opened::Complete(_) => {
            return say(format_args!("{} is complete: {rows} rows; nothing to do", cli.output.output.display()));
        }
        Opened::Ready(start) => start,
    };
    let model = cli.model.load()?;
    let tokens = labels.iter().map(|label| model.token(label)).collect::<Result<Vec<TokenId>, _>>()?;
    let layers = cli.layers.of_model(model.info().n_layers)?;
    let read = LabelRead { tokens, layers, lens: cli.lens.into(), at: condition.read_at(), label_mass: false };
    let want = Want { labels: vec![read.clone()], generate: condition.generation().cloned(), ..Want::default() };
    if cli.position == Position::PromptEnd
        && let Some((label, found)) = split_label(&model, &first, &labels)?
    {
        tell(format_args!(
            "note: after the first prompt the tokenizer would write label {label:?} as {:?}, not as {:?}; --prefill may end the prompt better",
            found.together, found.apart
        ));
    }
    let mut resolved = Resolved { model: Some(model.info().clone()), ..Resolved::default() };
    resolved.settings.insert("layers".to_owned(), json!(read.layers));
    let mut output = start.begin(resolved)?;
    let before = output.resumed().rows;
    if before > 0 && !cli.model.quiet {
        tell(format_args!("resuming: {before} of {rows} rows are done"));
    }
    let pending: Vec<bool> = (0..rows).map(|row| !output.is_done(row)).collect();
    prompts.read(&model, want, &pending, |id, (row, record), outcome| {
        let (outcome, fate) = match table(&condition, &read, &labels, outcome)? {
            Ok(table) => (ScoreOutcome::Read(table, None), Fate::SCORED),
            Err(reason) => (ScoreOutcome::Unscored(reason.clone()), Fate::unscored(reason.reason)),
        };
        let fate = Fate { graded: !record.scores.is_empty(), ..fate };
        let extra = cli.carry.of(record.extra)?;
        output.push(row, &ScoreRow { id: id.clone(), human: record.scores, outcome, extra }, fate)
    })?;
    let counts = output.finish()?.counts;
    let unscored: usize = counts.unscored.values().sum();
    say(format_args!(
        "{rows} rows, {before} of them done before: {} read, {unscored} unscored -> {}",
        counts.scored,
        cli.output.output.display()
    ))?;
    check_scored(counts.scored, counts.unscored)
}

impl Cli {
    /// Options without effect are refused rather than ignored, and the output is none of the inputs.
    fn check(&self) -> Result<()> {
        if self.marker.is_some() && self.position != Position::AfterMarker {
            return Err(usage("--marker needs --position after-marker"));
        }
        if self.max_new_tokens.is_some() && self.position == Position::PromptEnd {
            return Err(usage("--max-new-tokens needs --position last-label or after-marker"));
        }
        Ok(check_outputs([&self.input.input], [&self.output.output])?)
    }

    fn labels(&self) -> Result<Vec<String>> {
        let Some(labels) = &self.labels else { return Ok((1..=self.points).map(|label| label.to_string()).collect()) };
        if labels.iter().any(String::is_empty) {
            return Err(usage("--labels: a label is empty"));
        }
        match labels.iter().enumerate().find(|(i, label)| labels[..*i].contains(label)) {
            Some((_, label)) => Err(usage(format!("--labels: {label:?} appears twice"))),
            None => Ok(labels.clone()),
        }
    }

    fn condition(&self) -> Condition {
        let generation =
            Generation { max_new_tokens: self.max_new_tokens.unwrap_or(256) as usize, ..Generation::default() };
        match self.position {
            Position::PromptEnd => Condition::PromptEnd,
            Position::LastLabel => Condition::Direct { generation, rule: ScoreRule::LastLabel },
            Position::AfterMarker => {
                let marker = self.marker.clone().unwrap_or_default(); // clap has seen to it that it is given
                Condition::Direct { generation, rule: ScoreRule::AfterMarker { marker } }
            }
        }
    }

    /// What decides about a row and is known before the model is loaded.
    fn settings(&self, labels: &[String], condition: &Condition) -> Result<Settings> {
        let entries = [
            ("labels", json!(labels)),
            ("condition", serde_json::to_value(condition)?),
            ("prefill", json!(self.prefill)),
            ("lens", json!(judge_core::Lens::from(self.lens))),
            ("layers", json!(self.layers.to_string())),
            ("carry", json!(format!("{:?}", self.carry))),
        ];
        Ok(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }
}

/// The label logits at the score position, or why there are none.
fn table(
    condition: &Condition,
    read: &LabelRead,
    labels: &[String],
    outcome: &Outcome,
) -> Result<Result<LabelTable, Unscored>, Error> {
    let reading = match outcome.reading() {
        Ok(reading) => reading,
        Err(reason) => return Ok(Err(reason)),
    };
    let logits = reading.labels(read)?;
    let step = match condition.score_step(logits, reading) {
        Ok(step) => step,
        Err(JudgeError::Unscored(reason)) => return Ok(Err(reason)),
        Err(JudgeError::Failed(source)) => return Err(judge_core::Error::Observer { source }.into()),
    };
    let completion = reading.generated.as_ref().map_or("", |generated| generated.text.as_str());
    Ok(Ok(LabelTable::from_step(logits, step, labels, completion)?))
}
