//! Question and answer pairs judged by probes: a class per aspect, and their total.
//!
//! `cargo run --release --example inspector_evaluate -- --input pairs.jsonl --probes probes --output judged.jsonl`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use judge_data::{JsonlWriter, Layout, Rows, check_outputs, write_atomic};
use judge_examples::console::{check_scored, say, start, table, usage};
use judge_examples::inspector::{Evaluation, ProbeArgs, Ranking, evaluate, judged_path, rows_at};

/// Judge answers by probes (INSPECTOR).
///
/// Input: objects with a question (or instruction) and a response, graded by nobody. Each comes back with all its fields, the class that each aspect's probe predicts,
/// `total_score`, their sum, and the probabilities behind them by class. What could not be read has null and the reason. inspector_filter keeps the best of the rows as they are.
#[derive(Parser)]
#[command(name = "inspector_evaluate")]
struct Cli {
    /// Where the judged pairs go: a JSON array if it ends in .json, else JSON lines. Interrupted, the same command resumes
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Keep only this share of the pairs, the best by total, best first; all of them stay in OUTPUT.judged.jsonl
    #[arg(long, alias = "top-percent", value_name = "SHARE")]
    top_share: Option<f64>,
    #[command(flatten)]
    probes: ProbeArgs,
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    let array = cli.output.extension().is_some_and(|extension| extension == "json");
    let layout = if array { Layout::Array } else { Layout::Lines };
    let share = cli.top_share.filter(|&share| share != 1.0);
    if let Some(share) = share.filter(|share| !(0.0..=1.0).contains(share)) {
        return Err(usage(format!(
            "--top-share {share} is not between 0 and 1; a fifth of the pairs is --top-share 0.2"
        )));
    }
    let (judged, layout) = match share {
        Some(_) => (judged_path(&cli.output), Layout::Lines),
        None => (cli.output.clone(), layout),
    };
    check_outputs([&cli.probes.input.input], [&cli.output])?;
    let evaluation = evaluate(&cli.probes, "inspector_evaluate", &judged, layout)?;
    if evaluation.was_complete {
        say(format_args!("{} is complete", judged.display()))?;
    }
    say(table(&summary(&judged, &evaluation)?).trim_end())?;
    let (scored, rows) = (evaluation.counts.scored, evaluation.rows);
    say(format_args!("{scored} of {rows} pairs judged -> {}", judged.display()))?;
    if let Some(share) = share {
        let (kept, tied) = Ranking::read(&judged)?.best(share);
        let best = rows_at(&judged, &kept)?;
        if array {
            write_atomic(&cli.output, &serde_json::to_vec_pretty(&best)?)?;
        } else {
            let mut output = JsonlWriter::create(&cli.output)?;
            best.iter().try_for_each(|row| output.write(row))?;
            output.finish()?;
        }
        let output = cli.output.display();
        say(format_args!("{} kept -> {output}; {tied} further rows have the same total as the last one", kept.len()))?;
    }
    check_scored(evaluation.counts.scored, evaluation.counts.unscored)
}

/// How often each class was given.
fn summary(judged: &Path, evaluation: &Evaluation) -> Result<Vec<Vec<String>>> {
    let mut classes: Vec<BTreeMap<i64, usize>> = vec![BTreeMap::new(); evaluation.aspects.len()];
    for row in Rows::open(judged)? {
        let row = row?;
        for (aspect, classes) in evaluation.aspects.iter().zip(&mut classes) {
            if let Some(class) = row.value(aspect).and_then(|class| class.parse().ok()) {
                *classes.entry(class).or_default() += 1;
            }
        }
    }
    let mut rows = vec![["aspect", "mean", "unscored", "classes"].map(str::to_owned).to_vec()];
    for (aspect, classes) in evaluation.aspects.iter().zip(classes) {
        let scored: usize = classes.values().sum();
        let sum: f64 = classes.iter().map(|(&class, &count)| class as f64 * count as f64).sum();
        let mean = if scored > 0 { format!("{:.3}", sum / scored as f64) } else { "none".to_owned() };
        let counts: Vec<String> = classes.iter().map(|(class, count)| format!("{class}: {count}")).collect();
        rows.push(vec![aspect.clone(), mean, (evaluation.rows - scored).to_string(), counts.join("  ")]);
    }
    Ok(rows)
}
