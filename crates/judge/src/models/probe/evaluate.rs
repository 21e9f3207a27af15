//! Question and answer pairs judged by probes: a class per aspect, and their total.
//!
//! `judge probe evaluate --input pairs.jsonl --probes probes --output judged.jsonl`

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use judge_cli::args::files::tell_json_lines;
use judge_cli::terminal::console::{counted_that, end_of_rows, say, say_table};
use judge_data::{InputFile, Layout, Outputs, Rows, Settings};
use serde_json::json;

use crate::inspector::{Clash, Evaluation, Kept, ProbeArgs, Ranking, evaluate, judged_path, share_kept};

/// The program's name, for records.
const PROGRAM: &str = "inspector_evaluate";

/// Judge answers by probes (INSPECTOR).
///
/// Input: objects with a question (or instruction) and a response, graded by nobody.
/// Each comes back with all its fields, the class that each aspect's probe predicts (the number of a probe that knows no classes),
/// `total_score`, their sum, and the probabilities behind them by class. What could not be read has null and the reason.
/// `judge probe filter` keeps the best of the rows as they are.
#[derive(Args)]
pub(crate) struct Cli {
    /// Where the judged pairs go: a JSON array if it ends in .json, else JSON lines. Interrupted, the same command resumes
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Keep only this share of the pairs, the best by total, best first; all of them stay in OUTPUT.judged.jsonl
    #[arg(long, alias = "top-percent", value_name = "SHARE", value_parser = share_kept)]
    top_share: Option<f64>,
    #[command(flatten)]
    pub(crate) probes: ProbeArgs,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    let array = cli.output.extension().is_some_and(|extension| extension == "json");
    let of_output = if array { Layout::Array } else { Layout::Lines };
    let share = cli.top_share;
    let (judged, layout) = match share {
        Some(_) => (judged_path(&cli.output), Layout::Lines),
        None => (cli.output.clone(), of_output),
    };
    let outputs = Outputs::new([&cli.probes.input.input].into_iter().chain(&cli.probes.probes)).rows([&cli.output]);
    let outputs = if share.is_some() { outputs.rows([&judged]) } else { outputs };
    outputs.overwrite(cli.probes.write.overwrite).check()?;
    if !array {
        tell_json_lines(&cli.output);
    }
    let settings = Settings::from([("top_share".to_owned(), json!(share))]);
    let (output, write) = (cli.output.as_path(), cli.probes.write);
    let kept = Kept { program: PROGRAM, output, layout: of_output, settings, write };
    if share.is_some() {
        kept.check()?;
    }
    let evaluation = evaluate(&cli.probes, &cli.probes.input.open()?, PROGRAM, &judged, layout, Clash::Refused)?;
    if let Some(part) = &cli.probes.input.part {
        // The best are chosen from all rows.
        return say(format_args!("rows {part} judged -> {}", judged.display()));
    }
    if evaluation.was_complete {
        say(format_args!("{} is complete", judged.display()))?;
    }
    say_table(["aspect", "mean", "unscored", "classes"], summary(&judged, &evaluation)?)?;
    let (scored, rows) = (evaluation.counts.scored, evaluation.rows);
    say(format_args!("{scored} of {rows} pairs judged -> {}", judged.display()))?;
    if let Some(share) = share {
        let (places, tied) = Ranking::read(&judged)?.best(share);
        let n = places.len();
        if !kept.write(&judged, &places, vec![InputFile::of(&judged)?])? {
            say(format_args!("{} is complete", cli.output.display()))?;
        }
        let output = cli.output.display();
        let further = counted_that(tied, "further row", ["has", "have"]);
        say(format_args!("{n} kept -> {output}; {further} the same total as the last one"))?;
    }
    end_of_rows(&evaluation.counts)
}

/// The mean of each aspect, and how often each class was given.
fn summary(judged: &Path, evaluation: &Evaluation) -> Result<Vec<Vec<String>>> {
    let mut given: Vec<Given> = vec![Given::default(); evaluation.aspects.len()];
    for row in Rows::open(judged)? {
        let row = row?;
        for (aspect, given) in evaluation.aspects.iter().zip(&mut given) {
            if let Some(value) = row.value(aspect).and_then(|value| value.parse().ok()) {
                given.add(value);
            }
        }
    }
    let row = |(aspect, given): (&String, Given)| {
        let mean = if given.n > 0 { format!("{:.3}", given.sum / given.n as f64) } else { "none".to_owned() };
        let counts: Vec<String> = given.classes.iter().map(|(class, count)| format!("{class}: {count}")).collect();
        vec![aspect.clone(), mean, (evaluation.rows - given.n).to_string(), counts.join("  ")]
    };
    Ok(evaluation.aspects.iter().zip(given).map(row).collect())
}

/// What was given for an aspect.
#[derive(Clone, Default)]
struct Given {
    n: usize,
    sum: f64,
    /// How often each class was given; empty where a value is none, as a regression's.
    classes: BTreeMap<i64, usize>,
    has_fractions: bool,
}

impl Given {
    fn add(&mut self, value: f64) {
        self.n += 1;
        self.sum += value;
        self.has_fractions |= value.fract() != 0.0;
        if self.has_fractions {
            self.classes.clear();
        } else {
            *self.classes.entry(value as i64).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use judge_data::Counts;

    use super::*;

    #[test]
    fn numbers_that_are_no_classes_are_counted_too() {
        let folder = tempfile::tempdir().unwrap();
        let judged = folder.path().join("judged.jsonl");
        std::fs::write(&judged, "{\"a\":2,\"b\":2}\n{\"a\":4,\"b\":3.5}\n{\"a\":null,\"b\":4}\n").unwrap();
        let aspects = ["a", "b"].map(str::to_owned).to_vec();
        let evaluation = Evaluation { aspects, rows: 3, counts: Counts::default(), was_complete: false };
        let found = summary(&judged, &evaluation).unwrap();
        assert_eq!(found, [["a", "3.000", "1", "2: 1  4: 1"], ["b", "3.167", "0", ""]]);
    }
}
