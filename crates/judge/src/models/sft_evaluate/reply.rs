//! A row before the model: how likely its reply is, and what the model writes in its place.

use std::borrow::Cow;

use judge_cli::args::model_args::ModelArgs;
use judge_cli::replies::Replied;
use judge_core::request::Generation;
use judge_core::{Fields, Judge, JudgeError, Outcome, Reason, Request, Rounds, Score, Unscored, Want};
use judge_data::{Judged, Numbered, Record};
use judge_models::Model;
use serde::Serialize;
use serde_json::{Value, json};

use super::answers::Right;

/// What is said of a row.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Evaluated {
    Measured(Measured),
    Unscored { unscored: Unscored },
}

/// What is measured of a row.
#[derive(Serialize)]
pub(super) struct Measured {
    /// The mean negative log-probability of the reply's tokens.
    nats_per_token: f64,
    /// How many they are, with those that close the reply.
    reply_tokens: usize,
    /// Where the row has a right answer.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    answered: Option<Answered>,
}

/// What became of a question.
#[derive(Serialize)]
struct Answered {
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<String>,
    /// `None` where it is undecided.
    correct: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    undecided: Option<String>,
}

impl Judged for Evaluated {
    const KNOWN: &'static [&'static str] =
        &["id", "human", "nats_per_token", "reply_tokens", "written", "correct", "undecided", "unscored"];

    fn unscored(&self) -> Option<&Unscored> {
        match self {
            Self::Measured(_) => None,
            Self::Unscored { unscored } => Some(unscored),
        }
    }
}

/// Asks for the log-probabilities of a conversation, and where there is a right answer for the model's own.
pub(super) struct Replying<'a> {
    pub(super) model: &'a Model,
    pub(super) args: &'a ModelArgs,
    pub(super) max_new_tokens: usize,
}

impl Replying<'_> {
    /// What outcomes of [`ask`](Judge::ask) say of a row.
    pub(super) fn read(&self, record: &Record, rounds: &Rounds<'_>) -> Result<Measured, JudgeError> {
        let mut outcomes = rounds.outcomes();
        let missing = || judge_core::Error::NotRead { what: "log-probabilities of a reply" };
        let reading = match outcomes.next().ok_or_else(missing)? {
            Outcome::Read(reading) => reading,
            Outcome::Unscored(unscored) => return Err(unscored.clone().into()),
        };
        let all = &reading.prompt_log_probs.as_ref().ok_or_else(missing)?.log_probs;
        let reply = self.replied(record)?.tokens(self.model).map_err(template)?.1.len();
        let of_reply = &all[all.len().checked_sub(reply).ok_or_else(missing)?..];
        let sum: f64 = of_reply.iter().map(|&p| f64::from(p)).sum();
        let right = right(record);
        let answered = right.zip(outcomes.next()).map(|(right, outcome)| answered(&right, outcome));
        Ok(Measured { nats_per_token: -sum / reply as f64, reply_tokens: reply, answered })
    }

    fn replied(&self, record: &Record) -> Result<Replied, Unscored> {
        Replied::of(record, self.args).map_err(|why| Unscored::new(Reason::Missing, why))
    }
}

fn template(why: String) -> Unscored {
    Unscored::new(Reason::Template, why)
}

/// A field's text, if it is not blank.
fn text<'r>(record: &'r Record, name: &str) -> Option<Cow<'r, str>> {
    record.field(name).filter(|text| !text.trim().is_empty())
}

/// The right answer of a row, if it has one.
fn right(record: &Record) -> Option<Right> {
    text(record, "answer").or_else(|| text(record, "reference")).and_then(|text| Right::of(&text))
}

/// Whether a row has a list or an object where its right answer is looked for.
pub(super) fn has_unread_answer(record: &Record) -> bool {
    let is_unread = |name: &str| record.field(name).is_none() && record.extra().json(name).is_some();
    is_unread("answer") || text(record, "answer").is_none() && is_unread("reference")
}

fn answered(right: &Right, outcome: &Outcome) -> Answered {
    let text = match outcome {
        Outcome::Unscored(unscored) => {
            return Answered { written: None, correct: None, undecided: Some(unscored.to_string()) };
        }
        Outcome::Read(reading) => reading.generated.as_ref().map(|generated| generated.text.clone()),
    };
    let found = right.is_found_in(text.as_deref().unwrap_or_default());
    let undecided = found.err().map(str::to_owned);
    Answered { written: text, correct: found.ok(), undecided }
}

impl Judge<Numbered> for Replying<'_> {
    fn name(&self) -> &str {
        "sft_evaluate"
    }

    fn ask(&self, item: &Numbered) -> Result<Vec<Request>, JudgeError> {
        let replied = self.replied(&item.record)?;
        replied.tokens(self.model).map_err(template)?;
        let likely = Want { prompt_log_probs: true, ..Want::default() };
        let mut requests = vec![Request { prompt: replied.whole, want: likely }];
        if right(&item.record).is_some() {
            let generate = Generation { max_new_tokens: self.max_new_tokens, ..Generation::default() };
            let want = Want { generate: Some(generate), ..Want::default() };
            requests.push(Request { prompt: replied.before, want });
        }
        Ok(requests)
    }

    fn decide(&self, item: &Numbered, rounds: &Rounds<'_>) -> Result<Score, JudgeError> {
        Ok(Score::new(-self.read(&item.record, rounds)?.nats_per_token))
    }

    fn settings(&self) -> Option<Value> {
        Some(json!({"judge": "sft_evaluate", "max_new_tokens": self.max_new_tokens}))
    }
}
