//! The command line.

use std::path::PathBuf;

use clap::Args;

use judge_cli::args::files::{CarryArgs, InputArgs, OutputArgs};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::args::numbers::at_least;

/// The name in records.
pub(super) const PROGRAM: &str = "sft-evaluate";

/// Measure a model that writes on held-out replies: how likely they are, and whether it finds right answers itself.
///
/// Rows as `judge tune --objective completion` reads them: {"messages"} that end with a reply, or {"instruction", "response"}. Each gets
/// "nats_per_token" of the reply and "reply_tokens", what the chat template closes it with included. A row with "answer", or else
/// "reference", is also answered by the model, greedily: "written", "correct", or why that is "undecided". The right answer is the last
/// \boxed{…} of that field, else what follows its last ####, else all of it. If that is a number, the last number is compared that was
/// written, in the last \boxed{…} if there is one; else the text of that, or all that was written, white space at its ends aside. Where
/// no number was written, or nothing at all, the row is undecided, which counts as wrong.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// The figures for machines, with the ids of the undecided rows
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Upper bound on the tokens of an answer
    #[arg(long, default_value_t = 512, value_name = "N", value_parser = at_least::<u32>(1))]
    pub(super) max_new_tokens: u32,
    #[command(flatten)]
    pub(super) carry: CarryArgs,
    #[command(flatten)]
    pub(super) model: ModelArgs,
}
