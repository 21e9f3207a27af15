//! What a judge's scores mean on the human scale: a value and an interval for each, fitted on graded rows.
//!
//! `judge calibrate --graded graded_scores.jsonl --input scores.jsonl --output calibrated.jsonl`

mod cli;
mod plan;

use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow, bail, ensure};
use judge_core::Reason;
use judge_data::{Fate, Input, Opened, Resolved, Run, RunPlan, Unread};
use judge_metrics::calibration::FittedCalibrator;
use judge_metrics::{Error, decimals};
use serde_json::{Value, json};

use judge_cli::args::files::program;
use judge_cli::human_scores::{Graded, graded};
use judge_cli::judge_record::check_same_judge;
use judge_cli::missing_fields::tell_unread_that;
use judge_cli::report::{percent, write_json_if};
use judge_cli::sampling::SAMPLING_PROBABILITY;
use judge_cli::terminal::console::{counted, say, tell};

pub(crate) use self::cli::Cli;
use self::plan::{LEVEL, Plan};

pub(crate) fn run(cli: &Cli) -> Result<()> {
    let settings = cli.settings()?;
    check_same_judge("--graded", &cli.graded, &cli.input)?;
    let Graded { scores, human, clusters, clustered_by, fields } =
        graded(&cli.graded, &cli.score, cli.human.as_deref(), cli.cluster.as_deref(), settings.range)?;
    let n_clusters = clusters.iter().collect::<BTreeSet<_>>().len();
    if let Some(field) = clustered_by.as_ref().filter(|_| n_clusters < 3) {
        bail!("{}: expected 3 clusters or more of {field:?}, found {n_clusters}", cli.graded.display());
    }
    if fields.iter().any(|field| field == SAMPLING_PROBABILITY) {
        tell(format_args!(
            "note: graded rows are not weighted by their {SAMPLING_PROBABILITY:?}: calibration takes rows as drawn alike, \
             so the coverage is that of rows such as were graded, not of all rows"
        ));
    }
    let fault = |error: Error| {
        let advice = match error {
            Error::TooFewItems { found, .. } if found > 2 => "; a lower --level takes fewer",
            _ => "",
        };
        let (path, n) = (cli.graded.display(), scores.len());
        anyhow!("{path}: cannot calibrate on {n} rows with score and human score: {error}{advice}")
    };
    let report = settings.assess_clustered(&scores, &human, &clusters).map_err(fault)?;
    let fitted = settings.fit_clustered(&scores, &human, &clusters).map_err(fault)?;
    let planned = Plan::new(&report, cli.width)?;

    let input = judge_cli::args::files::open(&cli.input)?;
    let (mut total, mut without, mut unread) = (0, 0, Unread::default());
    for row in cli.scores(&input)? {
        let row = row?;
        let clash = "the row has a field \"calibrated\" already, which is not overwritten";
        ensure!(row.row.keys().all(|key| key != "calibrated"), "{}: {clash}", row.place());
        let score = row.predicted_number();
        without += usize::from(!matches!(score, Ok(Some(_))));
        unread.note(row.place(), score.err());
        total += 1;
    }
    if total == without {
        let first = unread.first().map(|(place, why)| format!("; the first that cannot be read is {place}: {why}"));
        let (file, first) = (cli.input.display(), first.unwrap_or_default());
        bail!("{file}: none of {total} rows has a number in {:?}{first}", cli.score);
    }
    tell_unread_that(&unread, "have a score that cannot be read and get none");
    let mut plan = RunPlan::new(&cli.output, total, program("calibrate"));
    plan.inputs = vec![Input::identify(&cli.graded)?, input.identity()?.with_rows(total)];
    plan.seed = Some(cli.seed);
    plan.settings = cli.choices();
    plan.options = cli.write.options();
    let (rows, calibrated, path) = (total, total - without, cli.output.display());
    // The report and the summary are made anew all the same.
    let done = match plan.open()? {
        Opened::Complete(_) => format!("{path} is complete: {calibrated} of {rows} rows calibrated; nothing to do"),
        Opened::Ready(start) => {
            write_rows(cli, &input, &fitted, start.begin(Resolved::default())?)?;
            format!("{calibrated} of {rows} rows calibrated -> {path}")
        }
    };
    let interval = report.covered.interval(LEVEL).ok();
    write_json_if(cli.json.as_deref(), "calibrate", || {
        Ok(json!({
            "program": program("calibrate"), "method": cli.method_name(),
            "level": report.level, "graded": report.n, "folds": report.folds, "seed": cli.seed, "range": cli.range,
            "out_of_fold": {
                "coverage": {
                    "estimate": report.covered.estimate, "low": interval.map(|known| known.low), "high": interval.map(|known| known.high),
                },
                "mean_width": report.width.estimate, "mean_absolute_error": report.error.estimate,
            },
            "proved_coverage": report.guaranteed, "n": rows, "without_score": without, "cluster": clustered_by, "planning": planned.json(),
        }))
    })?;
    let covered = interval
        .map_or_else(String::new, |interval| format!(" [{:.1}, {:.1}]", 100.0 * interval.low, 100.0 * interval.high));
    let guaranteed = match report.guaranteed {
        0.0 => "none guaranteed".to_owned(),
        share => format!("guaranteed at least {:.0} %", 100.0 * share),
    };
    say(format_args!(
        "fitted on {} graded rows; on rows held out in {} folds:\n  {:.1} % of human scores lie in their interval{covered}; target coverage {}, {guaranteed}\n  an interval is {} wide on average, a value {} off\n  {}\n{done}",
        report.n,
        report.folds,
        100.0 * report.covered.estimate,
        percent(report.level),
        decimals(report.width.estimate, 2),
        decimals(report.error.estimate, 2),
        planned.text(),
    ))?;
    if without > 0 {
        say(format_args!("{} without a score that can be read: \"calibrated\" is null", counted(without, "row")))?;
    }
    Ok(())
}

/// Writes each row with its calibrated score.
fn write_rows(cli: &Cli, input: &Input, fitted: &FittedCalibrator, mut run: Run) -> Result<()> {
    for row in cli.scores(input)? {
        let row = row?;
        let calibrated = match row.predicted_number() {
            Ok(None) | Err(_) => Value::Null,
            Ok(Some(score)) => {
                let found = fitted.calibrate(score).with_context(|| row.place().to_string())?;
                let (low, high) = (found.interval.low, found.interval.high);
                json!({"value": found.value, "low": low, "high": high, "level": found.interval.level})
            }
        };
        let fate = if calibrated.is_null() { Fate::unscored(Reason::Missing) } else { Fate::SCORED };
        if !run.is_done(row.number) {
            let number = row.number;
            let mut row = row.row.into_extra(&[]);
            row.set("calibrated", &calibrated)?;
            run.push(number, &row, fate)?;
        }
    }
    run.finish()?;
    Ok(())
}
