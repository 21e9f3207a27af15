//! What a judge's scores mean on the human scale: a value and an interval for each, fitted on graded rows.
//!
//! `judge calibrate --graded graded_scores.jsonl --input scores.jsonl --output calibrated.jsonl`

mod cli;

use crate::args::files::program;
use crate::report::write_json;
use crate::terminal::console::say;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use judge_core::Reason;
use judge_data::{Fate, Input, InputFile, Opened, Resolved, RunPlan};
use judge_metrics::calibration::CalibrationReport;
use serde_json::{Value, json};

pub(crate) use self::cli::Cli;
use self::cli::number;

pub(crate) fn run(cli: &Cli) -> Result<()> {
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
        write_json(path, "calibrate", &report)?;
    }
    run.finish()?;
    let covered = report.coverage.wilson(0.95)?;
    say(format_args!(
        "fitted on {} graded rows; on rows held out in {} folds:\n  {:.1} % of human scores lie in their interval [{:.1}, {:.1}]; target coverage {:.0} %, guaranteed at least {:.0} %\n  an interval is {:.2} wide on average, a value {:.2} off\n{} of {rows} rows calibrated -> {}",
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
