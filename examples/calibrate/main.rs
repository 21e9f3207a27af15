//! What a judge's scores mean on the human scale: a value and an interval for each, fitted on graded rows.
//!
//! `cargo run --release --example calibrate -- --graded graded_scores.jsonl --input scores.jsonl --output calibrated.jsonl`

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, ValueEnum};
use judge_core::Reason;
use judge_data::{
    Extra, Fate, Input, InputFile, Opened, Resolved, Rows, RunPlan, Settings, check_outputs, write_atomic,
};
use judge_examples::console::{say, start, usage};
use judge_examples::files::{WriteArgs, program};
use judge_metrics::calibration::{CalibrationMethod, CalibrationReport, Calibrator};
use serde_json::{Value, json};

/// Say what scores mean on the human scale.
///
/// --graded has rows with a score and a human score, a number or a list of raters (`human` or `scores`); a calibrator is fitted on them. Each
/// row of --input, which may be the same file, is written with all its fields and "calibrated": {"value", "low", "high", "level"}: the human
/// score to expect, and between which two it should lie. Rows without a score get null.
#[derive(Parser)]
#[command(name = "calibrate")]
struct Cli {
    /// JSON lines of scores with human scores, to fit on
    #[arg(long, value_name = "FILE")]
    graded: PathBuf,
    /// JSON lines of scores to calibrate
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// Where the rows go
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Where the report goes
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// isotonic: human scores are numbers; ordinal: they are a few grades
    #[arg(long, value_enum, default_value_t = Method::Isotonic)]
    method: Method,
    /// Share of human scores that intervals should hold
    #[arg(long, default_value_t = 0.9, value_name = "SHARE")]
    level: f64,
    /// Lowest and highest human score: intervals end there [default: not known]
    #[arg(long, value_delimiter = ',', num_args = 1, value_name = "LOW,HIGH", allow_hyphen_values = true)]
    range: Option<Vec<f64>>,
    /// Field of the score
    #[arg(long, default_value = "score", value_name = "FIELD")]
    score: String,
    /// Field of the human score [default: human or scores]
    #[arg(long, value_name = "FIELD")]
    human: Option<String>,
    /// Folds of the graded rows
    #[arg(long, default_value_t = 10, value_name = "N")]
    folds: usize,
    /// Chooses the folds
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    write: WriteArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Method {
    Isotonic,
    Ordinal,
}

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    let settings = cli.settings()?;
    let (scores, human) = cli.graded()?;
    let fault =
        || format!("{}: cannot calibrate on {} rows with score and human score", cli.graded.display(), scores.len());
    let report = settings.assess(&scores, &human).with_context(fault)?;
    let fitted = settings.fit(&scores, &human).with_context(fault)?;

    let input = Input::open(&cli.input)?;
    let (mut total, mut without) = (0, 0);
    for row in input.rows()? {
        let row = row?;
        let place = row.place().to_string();
        let row = row.into_extra(&[]);
        let clash = "the row has a field \"calibrated\" already, which is not overwritten";
        ensure!(row.text("calibrated").is_none(), "{place}: {clash}");
        without += usize::from(number(&row, &cli.score).with_context(|| place)?.is_none());
        total += 1;
    }
    ensure!(total > without, "{}: none of {total} rows has a number in {:?}", cli.input.display(), cli.score);
    let mut plan = RunPlan::new(&cli.output, total, program("calibrate"));
    plan.inputs = vec![InputFile::of(&cli.graded)?, input.identity()?.with_rows(total)];
    plan.seed = Some(cli.seed);
    plan.settings = cli.choices();
    plan.options = cli.write.options();
    let mut run = match plan.open()? {
        Opened::Complete(_) => return say(format_args!("{} is complete; nothing to do", cli.output.display())),
        Opened::Ready(start) => start.begin(Resolved::default())?,
    };
    for (number_of_row, row) in input.rows()?.enumerate() {
        let row = row?;
        let place = row.place().to_string();
        let mut row = row.into_extra(&[]);
        let calibrated = match number(&row, &cli.score)? {
            None => Value::Null,
            Some(score) => {
                let found = fitted.calibrate(score).with_context(|| place)?;
                let (low, high) = (found.interval.low, found.interval.high);
                json!({"value": found.value, "low": low, "high": high, "level": found.interval.level})
            }
        };
        let fate = if calibrated.is_null() { Fate::unscored(Reason::Missing) } else { Fate::SCORED };
        row.set("calibrated", &calibrated)?;
        if !run.is_done(number_of_row) {
            run.push(number_of_row, &row, fate)?;
        }
    }
    let rows = total;
    if let Some(path) = &cli.json {
        let report = as_json(&report, cli, rows, without)?;
        write_atomic(path, &serde_json::to_vec_pretty(&report)?)?;
    }
    run.finish()?;
    let covered = report.coverage.wilson(0.95)?;
    say(format_args!(
        "fitted on {} graded rows; on rows that were left out in {} folds:\n  {:.1} % of human scores lie in their interval [{:.1}, {:.1}], {:.0} % were aimed at, {:.0} % are proved\n  an interval is {:.2} wide on average, a value {:.2} off\n{} of {rows} rows calibrated -> {}",
        report.n,
        report.folds,
        100.0 * report.coverage.estimate()?,
        100.0 * covered.low,
        100.0 * covered.high,
        100.0 * report.level,
        100.0 * report.guaranteed,
        report.width.estimate,
        report.error.estimate,
        rows - without,
        cli.output.display(),
    ))?;
    if without > 0 {
        say(format_args!("{without} rows without a score: \"calibrated\" is null"))?;
    }
    Ok(())
}

