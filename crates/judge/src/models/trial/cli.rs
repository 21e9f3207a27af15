//! The command line.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use judge_cli::args::decisions::DecisionPromptArgs;
use judge_cli::args::files::{InputArgs, OverwriteArgs, beside};
use judge_cli::args::lager::AskedArgs;
use judge_cli::args::model_args::{ModelArgs, SeedArgs};
use judge_cli::args::numbers::{at_least, within};
use judge_cli::terminal::console::usage;
use judge_cli::terminal::svg;

/// What figures and tables call this program.
pub(super) const PROGRAM: &str = "try";

/// How the help of the command ends.
const EXAMPLES: &str = "\
Examples:
  judge try --input graded.jsonl --model path/to/model
  judge try --input graded.jsonl --model path/to/model --rubric 'How polite is the reply?' --json tried.json

More: docs/choosing.md";

/// Try every reading of a model on rows that people have graded, and say which to use.
///
/// Input: {"id", "instruction", "response", "rubric"?, "human"}, and the other formats of `judge score`; some hundred rows. The model reads
/// each row once as it is asked for a score, a response once more as it is asked whether a statement is true of it, and once as a
/// conversation that asks nothing. Compared are the score and P(yes) at the last layer and at the best one, the score of all layers with
/// and without learnt weights, and linear probes where the score is read and after the response; beside them the length of the response,
/// which a judge should beat. What a reading learns comes from rows other than those that it is judged by. What is learnt from all rows is
/// saved, with the command that uses it.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Folder for what is read, from which an interrupted run resumes, and for what is learnt [default: INPUT.try]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write the figures here
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Where a plot of the readings goes, each with its interval
    #[arg(long, value_parser = svg::path, value_name = "FILE.svg")]
    pub(crate) plot: Option<PathBuf>,
    /// The statement that is true of a good response
    #[arg(long, value_name = "TEXT", default_value = "The response is a good answer to the request.")]
    pub(crate) criterion: String,
    /// Field whose rows stay on one side of every split [default: the instruction, nearly equal texts, and a field whose values repeat as
    /// those of a question's number do, which a note names]
    #[arg(long, value_name = "FIELD")]
    pub(crate) group: Option<String>,
    /// Parts that the rows are cut into; each is judged by what was learnt from the others
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = within::<usize>(2, 50))]
    pub(super) folds: usize,
    /// Resamples of each interval
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = at_least::<usize>(1_000))]
    pub(super) resamples: usize,
    #[command(flatten)]
    pub(crate) asked: AskedArgs,
    #[command(flatten)]
    pub(crate) decisions: DecisionPromptArgs,
    #[command(flatten)]
    pub(crate) write: OverwriteArgs,
    #[command(flatten)]
    pub(crate) seed: SeedArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

impl Cli {
    /// Where readings are kept.
    pub(super) fn folder(&self) -> Result<PathBuf> {
        match &self.output {
            Some(folder) => Ok(folder.clone()),
            None if self.input.input.as_os_str() == "-" => {
                Err(usage("--output DIR is needed where the rows come from standard input"))
            }
            None => Ok(beside(&self.input.input, "try")),
        }
    }
}
