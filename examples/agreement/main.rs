//! How a judge's scores agree with people's: every statistic that the data define, with its uncertainty.
//!
//! `cargo run --release --example agreement -- --input pairs.jsonl`

mod pairs;
mod print;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::Parser;
use judge_data::{check_outputs, write_atomic};
use judge_examples::console::{progress, say, start, usage};
use judge_examples::files::program;
use judge_examples::reliability;
use judge_examples::report::as_json;
use judge_metrics::comparison::{Comparison, ComparisonSettings, Comparisons, Labels, STATISTICS};
use judge_metrics::resampling::{Bootstrap, BootstrapMethod};
use serde_json::{Value, json};

use crate::pairs::{Fields, Pairs};

/// How a judge's scores agree with people's.
///
/// Input: JSON lines; each has a prediction and a human score, which is a number, a label, or a list of raters (their mean is then the
/// human score). The score files of lager_pointwise are read as they are. Scores in [0, 1] against 0 and 1 are also judged as
/// probabilities, whole numbers and texts also as labels. A row without a prediction or a human score is left out and counted. What the data do
/// not define is shown as undefined with the reason.
#[derive(Parser)]
#[command(name = "agreement")]
struct Cli {
    /// JSON lines of predictions and human scores
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Where the results go
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where a reliability plot goes: what people say by what the judge says
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Field of the prediction [default: predicted, else score]
    #[arg(long, value_name = "FIELD")]
    predicted: Option<String>,
    /// Field of the human score [default: human, scores or score, whichever is not the prediction]
    #[arg(long, value_name = "FIELD")]
    human: Option<String>,
    /// Field of a second judge's prediction: adds tests of the difference
    #[arg(long, value_name = "FIELD")]
    second: Option<String>,
    /// Field by whose values the statistics are given once more; above 50 groups, a line each
    #[arg(long, value_name = "FIELD")]
    group: Option<String>,
    /// Field that says which rows belong together, such as a question's id: intervals then draw whole clusters
    #[arg(long, value_name = "FIELD")]
    cluster: Option<String>,
    /// All labels, in their order [default: those that occur, if all scores are whole numbers or texts]
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    labels: Option<Vec<String>>,
    /// Only these statistics, such as spearman,mae; groups are then shown in a line each
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    statistics: Option<Vec<String>>,
    /// Also show where intervals and p-values come from
    #[arg(long)]
    methods: bool,
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
    /// No progress on stderr
    #[arg(long)]
    quiet: bool,
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    check_outputs([&cli.input], [&cli.json, &cli.plot].into_iter().flatten())?;
    if !(cli.level > 0.0 && cli.level < 1.0) {
        return Err(usage("--level must lie between 0 and 1"));
    }
    if cli.resamples == 0 {
        return Err(usage("--resamples must be at least 1"));
    }
    if let Some(name) = cli.statistics.iter().flatten().find(|name| !STATISTICS.contains(&name.as_str())) {
        return Err(usage(format!("--statistics: {name:?} is not one of {}", STATISTICS.join(", "))));
    }
    check_outputs([&cli.input], [&cli.json, &cli.plot].into_iter().flatten())?;
    let fields = Fields {
        predicted: cli.predicted.as_deref(),
        human: cli.human.as_deref(),
        second: cli.second.as_deref(),
        group: cli.group.as_deref(),
        cluster: cli.cluster.as_deref(),
    };
    let Pairs { predicted, human, items, groups, excluded } = Pairs::read(&cli.input, &fields, cli.limit)?;
    let n_excluded: usize = excluded.values().sum();
    ensure!(
        !items.is_empty(),
        "{}: no row has both a prediction ({predicted}) and a human score ({human})",
        cli.input.display()
    );
    let numeric = items[0].predicted.number().is_some();
    if let Some(names) = &cli.labels {
        Labels::named(names, numeric).map_err(|error| usage(format!("--labels: {error}")))?;
    }
    ensure!(cli.plot.is_none() || numeric, "--plot needs scores that are numbers; {} has texts", cli.input.display());
    let bootstrap =
        Bootstrap { resamples: cli.resamples, level: cli.level, seed: cli.seed, method: BootstrapMethod::Percentile };
    let settings = ComparisonSettings { bootstrap, labels: cli.labels.clone(), only: cli.statistics.clone() };
    let comparison = Comparison::new(items, settings)?;

