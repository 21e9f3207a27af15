//! Question and answer pairs judged by probes: a class per aspect, and their total.
//!
//! `judge probe evaluate --input pairs.jsonl --probes probes --output judged.jsonl`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use judge_cli::terminal::console::{end_of_rows, say, say_table, usage};
use judge_data::{InputFile, Layout, Outputs, Rows, Settings};
use serde_json::json;

use crate::inspector::{Evaluation, Kept, ProbeArgs, Ranking, evaluate, judged_path};

/// The program's name, for records.
const PROGRAM: &str = "inspector_evaluate";

/// Judge answers by probes (INSPECTOR).
///
/// Input: objects with a question (or instruction) and a response, graded by nobody.
/// Each comes back with all its fields, the class that each aspect's probe predicts,
/// `total_score`, their sum, and the probabilities behind them by class. What could not be read has null and the reason.
/// `judge probe filter` keeps the best of the rows as they are.
#[derive(Args)]
pub(crate) struct Cli {
    /// Where the judged pairs go: a JSON array if it ends in .json, else JSON lines. Interrupted, the same command resumes
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Keep only this share of the pairs, the best by total, best first; all of them stay in OUTPUT.judged.jsonl
    #[arg(long, alias = "top-percent", value_name = "SHARE")]
    top_share: Option<f64>,
    #[command(flatten)]
    pub(crate) probes: ProbeArgs,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    let array = cli.output.extension().is_some_and(|extension| extension == "json");
    let of_output = if array { Layout::Array } else { Layout::Lines };
    let share = cli.top_share.filter(|&share| share != 1.0);
    if let Some(share) = share.filter(|share| !(0.0..=1.0).contains(share)) {
        return Err(usage(format!(
            "--top-share {share} is not between 0 and 1; a fifth of the pairs is --top-share 0.2"
        )));
    }
    let (judged, layout) = match share {
        Some(_) => (judged_path(&cli.output), Layout::Lines),
        None => (cli.output.clone(), of_output),
    };
    let outputs = Outputs::new([&cli.probes.input.input].into_iter().chain(&cli.probes.probes)).rows([&cli.output]);
    let outputs = if share.is_some() { outputs.rows([&judged]) } else { outputs };
    outputs.overwrite(cli.probes.write.overwrite).check()?;
    let settings = Settings::from([("top_share".to_owned(), json!(share))]);
    let (output, write) = (cli.output.as_path(), cli.probes.write);
    let kept = Kept { program: PROGRAM, output, layout: of_output, settings, write };
    if share.is_some() {
        kept.check()?;
    }
    let evaluation = evaluate(&cli.probes, PROGRAM, &judged, layout)?;
    if let Some(part) = &cli.probes.input.part {
        // The best are chosen from all rows.
        return say(format_args!("rows {part} judged -> {}", judged.display()));
    }
    if evaluation.was_complete {
        say(format_args!("{} is complete", judged.display()))?;
    }
    say_table(&summary(&judged, &evaluation)?)?;
    let (scored, rows) = (evaluation.counts.scored, evaluation.rows);
    say(format_args!("{scored} of {rows} pairs judged -> {}", judged.display()))?;
    if let Some(share) = share {
        let (places, tied) = Ranking::read(&judged)?.best(share);
        let n = places.len();
        if !kept.write(&judged, &places, vec![InputFile::of(&judged)?])? {
            say(format_args!("{} is complete", cli.output.display()))?;
        }
        let output = cli.output.display();
        say(format_args!("{n} kept -> {output}; {tied} further rows have the same total as the last one"))?;
    }
    end_of_rows(&evaluation.counts)
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
