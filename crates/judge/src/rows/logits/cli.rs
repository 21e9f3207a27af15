//! The command line, and the settings that it stands for.

use anyhow::Result;
use clap::{Args, ValueEnum};
use judge_core::{
    Lens,
    lager::{Condition, ScoreRule},
    request::Generation,
};
use judge_data::{Outputs, Settings};
use serde_json::json;

use judge_cli::args::files::{CarryArgs, InputArgs, OutputArgs};
use judge_cli::args::layers::{LENSES, LayerList};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::args::numbers::at_least;
use judge_cli::args::one_of;
use judge_cli::terminal::console::usage;

/// Read score-label logits at every layer.
///
/// Input: {"id", "prompt"} or {"id", "messages"}. Output, in input order:
/// {"id", "layers", "labels", "logits", "step", "completion"}, or {"id", "unscored"} with
/// the reason; other fields are carried over.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// The labels are the numbers 1 to N
    #[arg(long, default_value_t = 5, value_name = "N", conflicts_with = "labels", value_parser = at_least::<u16>(1))]
    pub(crate) points: u16,
    /// The labels, in the order wanted
    #[arg(long, value_delimiter = ',', value_name = "A,B,C", allow_hyphen_values = true)]
    pub(crate) labels: Option<Vec<String>>,
    /// Where to read
    #[arg(long, value_enum, default_value_t = Position::PromptEnd)]
    pub(crate) position: Position,
    /// The text after which --position after-marker looks for a label
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, required_if_eq("position", "after-marker"))]
    pub(crate) marker: Option<String>,
    /// Plain text put after the rendered prompt: the opening of the reply
    #[arg(long, default_value = "", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) prefill: String,
    /// Upper bound on generated tokens, where anything is generated [default: 256]
    #[arg(long, value_name = "N", value_parser = at_least::<u32>(1))]
    pub(crate) max_new_tokens: Option<u32>,
    /// How inner states meet the head: raw, as LAGER does, or normed by the model's final norm first
    #[arg(long, value_parser = one_of(LENSES), default_value = "raw")]
    pub(crate) lens: Lens,
    /// Which layers: all, last, or a list such as 0,5,12-16
    #[arg(long, default_value = "all", value_name = "LIST")]
    pub(crate) layers: LayerList,
    #[command(flatten)]
    pub(crate) carry: CarryArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Position {
    /// At the prompt's end; nothing is generated
    PromptEnd,
    /// At the last generated token that is a label
    LastLabel,
    /// At the first generated label after the marker's text
    AfterMarker,
}

impl Cli {
    /// Options without effect are refused rather than ignored, and the output is none of the inputs.
    pub(crate) fn check(&self) -> Result<()> {
        if self.marker.is_some() && self.position != Position::AfterMarker {
            return Err(usage("--marker needs --position after-marker"));
        }
        if self.max_new_tokens.is_some() && self.position == Position::PromptEnd {
            return Err(usage("--max-new-tokens needs --position last-label or after-marker"));
        }
        let outputs = Outputs::new([&self.input.input]).rows([&self.output.output]);
        Ok(outputs.overwrite(self.output.write.overwrite).check()?)
    }

    pub(crate) fn labels(&self) -> Result<Vec<String>> {
        let Some(labels) = &self.labels else { return Ok((1..=self.points).map(|label| label.to_string()).collect()) };
        if labels.iter().any(String::is_empty) {
            return Err(usage("--labels: a label is empty"));
        }
        match labels.iter().enumerate().find(|(i, label)| labels[..*i].contains(label)) {
            Some((_, label)) => Err(usage(format!("--labels: {label:?} appears twice"))),
            None => Ok(labels.clone()),
        }
    }

    pub(crate) fn condition(&self) -> Condition {
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
    pub(crate) fn settings(&self, labels: &[String], condition: &Condition) -> Result<Settings> {
        let entries = [
            ("labels", json!(labels)),
            ("condition", serde_json::to_value(condition)?),
            ("prefill", json!(self.prefill)),
            ("lens", json!(self.lens)),
            ("layers", json!(self.layers.to_string())),
        ];
        Ok(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }
}
