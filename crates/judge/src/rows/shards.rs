//! Scores files of rows in shards, or puts any other command to them, on as many machines as there are, and proves that no row is missing.
//!
//! ```sh
//! judge shards plan --input 'data/*.parquet' --columns instruction=prompt,response=completion --output plan.json
//! judge shards run --plan plan.json --output parts --shard 0/1     # or 0/8 to 7/8, anywhere
//! judge shards check --plan plan.json --output parts
//! judge shards export --plan plan.json --parts parts --output scores.jsonl
//!
//! judge shards plan --input rows.jsonl --output plan.json -- reward --model DIR
//! ```

mod check;
pub(crate) mod command;
mod plan;
mod run;
mod run_args;
mod said;

use anyhow::Result;
use clap::{Args, Subcommand};

use self::said::with_folder;

/// Score rows in shards, or put any other command to them, and prove that no row is missing.
///
/// A plan fixes which rows make a shard, and behind `--` the command that makes rows of them; without one, Parquet files are scored.
/// Any number of processes run shards, in any order and as often as they like: a part appears whole or not at
/// all, and one that is there is not made again. The folder of parts is the data set.
/// The check says with exit code 0 that every row was scored once, from
/// the text that is in the files.
#[derive(Args)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
#[allow(clippy::large_enum_variant)] // one of it exists
enum Command {
    /// Cut files into shards, and write down what their results must add up to
    Plan(plan::PlanArgs),
    /// Score the shards of a plan whose number is i modulo n
    Run(run_args::RunArgs),
    /// Say whether every row was scored once, and which were not
    Check(check::CheckArgs),
    /// If all is complete, join the results in the order of the input
    Export(check::ExportArgs),
}

pub(crate) fn run(cli: &Cli, commands: &dyn command::Commands) -> Result<()> {
    match &cli.command {
        Command::Plan(args) => plan::plan(args, commands),
        Command::Run(args) => run::run(args, commands).map_err(|error| with_folder(&args.plan, error)),
        Command::Check(args) => check::check(args),
        Command::Export(args) => check::export(args),
    }
}
