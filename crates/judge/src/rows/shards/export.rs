//! `export`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::check::{Checked, PartsArgs};

/// What is checked first, and then joined.
#[derive(Args)]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    of: PartsArgs,
    /// The folder of the parts; with --input the files that the engine wrote, their folder, or a pattern
    #[arg(long, required = true, num_args = 1.., value_name = "DIR|GLOB")]
    parts: Vec<String>,
    /// Where the results go: JSON lines in the order of the input. Of a plan of a command, the file that this command would have written,
    /// with its run record and what it keeps beside it; else a score file with the fields of the template
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Write the rows of all files of a command's plan here, for commands that go on from the joined results
    #[arg(long, value_name = "FILE.jsonl", conflicts_with = "input")]
    rows: Option<PathBuf>,
    /// The input's column of human scores, for a score file [default: as every command finds it: human, scores or score]
    #[arg(long, value_name = "COLUMN")]
    human: Option<String>,
}

pub(crate) fn export(args: &ExportArgs) -> Result<()> {
    let ExportArgs { of, parts, output, rows, human } = args;
    Checked { parts: of, output: parts, export: Some(output), rows: rows.as_ref(), human: human.as_deref() }.run()
}
