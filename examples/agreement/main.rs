//! How a judge's scores agree with people's: every statistic that the data define, with its uncertainty.
//!
//! `cargo run --release --example agreement -- --input pairs.jsonl`

mod compare;
mod labels;
mod pairs;
mod plot;
mod statistics;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Parser;
use judge_data::write_atomic;
use judge_examples::console::{progress, say, start, table, usage};
use judge_metrics::resampling::{Bootstrap, BootstrapMethod};
use serde::Serialize;

use crate::labels::Labels;
use crate::pairs::{Fields, Pairs};
use crate::statistics::{Outcome, Settings, statistics};

/// How a judge's scores agree with people's.
///
/// Input: JSON lines; each has a prediction and a human score, which is a number, a label, or a list of raters (their mean is then the
/// human score). Scores in [0, 1] against 0 and 1 are also judged as probabilities, whole numbers and texts also as labels. A
/// prediction of null, or an "unscored" field, excludes its row, which is counted. What the data do not define is shown as undefined with
/// the reason.
#[derive(Parser)]
#[command(name = "agreement")]
struct Cli {
    /// JSON lines of predictions and human scores
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Field of the prediction
    #[arg(long, default_value = "predicted", value_name = "FIELD")]
    predicted: String,
    /// Field of the human score
    #[arg(long, default_value = "human", value_name = "FIELD")]
    human: String,
    /// Field of a second judge's prediction: which of the two agrees better?
    #[arg(long, value_name = "FIELD")]
    second: Option<String>,
    /// Field by whose values the statistics are given once more
    #[arg(long, value_name = "FIELD")]
    group: Option<String>,
    /// Field that says which rows belong together, such as a question's id: intervals then draw whole clusters
    #[arg(long, value_name = "FIELD")]
    cluster: Option<String>,
    /// All labels, in their order [default: those that occur, if all scores are whole numbers or texts]
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    labels: Option<Vec<String>>,
    /// Resamples of each bootstrap
    #[arg(long, default_value_t = 2_000, value_name = "N")]
    resamples: usize,
    /// Coverage of the intervals
    #[arg(long, default_value_t = 0.95, value_name = "SHARE")]
    level: f64,
    /// Chooses the resamples
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Read at most this many rows
    #[arg(long, value_name = "ROWS")]
    limit: Option<usize>,
    /// Where the results go
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where a reliability plot goes: what people say by what the judge says
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
}

#[derive(Serialize)]
struct Report {
    n: usize,
    excluded: usize,
    excluded_by_reason: BTreeMap<String, usize>,
    level: f64,
    resamples: usize,
    seed: u64,
    statistics: BTreeMap<String, Outcome>,
    groups: BTreeMap<String, GroupReport>,
}

#[derive(Serialize)]
struct GroupReport {
    n: usize,
    statistics: BTreeMap<String, Outcome>,
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    if !(cli.level > 0.0 && cli.level < 1.0) {
        return Err(usage("--level must lie between 0 and 1"));
    }
    if cli.resamples == 0 {
        return Err(usage("--resamples must be at least 1"));
    }
    let fields = Fields {
        predicted: &cli.predicted,
        human: &cli.human,
        second: cli.second.as_deref(),
        group: cli.group.as_deref(),
        cluster: cli.cluster.as_deref(),
    };
    let pairs = Pairs::read(&cli.input, &fields, cli.limit)?;
    ensure!(!pairs.rows.is_empty(), "{}: no row has both a prediction and a human score", cli.input.display());
    let bootstrap =
        Bootstrap { resamples: cli.resamples, level: cli.level, seed: cli.seed, method: BootstrapMethod::Percentile };
    let labels = match &cli.labels {
        Some(names) => Ok(Labels::named(names, pairs.numeric)?),
        None => Labels::occurring(&pairs),
    };
    let settings = Settings { bootstrap, labels: labels.as_ref() };
    if cli.plot.is_some() {
        ensure!(pairs.numeric, "--plot needs scores that are numbers; {} has texts", cli.input.display());
    }

    let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, row) in pairs.rows.iter().enumerate() {
        if let Some(group) = &row.group {
            groups.entry(group.clone()).or_default().push(index);
        }
    }
    let bar = progress("computing", groups.len() + 1, cli.quiet);
    let all: Vec<usize> = (0..pairs.rows.len()).collect();
    let overall = statistics(&pairs, &all, &settings)?;
    bar.inc(1);
    let mut text = lines(&format!("{}, {} excluded", rows_of(all.len()), pairs.n_excluded()), &overall);
    for (reason, count) in &pairs.excluded {
        text += &format!("  excluded, {reason}: {count}\n");
    }
    let mut reports = BTreeMap::new();
    for (group, rows) in groups {
        let found = statistics(&pairs, &rows, &settings)?;
        bar.inc(1);
        text += &format!("\n{}", lines(&format!("{group}: {}", rows_of(rows.len())), &found));
        reports.insert(group, GroupReport { n: rows.len(), statistics: found.into_iter().collect() });
    }
    bar.finish_and_clear();
    let picture = cli.plot.as_ref().map(|path| (path, plot::svg(&pairs, &cli.predicted, &cli.human, &bootstrap)));
    if let Some(path) = &cli.json {
        let report = Report {
            n: all.len(),
            excluded: pairs.n_excluded(),
            excluded_by_reason: pairs.excluded,
            level: cli.level,
            resamples: cli.resamples,
            seed: cli.seed,
            statistics: overall.into_iter().collect(),
            groups: reports,
        };
        write_atomic(path, &serde_json::to_vec_pretty(&report)?)?;
    }
    if let Some((path, svg)) = picture {
        write_atomic(path, svg?.as_bytes())?;
    }
    say(text.trim_end())
}

fn rows_of(n: usize) -> String {
    if n == 1 { "1 row".to_owned() } else { format!("{n} rows") }
}

/// The table that people read.
fn lines(title: &str, found: &[(String, Outcome)]) -> String {
    let mut rows = vec![[title, "estimate", "low", "high", "p", "method"].map(str::to_owned).to_vec()];
    let number = |x: Option<f64>| x.map_or_else(String::new, |x| format!("{x:.4}"));
    for (name, outcome) in found {
        rows.push(match outcome {
            Outcome::Found { estimate, low, high, p, method } => {
                let p = p.map_or_else(String::new, |p| match p {
                    0.0 => "<1e-300".to_owned(),
                    p if p < 1e-4 => format!("{p:.1e}"),
                    p => format!("{p:.4}"),
                });
                vec![name.clone(), number(Some(*estimate)), number(*low), number(*high), p, method.clone()]
            }
            Outcome::Undefined { undefined } => vec![name.clone(), format!("undefined: {undefined}")],
        });
    }
    // The reasons are long: they must not widen the column of the estimates.
    let (reasons, found): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.len() == 2);
    let mut text = table(&found);
    for alike in reasons.chunk_by(|a, b| a[1] == b[1]) {
        let names: Vec<&str> = alike.iter().map(|row| row[0].as_str()).collect();
        text += &format!("{}: {}\n", names.join(", "), alike[0][1]);
    }
    text
}
