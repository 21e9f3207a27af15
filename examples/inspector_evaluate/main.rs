//! Question and answer pairs judged by probes: a class per aspect, and their total.
//!
//! `cargo run --release --example inspector_evaluate -- --input pairs.jsonl --probes probes --output judged.jsonl`

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use judge_core::Verdict;
use judge_data::{JsonlWriter, write_atomic};
use judge_examples::console::{say, start, table, usage};
use judge_examples::inspector::{Evaluation, ProbeArgs, best, evaluate};

/// Judge answers by probes (INSPECTOR).
///
/// Each object of the input comes back with the class that each aspect's probe predicts, `total_score`, their sum, and the probabilities behind them.
/// With --top-percent below 1 the best pairs are kept, best first. What could not be read has null and the reason.
#[derive(Parser)]
#[command(name = "inspector_evaluate")]
struct Cli {
    #[command(flatten)]
    probes: ProbeArgs,
    /// Where the judged pairs go: a JSON array if it ends in .json, else JSON lines
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Keep this share of the pairs, the best by total; 1 keeps all in their order
    #[arg(long, default_value_t = 1.0, value_name = "SHARE")]
    top_percent: f64,
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    if !(0.0..=1.0).contains(&cli.top_percent) {
        return Err(usage("--top-percent is a share between 0 and 1"));
    }
    let evaluation = evaluate(&cli.probes)?;
    let kept = best(&evaluation.pairs, cli.top_percent);
    let rows = kept.iter().map(|&index| evaluation.pairs[index].to_row(&evaluation.aspects));
    if cli.output.extension().is_some_and(|extension| extension == "json") {
        write_atomic(&cli.output, &serde_json::to_vec_pretty(&rows.collect::<Result<Vec<_>>>()?)?)?;
    } else {
        let mut output = JsonlWriter::create(&cli.output)?;
        for row in rows {
            output.write(&row?)?;
        }
        output.finish()?;
    }
    say(table(&summary(&evaluation)).trim_end())?;
    say(format_args!("{} of {} pairs -> {}", kept.len(), evaluation.pairs.len(), cli.output.display()))
}

/// How often each class was given.
fn summary(evaluation: &Evaluation) -> Vec<Vec<String>> {
    let mut rows = vec![["aspect", "mean", "unscored", "classes"].map(str::to_owned).to_vec()];
    for (index, aspect) in evaluation.aspects.iter().enumerate() {
        let mut classes: BTreeMap<i64, usize> = BTreeMap::new();
        let (mut sum, mut scored) = (0.0, 0);
        for pair in &evaluation.pairs {
            if let Verdict::Scored { distribution, .. } = &pair.verdicts[index] {
                let class = distribution.mode().value;
                *classes.entry(class as i64).or_default() += 1;
                (sum, scored) = (sum + class, scored + 1);
            }
        }
        let mean = if scored > 0 { format!("{:.3}", sum / f64::from(scored)) } else { "none".to_owned() };
        let counts: Vec<String> = classes.iter().map(|(class, count)| format!("{class}: {count}")).collect();
        let unscored = evaluation.pairs.len() - scored as usize;
        rows.push(vec![aspect.clone(), mean, unscored.to_string(), counts.join("  ")]);
    }
    rows
}