    let mut rows_of: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    if let Some(field) = &cli.group {
        let none = format!("(no {field})");
        ensure!(
            !groups.iter().flatten().any(|group| *group == none),
            "a group is called {none:?}, as rows without one are"
        );
        for (row, group) in groups.into_iter().enumerate() {
            rows_of.entry(group.unwrap_or_else(|| none.clone())).or_default().push(row);
        }
    }
    let bar = progress("comparing sets of rows", rows_of.len() + 1, cli.quiet);
    let all: Vec<usize> = (0..comparison.items().len()).collect();
    let overall = comparison.statistics(&all);
    bar.inc(1);
    let of_group = |(group, rows): (String, Vec<usize>)| {
        let found = comparison.statistics(&rows);
        bar.inc(1);
        (group, found)
    };
    let groups: Vec<(String, Comparisons)> = rows_of.into_iter().map(of_group).collect();
    bar.finish_and_clear();

    let picture = cli.plot.as_ref().map(|path| {
        let bins = reliability::bins(comparison.items(), &bootstrap)?;
        let svg = reliability::svg(comparison.items(), &bins, &predicted, &human, cli.level)?;
        anyhow::Ok((path, svg))
    });
    let picture = picture.transpose()?;
    if let Some(path) = &cli.json {
        let report = json!({
            "program": program("agreement"), "n": overall.n, "excluded": n_excluded, "excluded_by_reason": excluded, "predicted": predicted, "human": human,
            "level": cli.level, "resamples": cli.resamples, "seed": cli.seed, "statistics": by_name(&overall),
            "groups": groups.iter().map(|(group, found)| (group.clone(), json!({"n": found.n, "statistics": by_name(found)})))
                .collect::<BTreeMap<_, _>>(),
        });
        write_atomic(path, &serde_json::to_vec_pretty(&report)?)?;
    }
    if let Some((path, svg)) = picture {
        write_atomic(path, svg.as_bytes())?;
    }
    let counts: Vec<String> = excluded.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let left_out =
        if counts.is_empty() { String::new() } else { format!(", {n_excluded} left out ({})", counts.join(", ")) };
    let title = format!("{predicted} against {human}: {}{left_out}", rows_in_words(overall.n));
    say(print::whole(&title, &overall, cli.methods).trim_end())?;
    if groups.len() > print::FEW_GROUPS || (cli.statistics.is_some() && !groups.is_empty()) {
        let names: Vec<&str> = match &cli.statistics {
            Some(names) => names.iter().map(String::as_str).collect(),
            None => vec!["spearman", "mae", "bias"],
        };
        let lines: Vec<_> = groups.iter().map(|(group, found)| (group.as_str(), found)).collect();
        return say(format_args!(
            "\n{}",
            print::compact(cli.group.as_deref().unwrap_or_default(), &lines, &names).trim_end()
        ));
    }
    groups.iter().try_for_each(|(group, found)| {
        let title = format!("{group}: {}", rows_in_words(found.n));
        say(format_args!("\n{}", print::whole(&title, found, cli.methods).trim_end()))
    })
}

/// As the contract has it.
fn by_name(found: &Comparisons) -> BTreeMap<&str, Value> {
    found.statistics.iter().map(|(name, statistic)| (name.as_str(), as_json(statistic))).collect()
}

fn rows_in_words(n: usize) -> String {
    if n == 1 { "1 row".to_owned() } else { format!("{n} rows") }
}
