//! A data set filtered by probes: the rows worth training on, unchanged.
//!
//! `cargo run --release --example inspector_filter -- --input pairs.jsonl --probes probes --output kept.jsonl --top-share 0.2`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use judge_data::{JsonlWriter, Layout, check_outputs, write_atomic};
use judge_examples::console::{check_scored, say, start, usage};
use judge_examples::inspector::{ProbeArgs, Ranking, evaluate, judged_path, rows_at};
use serde_json::json;

/// Filter a data set by probes (INSPECTOR).
///
/// Keeps rows of the input as they are, as JSON lines: the best share by the sum of the aspects' classes, or all that reach a total. Of equal totals those with the higher expected
/// grades are better (a support vector machine knows none; then the order of the input decides). Rows that could not be judged are never kept, and counted. What the probes say of every row
/// stays in OUTPUT.judged.jsonl, so that another share of the same rows needs no model.
#[derive(Parser)]
#[command(name = "inspector_filter")]
struct Cli {
    /// Where the kept rows go
    #[arg(long, value_name = "FILE.jsonl")]
    output: PathBuf,
    /// Keep this share of all rows, the best by total, best first
    #[arg(long, alias = "top-percent", value_name = "SHARE", conflicts_with = "min_total")]
    top_share: Option<f64>,
    /// Keep what has at least this total, in the order of the input
    #[arg(long, value_name = "TOTAL", allow_negative_numbers = true)]
    min_total: Option<f64>,
    /// Where counts and the totals of the kept rows go
    #[arg(long, alias = "report", value_name = "FILE.json")]
    json: Option<PathBuf>,
    #[command(flatten)]
    probes: ProbeArgs,
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    if let Some(share) = cli.top_share.filter(|share| !(0.0..=1.0).contains(share)) {
        return Err(usage(format!(
            "--top-share {share} is not between 0 and 1; a fifth of the rows is --top-share 0.2"
        )));
    }
    if cli.top_share.is_none() && cli.min_total.is_none() {
        return Err(usage("--top-share SHARE or --min-total TOTAL is needed"));
    }
    if cli.min_total.is_some_and(f64::is_nan) {
        return Err(usage("--min-total must be a number"));
    }
    let judged = judged_path(&cli.output);
    let outputs = [Some(&cli.output), Some(&judged), cli.json.as_ref()];
    check_outputs([&cli.probes.input.input], outputs.into_iter().flatten())?;
    let evaluation = evaluate(&cli.probes, "inspector_filter", &judged, Layout::Lines)?;
    let ranking = Ranking::read(&judged)?;
    let (kept, tied) = match (cli.top_share, cli.min_total) {
        (Some(share), _) => ranking.best(share),
        (None, least) => {
            let reaches = |row: &usize| ranking.totals[*row].is_some_and(|(total, _)| least.is_none_or(|l| total >= l));
            ((0..ranking.totals.len()).filter(reaches).collect(), 0)
        }
    };
    let mut output = JsonlWriter::create(&cli.output)?;
    rows_at(&cli.probes.input.open()?, &kept)?.iter().try_for_each(|row| output.write(row))?;
    output.finish()?;
    let unscored: usize = evaluation.counts.unscored.values().sum();
    if let Some(path) = &cli.json {
        let total = |row: &usize| ranking.totals[*row].map(|(total, _)| total);
        let rows: Vec<_> = kept.iter().map(|row| json!({"row": row, "total_score": total(row)})).collect();
        let report = json!({
            "n": evaluation.rows, "kept": kept.len(), "unscored": unscored, "tied": tied, "aspects": evaluation.aspects, "kept_rows": rows,
        });
        write_atomic(path, &serde_json::to_vec(&report)?)?;
    }
    let (n, output) = (evaluation.rows, cli.output.display());
    say(format_args!("{} of {n} rows kept, {unscored} unscored -> {output}", kept.len()))?;
    if tied > 0 {
        say(format_args!(
            "{tied} further rows have the same total as the last one kept; those kept have the higher expected grades"
        ))?;
    }
    check_scored(evaluation.counts.scored, evaluation.counts.unscored)
}
