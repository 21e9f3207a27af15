//! The logits of the score labels at every layer of a model, for each prompt of a file.
//!
//! `cargo run --release --example layer_logits -- --input prompts.jsonl --output logits.jsonl`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum, value_parser};
use judge_core::{
    Backbone, Condition, Generation, LabelRead, Lens, Outcome, Reading, Sampling, ScoreRule, TokenId, Unscored, Want,
};
use judge_data::{Extra, InputFile, LabelTable, ResumableJsonl, ScoreOutcome, ScoreRow, Settings};
use judge_examples::console::{say, start, usage};
use judge_examples::labels::note_split_labels;
use judge_examples::layers::LayerList;
use judge_examples::model_args::ModelArgs;
use judge_examples::passes::{check_prompts, first_prompt, pass_prompts};
use serde_json::json;

/// Read score-label logits at every layer.
///
/// Input: JSON lines {"id", "prompt"} or {"id", "messages"}. Output, in input order: {"id", "layers", "labels", "logits",
/// "step", "completion"}, or {"id", "unscored"} with the reason. Stopped and started again, it goes on.
#[derive(Parser)]
#[command(name = "layer_logits")]
struct Cli {
    /// JSON lines of prompts
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Where the logits go, JSON lines
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
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
    /// Upper bound on generated tokens, where anything is generated
    #[arg(long, default_value_t = 256, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    max_new_tokens: u32,
    /// Whether inner states get the final norm before the head
    #[arg(long, value_enum, default_value_t = LensArg::Raw)]
    lens: LensArg,
    /// Which layers: all, or a list such as 0,5,12-16
    #[arg(long, default_value = "all", value_name = "LIST")]
    layers: LayerList,
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

#[derive(Clone, Copy, ValueEnum)]
enum LensArg {
    Raw,
    Normed,
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    let rows = check_prompts(&cli.input, cli.model.limit)?;
    let labels = match &cli.labels {
        Some(labels) => labels.clone(),
        None => (1..=cli.points).map(|label| label.to_string()).collect(),
    };
    if labels.iter().any(String::is_empty) {
        return Err(usage("--labels: a label is empty"));
    }
    if let Some(twice) = labels.iter().enumerate().find(|(i, label)| labels[..*i].contains(label)) {
        return Err(usage(format!("--labels: {:?} stands twice", twice.1)));
    }
    let condition = cli.condition();
    let model = cli.model.load()?;
    let tokens = labels.iter().map(|label| model.token(label)).collect::<Result<Vec<TokenId>, _>>()?;
    let layers = cli.layers.of_model(model.info().n_layers)?;
    let lens = match cli.lens {
        LensArg::Raw => Lens::Raw,
        LensArg::Normed => Lens::Normed,
    };
    let read = LabelRead { tokens, layers, lens, at: condition.read_at() };
    let want = Want { labels: Some(read), generate: condition.generation().cloned(), ..Want::default() };

    if cli.position == Position::PromptEnd
        && let Some(prompt) = first_prompt(&cli.model, &cli.input, &cli.prefill)?
    {
        note_split_labels(&model, &prompt, &labels)?;
    }
    let mut output = ResumableJsonl::open(&cli.output, rows, &cli.settings(&model, &want)?)?;
    let resumed = output.resumed();
    if resumed.rows > 0 && !cli.model.quiet {
        eprintln!("going on: {} of {rows} rows are done", resumed.rows);
    }
    let pending: Vec<usize> = output.pending().collect();
    let (mut scored, mut unscored) = (0, 0);
    pass_prompts(&cli.model, &model, &cli.input, &want, &cli.prefill, pending.into_iter(), |row, id, outcome| {
        let outcome = match score_table(&condition, &labels, outcome)? {
            Ok(table) => ScoreOutcome::Read(table),
            Err(reason) => ScoreOutcome::Unscored(reason),
        };
        match outcome {
            ScoreOutcome::Read(_) => scored += 1,
            ScoreOutcome::Unscored(_) => unscored += 1,
        }
        Ok(output.push(row, &ScoreRow { id: id.clone(), human: None, outcome, extra: Extra::new() })?)
    })?;
    output.finish()?;
    say(format_args!(
        "{rows} rows: {} done before, {scored} read, {unscored} unscored -> {}",
        resumed.rows,
        cli.output.display()
    ))?;
    Ok(())
}

impl Cli {
    fn condition(&self) -> Condition {
        let generation = Generation { max_new_tokens: self.max_new_tokens as usize, sampling: Sampling::Greedy };
        match self.position {
            Position::PromptEnd => Condition::PromptEnd,
            Position::LastLabel => Condition::Direct { generation, rule: ScoreRule::LastLabel },
            Position::AfterMarker => {
                let marker = self.marker.clone().unwrap_or_default(); // clap has seen to it that it is given
                Condition::Direct { generation, rule: ScoreRule::AfterMarker { marker } }
            }
        }
    }

    /// Everything that a row depends on: a run goes on only with the same.
    fn settings(&self, model: &dyn Backbone, want: &Want) -> Result<Settings> {
        let info = model.info();
        Ok([
            ("input", json!(InputFile::of(&self.input)?.blake3)),
            ("model", json!(info.fingerprint)),
            ("dtype", json!(info.dtype)),
            ("device", json!(info.device)),
            ("want", serde_json::to_value(want)?),
            ("marker", json!(self.marker)),
            ("prefill", json!(self.prefill)),
            ("raw_prompt", json!(self.model.raw_prompt)),
            ("template_args", json!(self.model.template_args)),
            ("date", json!(self.model.date.to_string())),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect())
    }
}

/// The label logits at the score position, or why there are none.
fn score_table(condition: &Condition, labels: &[String], outcome: Outcome) -> Result<Result<LabelTable, Unscored>> {
    let reading: Reading = match outcome {
        Outcome::Read(reading) => reading,
        Outcome::Unscored(reason) => return Ok(Err(reason)),
    };
    let step = match condition.score_step(&reading)? {
        Ok(step) => step,
        Err(reason) => return Ok(Err(reason)),
    };
    let completion = reading.generated.as_ref().map_or("", |generated| generated.text.as_str());
    let Some(read) = &reading.labels else { bail!("the model did not read the labels it was asked for") };
    Ok(Ok(LabelTable::from_step(read, step, labels, completion)?))
}
