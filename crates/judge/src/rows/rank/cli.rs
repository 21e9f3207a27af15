//! The command line.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use judge_cli::args::bars::BarArgs;
use judge_cli::args::files::{CarryArgs, InputArgs, OutputArgs};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::args::numbers::at_least;
use judge_cli::args::prompt_judge::PromptedArgs;

use super::comparisons::Strategy;

/// Rank the answers to each question and choose the best.
///
/// Rows {"id", "instruction", "responses": [text, …], "rubric"?, "reference"?, "human"?:
/// [grade, …]} get "best" and "ranking" (places in `responses`, from 0), "scores" (the strength of
/// each answer: log-odds, of sum 0; of equal ones the first comes first), their 95 % "intervals", "margin" (how far the best is ahead of
/// the second) and "comparisons" with the preference for the first of two answers, the mean of both orders, and the verdict of each.
/// With --apart each answer is graded by itself, and "scores" are grades; with --reward they are rewards.
/// Where people have graded the answers, a report says how good the chosen ones are.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    /// Where the report on rows with `human` goes
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Whose score the report has too. rewardbench2: rows of RewardBench 2, whose `chosen` and `rejected` are lists, by their `subset`
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) benchmark: Option<Benchmark>,
    #[command(flatten)]
    pub(super) judge: PromptedArgs,
    /// Which answers are compared: all pairs of them, or those of which most is to be learnt, round by round
    #[arg(long, value_enum, default_value_t = Strategy::RoundRobin, conflicts_with_all = ["apart", "reward"], help_heading = "Judge")]
    pub(super) strategy: Strategy,
    /// With --strategy adaptive: how many comparisons a row may take [default: 2 n of n answers]
    #[arg(long, value_name = "N", conflicts_with_all = ["apart", "reward"], value_parser = at_least::<u32>(1), help_heading = "Judge")]
    pub(super) comparisons: Option<u32>,
    #[command(flatten)]
    pub(crate) carry: CarryArgs,
    #[command(flatten)]
    pub(super) bars: BarArgs,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// `--benchmark`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Benchmark {
    #[value(name = "rewardbench2")]
    RewardBench2,
}
