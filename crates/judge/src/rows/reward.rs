//! The rewards of conversations by a model that is a sequence classifier.
//!
//! `judge reward --model FOLDER --input responses.jsonl --output rewards.jsonl`

use anyhow::{Context, Result};
use clap::Args;
use judge_core::{
    Backbone, Message, Outcome, Unscored,
    reward::{RewardHead, closed_conversation},
};
use judge_data::{Human, Judged, Numbered, OutputRow, Outputs, PromptInput, PromptRecord, Record};
use judge_models::Model;
use serde::Serialize;
use serde_json::json;

use judge_cli::args::files::{CarryArgs, InputArgs, OutputArgs};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::row_job::{Made, RowJob, Words, resolved};
use judge_cli::terminal::console::{end_of_rows, usage};

/// Score conversations by the head of a sequence classifier, such as a reward model.
///
/// Input: {"id", "messages"}, or {"id", "instruction", "response"}. Output: {"id", "rewards": [one for each of the
/// model's labels]}, or "unscored" with the reason, and the row's other fields. The conversation is rendered by the
/// model's chat template without a generation prompt. Preferences between two responses, and the best of many, are made
/// of rewards by `judge compare --reward`, `judge bench --reward` and `judge rank --reward`.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    pub(crate) carry: CarryArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// The reward of a row for each label, or why there is none.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Rewarded {
    Rewards(Vec<f64>),
    Unscored(Unscored),
}

impl Judged for Rewarded {
    const KNOWN: &'static [&'static str] = &["id", "human", "rewards", "unscored"];

    fn unscored(&self) -> Option<&Unscored> {
        match self {
            Self::Rewards(_) => None,
            Self::Unscored(unscored) => Some(unscored),
        }
    }
}

const WORDS: Words = Words { doing: "reading", rows: "rows", done: "scored" };

pub(crate) fn run(cli: &Cli) -> Result<()> {
    if cli.model.raw_prompt {
        return Err(usage("--raw-prompt: a reward model reads conversations through its chat template"));
    }
    let outputs = Outputs::new([&cli.input.input]).rows([&cli.output.output]);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let source = cli.input.source(&cli.input.open()?, None, cli.model.limit);
    let path = source.input.path().to_path_buf();
    let job = RowJob::new("reward_scores", WORDS, source, &cli.output, &cli.carry, cli.model.quiet);
    let checked = job.check(Rewarded::KNOWN, |Numbered { record, .. }| match turns(record) {
        Some(_) => Ok(None),
        None => Err(usage(format!(
            "{}: row {} is no conversation; rewards are of {{\"messages\"}}, or of {{\"instruction\", \"response\"}}",
            path.display(),
            record.id()
        ))),
    })?;
    let job = job.with_model(&cli.model, None)?;
    let finished = job.run(&checked, |pending| {
        let model = cli.model.load()?;
        let head = reward_head(&model)?;
        let settings = [("labels".to_owned(), json!(head.labels()))].into();
        let prompt = |item: &Numbered| {
            let turns = turns(&item.record).unwrap_or_else(|| Ok(Vec::new())); // all are conversations
            turns.map(|turns| cli.model.dress(closed_conversation(turns)))
        };
        let row = |Numbered { record, .. }: Numbered, outcome: &Outcome| {
            let judged = match outcome {
                Outcome::Read(reading) => Rewarded::Rewards(head.of_reading(reading, model.info())?),
                Outcome::Unscored(unscored) => Rewarded::Unscored(unscored.clone()),
            };
            let (id, human) = (record.id().clone(), Human::Numbers(record.raters().into_owned()));
            OutputRow::of(id, human, judged, record.into_extra(), &cli.carry.fields())
        };
        let result = pending.read(resolved(&model, None, settings), &model, head.want(model.info()), prompt, row)?;
        Ok(Made { result, details: format!(" ({})", head.labels().join(", ")) })
    })?;
    end_of_rows(&finished.counts)
}

fn reward_head(model: &Model) -> Result<&RewardHead> {
    let head = model.reward_head();
    head.with_context(|| format!("{} is no reward model: its folder has no head of labels", model.info().name))
}

/// A row's conversation, or why it could not be read; `None` for a row of another kind.
fn turns(record: &Record) -> Option<Result<Vec<Message>, Unscored>> {
    match record {
        Record::Prompt(PromptRecord { input: PromptInput::Messages(messages), .. }) => Some(Ok(messages.clone())),
        Record::Graded(row) => Some(Ok(vec![Message::user(row.asked()), Message::new("assistant", &*row.response)])),
        Record::Unread(row) => Some(Err(row.why.clone())),
        _ => None,
    }
}
