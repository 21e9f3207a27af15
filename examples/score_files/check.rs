//! `check`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use judge_data::{Check, Completeness, ItemSpec, Output, RunRecord, ShardPlan, load, write_atomic};
use judge_examples::console::{progress, say, usage};

use crate::files::parquet_files;

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// The plan whose parts are checked
    #[arg(long, value_name = "PLAN.json", required_unless_present = "input", conflicts_with_all = ["input", "run"])]
    plan: Option<PathBuf>,
    /// What an engine scored: Parquet files, their folder, or a pattern
    #[arg(long, num_args = 1.., value_name = "GLOB", requires = "run")]
    input: Vec<String>,
    /// The folder of the parts; with --input the files that the engine wrote, their folder, or a pattern
    #[arg(long, required = true, num_args = 1.., value_name = "DIR|GLOB")]
    output: Vec<String>,
    /// The record of the run, which score_stream --run wrote
    #[arg(long, value_name = "RUN.json")]
    run: Option<PathBuf>,
    /// Rows that are there more than once are no fault if they are equal: an engine that tries again may write both
    #[arg(long)]
    allow_repeats: bool,
    /// This many rows that their worker did not survive are no fault
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
}

pub(crate) fn check(args: &CheckArgs) -> Result<()> {
    let allowed = Check { repeats: args.allow_repeats, lost: args.allow_lost, one_device: args.one_device };
    let bar = progress("checking", 0, args.quiet);
    let found = match (&args.plan, &args.run) {
        (Some(path), _) => {
            let plan: ShardPlan = load(path)?;
            let [folder] = &args.output[..] else { return Err(usage("with --plan, --output is one folder")) };
            let output = Output::Parts { plan: &plan, folder: folder.as_ref() };
            allowed.run(&output, |rows| bar.inc(rows))
        }
        (None, Some(path)) => {
            let (items, run) = of_record(path)?;
            let (input, output) = (parquet_files(&args.input)?, parquet_files(&args.output)?);
            let output = Output::Files { input: &input, items: &items, run: &run, output: &output };
            allowed.run(&output, |rows| bar.inc(rows))
        }
        (None, None) => return Err(usage("give --plan, or --input and --run")),
    };
    bar.finish_and_clear();
    let found = found?;
    if let Some(path) = &args.json {
        write_atomic(path, (serde_json::to_string_pretty(&found)? + "\n").as_bytes())?;
    }
    show(&found)?;
    match found.complete {
        true => Ok(()),
        false => bail!("not complete: {}", found.problems.join("\n  ")),
    }
}

/// What was read of the rows of a run, and its id.
fn of_record(path: &PathBuf) -> Result<(ItemSpec, String)> {
    let record: RunRecord = load(path)?;
    let setting = |name: &str| {
        record
            .setting(name)
            .cloned()
            .with_context(|| format!("{}: expected the setting `{name}`, which score_stream writes", path.display()))
    };
    Ok((serde_json::from_value(setting("items")?)?, serde_json::from_value(setting("run")?)?))
}

fn show(found: &Completeness) -> Result<()> {
    let Completeness { planned, rows, scored, unscored, digests, runs, devices, .. } = found;
    say(format_args!("{rows} results of {planned} rows, {scored} with a score"))?;
    for (status, rows) in unscored {
        say(format_args!("unscored, {status}: {rows}"))?;
    }
    for (run, rows) in runs {
        say(format_args!("run {run}: {rows}"))?;
    }
    for (device, rows) in devices {
        say(format_args!("device {device}: {rows}"))?;
    }
    say(format_args!("results {}", digests.results))?;
    say(if found.complete { "complete" } else { "not complete" })
}
