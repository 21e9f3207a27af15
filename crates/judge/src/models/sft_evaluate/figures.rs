//! What the finished rows come to: a table for people, and the same as JSON.

use std::path::Path;

use anyhow::Result;
use judge_cli::args::files::program;
use judge_cli::report::{BOOTSTRAP, share, write_json_if};
use judge_cli::terminal::console::say_table;
use judge_data::{Program, Rows};
use judge_metrics::Proportion;
use judge_metrics::comparison::Statistic;
use serde::Serialize;
use serde_json::Value;

use super::cli::PROGRAM;

/// What the finished rows come to.
#[derive(Serialize)]
pub(super) struct Figures {
    program: Program,
    /// Rows whose reply was measured.
    n: usize,
    /// Tokens of their replies.
    reply_tokens: usize,
    /// Over all tokens of replies; the interval draws rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    nats_per_token: Option<Statistic>,
    /// `exp` of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    perplexity: Option<f64>,
    /// Of rows with a right answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    answers: Option<Answers>,
}

/// What became of questions.
#[derive(Serialize)]
struct Answers {
    n: usize,
    correct: usize,
    /// Wrong ones and undecided ones count alike; the interval is Wilson's.
    accuracy: Statistic,
    /// The ids of those of which it cannot be said.
    undecided: Vec<Value>,
}

impl Figures {
    /// Reads the finished rows.
    pub(super) fn of(path: &Path) -> Result<Self> {
        let mut replies: Vec<(f64, usize)> = Vec::new();
        let (mut answers, mut correct, mut undecided) = (0, 0, Vec::new());
        for row in Rows::open(path)? {
            let row = row?;
            let nats: Option<f64> = row.optional("nats_per_token", "a number")?;
            let tokens: Option<usize> = row.optional("reply_tokens", "a whole number")?;
            replies.extend(nats.zip(tokens));
            let is_correct: Option<bool> = row.optional("correct", "true, false or null")?;
            if is_correct.is_some() || row.has("undecided") {
                answers += 1;
                correct += usize::from(is_correct == Some(true));
                if is_correct.is_none() {
                    undecided.extend(row.optional::<Value>("id", "an id")?);
                }
            }
        }
        let mean = |rows: &[usize]| {
            let sum: f64 = rows.iter().map(|&row| replies[row].0 * replies[row].1 as f64).sum();
            Ok(sum / rows.iter().map(|&row| replies[row].1).sum::<usize>() as f64)
        };
        let all: Vec<usize> = (0..replies.len()).collect();
        let nats_per_token = match replies.len() {
            0 => None,
            n => Some(Statistic::of(BOOTSTRAP.interval(n, mean), || mean(&all))?),
        };
        let answers = match answers {
            0 => None,
            n => {
                let accuracy = share(Proportion { count: correct, n }, "no row has a right answer");
                Some(Answers { n, correct, accuracy, undecided })
            }
        };
        Ok(Self {
            program: program(PROGRAM),
            n: replies.len(),
            reply_tokens: replies.iter().map(|reply| reply.1).sum(),
            perplexity: nats_per_token.as_ref().and_then(Statistic::estimate).map(f64::exp),
            nats_per_token,
            answers,
        })
    }

    /// Prints them, and writes them where a file is named.
    pub(super) fn report(&self, json: Option<&Path>) -> Result<()> {
        let row = |name: &str, value: String, n: usize| vec![format!("  {name}"), value, n.to_string()];
        let mut lines = Vec::new();
        if let (Some(nats), Some(perplexity)) = (&self.nats_per_token, self.perplexity) {
            lines.push(row("nats per token", format!("{nats:.3}"), self.n));
            lines.push(row("perplexity", format!("{perplexity:.3}"), self.n));
        }
        if let Some(answers) = &self.answers {
            let share = format!("{:.3}", answers.accuracy);
            lines.push(row("right answers, undecided ones counted as wrong", share, answers.n));
            lines.push(row("undecided", answers.undecided.len().to_string(), answers.n));
        }
        say_table(["held-out replies", "estimate [95 %]", "n"], lines)?;
        write_json_if(json, PROGRAM, || Ok(self))
    }
}
