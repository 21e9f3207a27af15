//! A data set filtered by probes: the rows worth training on, unchanged.
//!
//! `judge probe filter --input pairs.jsonl --probes probes --output kept.jsonl --top-share 0.2`

use std::path::PathBuf;

use anyhow::Result;
use clap::{ArgGroup, Args};
use judge_cli::args::files::tell_json_lines;
use judge_cli::args::numbers::number;
use judge_cli::report::write_json_if;
use judge_cli::terminal::console::{counted_that, end_of_rows, say};
use judge_data::{InputFile, Layout, Outputs};
use serde_json::json;

use crate::inspector::{Clash, Kept, ProbeArgs, Ranking, evaluate, judged_path, share_kept};

/// The program's name, for records.
const PROGRAM: &str = "inspector_filter";

/// Filter a data set by probes (INSPECTOR).
///
/// Keeps rows of the input as they are, as JSON lines: the best share by the sum of the aspects' classes, or all that reach a total. Of
/// equal totals those with the higher expected grades are better (a support vector machine knows none; then the order of the input
/// decides). Rows that could not be judged are never kept, and counted. What the probes say of every row stays in OUTPUT.judged.jsonl, so
/// that another share of the same rows needs no model (with --overwrite).
#[derive(Args)]
#[command(group(ArgGroup::new("which").args(["top_share", "min_total"]).required(true)))]
pub(crate) struct Cli {
    /// Where the kept rows go
    #[arg(long, value_name = "FILE.jsonl")]
    output: PathBuf,
    /// Keep this share of all rows, the best by total, best first
    #[arg(long, alias = "top-percent", value_name = "SHARE", value_parser = share_kept)]
    top_share: Option<f64>,
    /// Keep what has at least this total, in the order of the input
    #[arg(long, value_name = "TOTAL", value_parser = number)]
    min_total: Option<f64>,
    /// Where counts and the totals of the kept rows go
    #[arg(long, alias = "report", value_name = "FILE.json")]
    json: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) probes: ProbeArgs,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    let judged = judged_path(&cli.output);
    let outputs = Outputs::new([&cli.probes.input.input].into_iter().chain(&cli.probes.probes));
    let outputs = outputs.rows([&cli.output, &judged]).reports(PROGRAM, &cli.json);
    outputs.overwrite(cli.probes.write.overwrite).check()?;
    tell_json_lines(&cli.output);
    let settings = [("top_share", json!(cli.top_share)), ("min_total", json!(cli.min_total))];
    let of_kept = Kept {
        program: PROGRAM,
        output: &cli.output,
        layout: Layout::Lines,
        settings: settings.map(|(key, value)| (key.to_owned(), value)).into(),
        write: cli.probes.write,
    };
    of_kept.check()?;
    // Opened once: a pipe has its rows no second time.
    let input = cli.probes.input.open()?;
    let evaluation = evaluate(&cli.probes, &input, PROGRAM, &judged, Layout::Lines, Clash::LeftOut)?;
    if let Some(part) = &cli.probes.input.part {
        // The best are chosen from all rows.
        return say(format_args!("rows {part} judged -> {}", judged.display()));
    }
    let ranking = Ranking::read(&judged)?;
    let (kept, tied) = match (cli.top_share, cli.min_total) {
        (Some(share), _) => ranking.best(share),
        (None, least) => {
            let reaches = |row: &usize| ranking.totals[*row].is_some_and(|(total, _)| least.is_none_or(|l| total >= l));
            ((0..ranking.totals.len()).filter(reaches).collect(), 0)
        }
    };
    let inputs = vec![input.identity()?.with_rows(evaluation.rows), InputFile::of(&judged)?];
    let was_complete = !of_kept.write(&input, &kept, inputs)?;
    let unscored: usize = evaluation.counts.unscored.values().sum();
    write_json_if(cli.json.as_deref(), PROGRAM, || {
        let total = |row: &usize| ranking.totals[*row].map(|(total, _)| total);
        let rows: Vec<_> = kept.iter().map(|row| json!({"row": row, "total_score": total(row)})).collect();
        Ok(json!({
            "n": evaluation.rows, "kept": kept.len(), "unscored": unscored, "tied": tied, "aspects": evaluation.aspects, "kept_rows": rows,
        }))
    })?;
    let (n, output) = (evaluation.rows, cli.output.display());
    if was_complete {
        say(format_args!("{output} is complete; nothing to do"))?;
    }
    say(format_args!("{} of {n} rows kept, {unscored} unscored -> {output}", kept.len()))?;
    if tied > 0 {
        let knows_expected = ranking.totals.iter().flatten().any(|(_, expected)| expected.is_some());
        let kept = if knows_expected { "have the higher expected grades" } else { "come first in the input" };
        let further = counted_that(tied, "further row", ["has", "have"]);
        say(format_args!("{further} the same total as the last one kept; those kept {kept}"))?;
    }
    end_of_rows(&evaluation.counts)
}
