//! A data set filtered by probes: the rows worth training on, unchanged.
//!
//! `cargo run --release --example inspector_filter -- --input pairs.jsonl --probes probes --output kept.jsonl --top-percent 0.2`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use judge_data::{JsonlWriter, write_atomic};
use judge_examples::console::{say, start, usage};
use judge_examples::inspector::{ProbeArgs, best, evaluate};
use serde_json::json;

/// Filter a data set by probes (INSPECTOR).
///
/// Keeps rows of the input as they are, as JSON lines: the best share by the sum of the aspects' classes, or all that reach a total. Rows that could
/// not be judged are never kept, and counted.
#[derive(Parser)]
#[command(name = "inspector_filter")]
struct Cli {
    #[command(flatten)]
    probes: ProbeArgs,
    /// Where the kept rows go
    #[arg(long, value_name = "FILE.jsonl")]
    output: PathBuf,
    /// Keep this share of all rows, the best by total, best first
    #[arg(long, value_name = "SHARE", conflicts_with = "min_total", required_unless_present = "min_total")]
    top_percent: Option<f64>,
    /// Keep what has at least this total, in the order of the input
    #[arg(long, value_name = "TOTAL", allow_negative_numbers = true)]
    min_total: Option<f64>,
    /// Where counts and the total of each row go
    #[arg(long, value_name = "FILE.json")]
    report: Option<PathBuf>,
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    if cli.top_percent.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
        return Err(usage("--top-percent is a share between 0 and 1"));
    }
    if cli.min_total.is_some_and(f64::is_nan) {
        return Err(usage("--min-total must be a number"));
    }
    let evaluation = evaluate(&cli.probes)?;
    let pairs = &evaluation.pairs;
    let mut kept = best(pairs, cli.top_percent.unwrap_or(1.0));
    kept.retain(|&index| pairs[index].total.is_some_and(|total| cli.min_total.is_none_or(|least| total >= least)));
    let mut output = JsonlWriter::create(&cli.output)?;
    for &index in &kept {
        output.write(&pairs[index].pair.fields)?;
    }
    output.finish()?;
    let unscored = pairs.iter().filter(|pair| pair.total.is_none()).count();
    if let Some(path) = &cli.report {
        let totals: Vec<Option<f64>> = pairs.iter().map(|pair| pair.total).collect();
        let report = json!({
            "n": pairs.len(), "kept": kept.len(), "unscored": unscored, "aspects": evaluation.aspects, "kept_rows": kept, "totals": totals,
        });
        write_atomic(path, &serde_json::to_vec_pretty(&report)?)?;
    }
    say(format_args!("{} of {} rows kept, {unscored} unscored -> {}", kept.len(), pairs.len(), cli.output.display()))
}
