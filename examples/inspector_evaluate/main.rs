//! Question and answer pairs judged by probes: a class per aspect, and their total.
//!
//! `cargo run --release --example inspector_evaluate -- --input pairs.jsonl --probes probes --output judged.jsonl`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use judge_data::{Layout, Rows};
use judge_examples::console::{check_scored, say, start, table};
use judge_examples::inspector::{Evaluation, ProbeArgs, evaluate};

/// Judge answers by probes (INSPECTOR).
///
/// Input: objects with a question (or instruction) and a response, graded by nobody. Each comes back with all its fields, the class that each aspect's probe predicts,
/// `total_score`, their sum, and the probabilities behind them by class. What could not be read has null and the reason. inspector_filter keeps the best.
#[derive(Parser)]
#[command(name = "inspector_evaluate")]
struct Cli {
    /// Where the judged pairs go: a JSON array if it ends in .json, else JSON lines. Interrupted, the same command resumes
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    probes: ProbeArgs,
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    let array = cli.output.extension().is_some_and(|extension| extension == "json");
    let layout = if array { Layout::Array } else { Layout::Lines };
    let evaluation = evaluate(&cli.probes, "inspector_evaluate", &cli.output, layout)?;
    if evaluation.was_complete {
        say(format_args!("{} is complete; nothing to do", cli.output.display()))?;
    }
    say(table(&summary(cli, &evaluation)?).trim_end())?;
    say(format_args!("{} of {} pairs judged -> {}", evaluation.counts.scored, evaluation.rows, cli.output.display()))?;
    check_scored(evaluation.counts.scored, evaluation.counts.unscored)
}

/// How often each class was given.
fn summary(cli: &Cli, evaluation: &Evaluation) -> Result<Vec<Vec<String>>> {
    let mut classes: Vec<BTreeMap<i64, usize>> = vec![BTreeMap::new(); evaluation.aspects.len()];
    for row in Rows::open(&cli.output)? {
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
