//! `export`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::check::CheckArgs;
use crate::args::files::OverwriteArgs;

/// What is checked first, and then joined.
#[derive(Args)]
pub(crate) struct ExportArgs {
    /// The plan whose parts are joined
    #[arg(long, value_name = "PLAN.json", required_unless_present = "input", conflicts_with_all = ["input", "run"])]
    plan: Option<PathBuf>,
    /// What an engine scored: Parquet files, their folder, or a pattern
    #[arg(long, num_args = 1.., value_name = "GLOB", requires = "run")]
    input: Vec<String>,
    /// The folder of the parts; with --input the files that the engine wrote, their folder, or a pattern
    #[arg(long, required = true, num_args = 1.., value_name = "DIR|GLOB")]
    parts: Vec<String>,
    /// The record of the run, which `judge stream --run` wrote
    #[arg(long, value_name = "RUN.json")]
    run: Option<PathBuf>,
    /// Where the results go: JSON lines in the order of the input. Of a plan of a command, the file that this command would have written, with its run record and what it keeps beside it; else a
    /// score file with the fields of the template
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Write the rows of all files of a command's plan here, for commands that go on from the joined results
    #[arg(long, value_name = "FILE.jsonl", conflicts_with = "input")]
    rows: Option<PathBuf>,
    /// The input's column of human scores, for a score file [default: human, scores or score, if one of them holds numbers]
    #[arg(long, value_name = "COLUMN")]
    human: Option<String>,
    /// Rows that are there more than once are no fault if they are equal: an engine that tries again may write both
    #[arg(long)]
    allow_repeats: bool,
    /// This many rows whose worker died are no fault
    #[arg(long, default_value_t = 0, value_name = "ROWS")]
    allow_lost: u64,
    /// All rows must come from one device and instruction set: on the CPU, bits are promised for each
    #[arg(long)]
    one_device: bool,
    /// Write what was found here
    #[arg(long, value_name = "FILE.json")]
    json: Option<PathBuf>,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    write: OverwriteArgs,
}

pub(crate) fn export(args: &ExportArgs) -> Result<()> {
    let ExportArgs {
        plan,
        input,
        parts,
        run,
        output,
        rows,
        human,
        allow_repeats,
        allow_lost,
        one_device,
        json,
        quiet,
        write,
    } = args;
    super::check::check(&CheckArgs {
        plan: plan.clone(),
        input: input.clone(),
        output: parts.clone(),
        run: run.clone(),
        allow_repeats: *allow_repeats,
        allow_lost: *allow_lost,
        one_device: *one_device,
        json: json.clone(),
        export: Some(output.clone()),
        rows: rows.clone(),
        human: human.clone(),
        quiet: *quiet,
        write: *write,
    })
}
