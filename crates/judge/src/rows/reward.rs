//! The rewards of conversations by a model that is a sequence classifier.
//!
//! `judge reward --model FOLDER --input responses.jsonl --output rewards.jsonl`

use anyhow::{Context, Result};
use clap::Args;
use judge_core::{
    Backbone, ItemId, Message, Outcome, Prompt, Unscored,
    reward::{RewardHead, closed_conversation},
};
use judge_data::{
    Carry, CarryCheck, Error, Extra, Human, Input, Judged, Opened, OutputRow, Outputs, PromptInput, Record, Resolved,
};
use judge_models::Model;
use serde::Serialize;
use serde_json::json;

use crate::args::files::{InputArgs, OutputArgs};
use crate::args::model_args::ModelArgs;
use crate::missing_fields::Unread;
use crate::prompts;
use crate::terminal::console::{end_of_rows, say, usage};

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
    /// Which other fields are carried to the output: all, none, or names with commas between
    #[arg(long, default_value = "all", value_name = "FIELDS")]
    carry: Carry,
    #[command(flatten)]
    model: ModelArgs,
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

/// What is read of a row.
struct Conversation {
    /// Or why there is none.
    prompt: Result<Prompt, Unscored>,
    human: Vec<f64>,
    extra: Extra,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    if cli.model.raw_prompt {
        return Err(usage("--raw-prompt: a reward model reads conversations through its chat template"));
    }
    let outputs = Outputs::new([&cli.input.input]).rows([&cli.output.output]);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let input = cli.input.open()?;
    let rows = cli.check_rows(&input)?;
    let settings = [("carry".to_owned(), json!(format!("{:?}", cli.carry)))].into_iter().collect();
    let plan = cli.output.plan("reward_scores", &input, rows, &cli.input, &cli.model, None, settings)?;
    let start = match plan.open()? {
        Opened::Complete(record) => {
            say(format_args!("{} is complete: {rows} rows; nothing to do", cli.output.output.display()))?;
            return end_of_rows(&record.counts);
        }
        Opened::Ready(start) => start,
    };
    let model = cli.model.load()?;
    let head = reward_head(&model)?;
    let mut resolved = Resolved { model: Some(model.info().clone()), ..Resolved::default() };
    resolved.settings.insert("labels".to_owned(), json!(head.labels()));
    let mut output = start.begin(resolved)?;
    let pending: Vec<bool> = (0..rows).map(|row| !output.is_done(row)).collect();
    let open = pending.iter().filter(|&&open| open).count();
    let conversations = cli.conversations(&input)?.enumerate().filter(|(row, _)| pending.get(*row) == Some(&true));
    let conversations = conversations.map(|(row, found)| {
        let (id, Conversation { prompt, human, extra }) = found?;
        Ok((id, (row, human, extra), prompt))
    });
    let want = head.want(model.info());
    prompts::read(&model, want, [rows, open], cli.model.quiet, conversations, |id, (row, human, extra), outcome| {
        let judged = match outcome {
            Outcome::Read(reading) => Rewarded::Rewards(head.of_reading(reading, model.info())?),
            Outcome::Unscored(unscored) => Rewarded::Unscored(unscored.clone()),
        };
        let (ready, fate) = OutputRow::of(id.clone(), Human::Numbers(human), judged, extra, &cli.carry)?;
        output.push(row, &ready, fate)
    })?;
    let counts = output.finish()?.counts;
    let labels = head.labels().join(", ");
    say(format_args!("{} of {rows} rows scored ({labels}) -> {}", counts.scored, cli.output.output.display()))?;
    end_of_rows(&counts)
}

fn reward_head(model: &Model) -> Result<&RewardHead> {
    let head = model.reward_head();
    head.with_context(|| format!("{} is no reward model: its folder has no head of labels", model.info().name))
}

impl Cli {
    /// Reads the whole input before any model work: how many rows there are, and that each is a conversation.
    fn check_rows(&self, input: &Input) -> Result<usize> {
        let (mut rows, mut unread) = (0, Unread::default());
        let mut carried = CarryCheck::new(&self.carry, Rewarded::KNOWN);
        for record in self.input.records(input, None, self.model.limit)? {
            let record = record?;
            unread.see(&record);
            let id = record.id().clone();
            if self.conversation(record.clone()).is_none() {
                return Err(usage(format!(
                    "{}: row {id} is no conversation; rewards are of {{\"messages\"}}, or of {{\"instruction\", \"response\"}}",
                    input.path().display()
                )));
            }
            carried.see(record)?;
            rows += 1;
        }
        carried.finish(input)?;
        unread.tell();
        Ok(rows)
    }

    /// The conversations of an input that was checked, with their ids.
    fn conversations(&self, input: &Input) -> Result<impl Iterator<Item = Result<(ItemId, Conversation), Error>>> {
        let records = self.input.records(input, None, self.model.limit)?;
        Ok(records.filter_map(|record| record.map(|record| self.conversation(record)).transpose()))
    }

    /// A row's conversation, if it is one or should be.
    fn conversation(&self, record: Record) -> Option<(ItemId, Conversation)> {
        let (id, messages, human, extra) = match record {
            Record::Prompt(row) => match row.input {
                PromptInput::Messages(messages) => (row.id, Ok(messages), row.scores, row.extra),
                PromptInput::Text(_) => return None,
            },
            Record::Graded(row) => {
                let turns = vec![Message::user(row.instruction), Message::new("assistant", row.response)];
                (row.id, Ok(turns), row.scores, row.extra)
            }
            Record::Unread(row) => (row.id, Err(row.why), row.scores, row.extra),
            _ => return None,
        };
        let prompt = messages.map(|messages| self.model.dress(closed_conversation(messages)));
        Some((id, Conversation { prompt, human, extra }))
    }
}
