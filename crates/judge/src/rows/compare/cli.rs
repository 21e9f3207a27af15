//! The command line.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use judge_cli::args::bars::BarArgs;
use judge_cli::args::files::{CarryArgs, InputArgs, OutputArgs};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::args::numbers::at_least;
use judge_cli::args::prompt_judge::PromptedArgs;

/// The name of the command, and the one in records.
pub(super) const COMMAND: &str = "compare";
pub(super) const PROGRAM: &str = "prompt_judge";

/// How the help of the command ends.
const EXAMPLES: &str = "\
Examples:
  judge compare --input pairs.jsonl --output verdicts.jsonl --model path/to/model --verdict logits
  judge compare --old old.jsonl --new new.jsonl --output verdicts.jsonl --model path/to/model --apart --verdict logits

More: docs/prompted.md";

/// Judge responses, or pairs of them, by a prompt.
///
/// Pairs {"id", "instruction", "response_a", "response_b", "reference"?, "rubric"?, "human"?: "A"|"B"|"tie"} get "verdict": A, B or tie;
/// where probabilities are read, by the log-odds of both orders averaged; else inconsistent if the written verdicts of the orders disagree.
/// They also get "preference": the probability of A where probabilities are read, and "orders": what the judge said in each, in the letters
/// of the given order. Single responses {"id", "instruction", "response", …}, or {"id", "messages"} whose last turn is judged, get "score".
/// What holds no verdict is "unscored", with the text. Other fields are carried over. In the end a tally of all rows is printed: of pairs
/// the verdicts, the mean preference for A and whether verdicts follow the place; of single responses how scores are distributed.
///
/// With --old, the files hold responses of two versions to the same prompts, {"id", "instruction", "response"}: their rows are joined by id,
/// A is the new response and B the old one. Pairs whose better response is known, those of --graded, say whether the judge can tell:
/// `separates` is the share of them that it orders rightly.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("input", |input| input.visible_alias("new")))]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Responses of an older version to the prompts of --new
    #[arg(long, value_name = "FILE", conflicts_with = "part")]
    pub(super) old: Option<PathBuf>,
    /// With --old: pairs whose better response is known, by people or because the other one was made worse on purpose, with "human": "A" or
    /// "B". All are judged in the same run, whatever --limit, which is of the pairs of two versions, and count for `separates` alone
    #[arg(long, value_name = "FILE", requires = "old")]
    pub(super) graded: Option<PathBuf>,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// What is judged [default: pair if rows have response_a and response_b, else single]
    #[arg(long, value_enum)]
    pub(super) task: Option<Task>,
    #[command(flatten)]
    pub(super) judge: PromptedArgs,
    /// Single responses: the grades are 1 to N [default: the family's: 10, 5 for rubric and for the model's own template]
    #[arg(long, value_name = "N", value_parser = at_least::<u16>(2), help_heading = "Judge")]
    pub(super) points: Option<u16>,
    /// Pairs: ask in the given order alone, or in both [default: both]
    #[arg(long, value_enum, help_heading = "Judge")]
    pub(super) orders: Option<Orders>,
    /// Pairs in the given order alone: verdicts of this judge on other pairs, graded or not; what the place that is shown first adds to the
    /// log-odds in their middle is taken off
    #[arg(long, value_name = "FILE", help_heading = "Judge")]
    pub(super) place: Option<PathBuf>,
    /// A probe of `judge probe train --verdicts`: how likely people would say the same, beside each verdict
    #[arg(long, value_name = "FILE", conflicts_with_all = ["place", "apart", "reward"], help_heading = "Judge")]
    pub(super) confidence: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) carry: CarryArgs,
    /// Where the tally goes
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    #[command(flatten)]
    pub(super) bars: BarArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Task {
    Single,
    Pair,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Orders {
    Given,
    Both,
}

impl Cli {
    /// Whether the rows are said to be pairs.
    pub(crate) fn is_of_pairs(&self) -> bool {
        self.task == Some(Task::Pair) || self.old.is_some()
    }

    pub(super) fn orders(&self) -> Orders {
        self.orders.unwrap_or(Orders::Both)
    }
}