impl Cli {
    /// What decides about a row, for the record of the run.
    fn choices(&self) -> Settings {
        let entries = [
            ("method", json!(format!("{:?}", self.method).to_lowercase())),
            ("level", json!(self.level)),
            ("range", json!(self.range)),
            ("score", json!(self.score)),
            ("human", json!(self.human)),
            ("folds", json!(self.folds)),
        ];
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    fn settings(&self) -> Result<Calibrator> {
        check_outputs([&self.graded, &self.input], [Some(&self.output), self.json.as_ref()].into_iter().flatten())?;
        let range = match self.range.as_deref() {
            None => None,
            Some(&[low, high]) if low < high => Some([low, high]),
            Some(_) => return Err(usage("--range needs two numbers, the lower one first: --range 1,5")),
        };
        if !(self.level > 0.0 && self.level < 1.0) || self.folds < 2 {
            return Err(usage("--level must lie between 0 and 1, and --folds be at least 2"));
        }
        let method = match self.method {
            Method::Isotonic => CalibrationMethod::Isotonic,
            Method::Ordinal => CalibrationMethod::Ordinal,
        };
        Ok(Calibrator { method, level: self.level, folds: self.folds, seed: self.seed, range, ..Calibrator::default() })
    }

    /// Scores and human scores of the rows that have both.
    fn graded(&self) -> Result<(Vec<f64>, Vec<f64>)> {
        let names = match &self.human {
            Some(name) => vec![name.as_str()],
            None => ["human", "scores", "score"].into_iter().filter(|name| *name != self.score).collect(),
        };
        let (mut pairs, mut scored) = (Vec::new(), 0);
        for row in Rows::open(&self.graded)? {
            let row = row?;
            let place = row.place().to_string();
            let row = row.into_extra(&[]);
            let Some(score) = number(&row, &self.score).with_context(|| place.clone())? else { continue };
            scored += 1;
            let human =
                names.iter().find_map(|name| number(&row, name).transpose()).transpose().with_context(|| place)?;
            pairs.extend(human.map(|human| (score, human)));
        }
        ensure!(
            !pairs.is_empty(),
            "{}: of {scored} rows with a number in {:?}, none has a human score in {}; name its field with --human",
            self.graded.display(),
            self.score,
            names.join(" or ")
        );
        Ok(pairs.into_iter().unzip())
    }
}

/// A number, or the mean of a list of numbers; `None` for a row without.
fn number(row: &Extra, field: &str) -> Result<Option<f64>> {
    let Some(text) = row.text(field) else { return Ok(None) };
    let values = match serde_json::from_str::<Value>(text)? {
        Value::Array(values) => values,
        value => vec![value],
    };
    let numbers = values.iter().filter(|value| !value.is_null()).map(|value| match value.as_f64() {
        Some(number) => Ok(number),
        None => bail!("{field} is {text}, expected a number or a list of numbers"),
    });
    let numbers = numbers.collect::<Result<Vec<_>>>()?;
    Ok((!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64))
}

fn as_json(report: &CalibrationReport, cli: &Cli, rows: usize, without: usize) -> Result<Value> {
    let covered = report.coverage.wilson(0.95)?;
    Ok(json!({
        "program": program("calibrate"), "method": cli.method.to_possible_value().map(|value| value.get_name().to_owned()),
        "level": report.level, "graded": report.n, "folds": report.folds, "seed": cli.seed, "range": cli.range,
        "out_of_fold": {
            "coverage": {"estimate": report.coverage.estimate()?, "low": covered.low, "high": covered.high},
            "mean_width": report.width.estimate, "mean_absolute_error": report.error.estimate,
        },
        "proved_coverage": report.guaranteed, "n": rows, "without_score": without,
    }))
}
