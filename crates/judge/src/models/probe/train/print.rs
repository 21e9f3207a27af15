//! A report for people.

use anyhow::Result;
use judge_metrics::Proportion;
use judge_metrics::comparison::Reported;
use judge_probe::Scoring;
use judge_probe::artefacts::{ArtefactReport, Duplicates, Neighbour, Shift};
use judge_probe::training::{Evaluation, ProbeCalibration, TrainingReport};

use judge_cli::report::percent;
use judge_cli::terminal::console::{counted_that, say, say_table};

/// Rows that would look slipped by chance as rarely as this are shown.
const SLIPPED: f64 = 0.01;

/// What baselines are called where C was chosen in the probe's folds. Those of the artefact report have C = 1, so that
/// they are the same whatever the probe's settings; their figures therefore differ.
const TUNED: &[(&str, &str)] =
    &[("surface", "surface features (tuned)"), ("tfidf", "TF-IDF (tuned)"), ("tuned", "the model with an adapter")];
const FIXED: &[(&str, &str)] = &[("surface", "surface features (C = 1)"), ("tfidf", "TF-IDF (C = 1)")];

pub fn print(aspect: &str, report: &TrainingReport) -> Result<()> {
    let chosen: Vec<String> = report.chosen.iter().map(|view| format!("{} {}", view.layer, view.pooling)).collect();
    say(format_args!(
        "\n{aspect}: {} rows, {} unscored; trained on {} rows; {} ({} of {} folds {:.3} +- {:.3})",
        report.n,
        report.unscored,
        report.n_train,
        chosen.join(" + "),
        scored_by(report),
        report.folds,
        report.cv_mean,
        report.cv_deviation
    ))?;
    if report.rounded > 0 {
        say(format_args!(
            "note: {} rounded (2.5 to 3) to be classes; Spearman is with the grades as they are",
            counted_that(report.rounded, "grade", ["is no whole number and was", "are no whole numbers and were"])
        ))?;
    }
    if !report.untested.is_empty() {
        let classes: Vec<String> = report.untested.iter().map(i64::to_string).collect();
        say(format_args!(
            "note: no row tested on has the class {}, so no figure says how well it is told; a row that alone has its class is trained on",
            classes.join(" or ")
        ))?;
    }
    if report.splits.values().any(|evaluation| !evaluation.predictors.contains_key("tfidf")) {
        say(
            "note: no TF-IDF to compare with: in the training rows, or a fold of them, no answer has a word of two characters or more",
        )?;
    }
    for (split, evaluation) in &report.splits {
        evaluated(split, evaluation)?;
        let findings = evaluation.findings(|name| called(name, TUNED));
        findings.iter().try_for_each(|finding| say(format_args!("{split}: {finding}")))?;
    }
    if let Some(calibration) = &report.calibration {
        say(calibrated(calibration)?.trim_end())?;
    }
    for (split, found) in &report.artefacts {
        artefacts(split, found)?;
    }
    slips(&report.shifts)
}

/// What layers were chosen by, in words.
pub fn scored_by(report: &TrainingReport) -> &'static str {
    match report.scoring {
        Scoring::NegBrierScore => "negated Brier score",
        _ => "macro F1",
    }
}

fn evaluated(split: &str, evaluation: &Evaluation) -> Result<()> {
    let title = format!("{split}, {} rows", evaluation.n);
    let rows = evaluation.predictors.iter().map(|(name, agreement)| {
        let cells = [&agreement.weighted_f1, &agreement.macro_f1, &agreement.accuracy, &agreement.spearman];
        [called(name, TUNED)].into_iter().chain(cells.map(|cell| format!("{cell:#}"))).collect()
    });
    say_table([&title, "weighted F1", "macro F1", "accuracy", "Spearman"], rows)?;
    let known = evaluation.predictors.iter().filter_map(|(name, known)| Some((name, known.of_probability.as_ref()?)));
    let cells = known.map(|(name, known)| {
        let cells = [&known.brier_score, &known.auroc, &known.area_under_risk_coverage].map(|cell| format!("{cell:#}"));
        [called(name, TUNED)].into_iter().chain(cells).collect::<Vec<_>>()
    });
    let cells: Vec<Vec<String>> = cells.collect();
    if !cells.is_empty() {
        // Of grades the area under the risk-coverage curve is no error rate of the probe, so it is called what it is.
        let head = ["probability of the upper class", "Brier score", "AUROC", "lower class among the surest"];
        say_table(head, cells)?;
    }
    for (name, gain) in &evaluation.gain_over {
        let name = called(name, TUNED);
        say(format_args!("probe minus {name}: weighted F1 {:#}, Spearman {:#}", gain.weighted_f1, gain.spearman))?;
    }
    Ok(())
}

/// Whether people's grades lie where the calibrator says.
fn calibrated(calibration: &ProbeCalibration) -> Result<String> {
    let (out_of_fold, held_out) = match calibration {
        ProbeCalibration::Undefined { undefined } => return Ok(format!("no calibrator is kept: {undefined}")),
        ProbeCalibration::Kept { out_of_fold, held_out } => (out_of_fold, held_out),
    };
    let line = |rows: &str, coverage: Proportion, width: f64, error: f64| {
        let (share, aim) = (100.0 * coverage.estimate()?, percent(out_of_fold.level));
        anyhow::Ok(format!(
            "calibrated, {rows}: {share:.1} % of grades in their intervals (aim {aim}), mean width {width:.2}, mean error {error:.2}\n"
        ))
    };
    let mut text = line("out of fold", out_of_fold.coverage, out_of_fold.width.estimate, out_of_fold.error.estimate)?;
    for (split, found) in held_out {
        text += &line(split, found.coverage, found.width, found.error)?;
    }
    Ok(text)
}

fn artefacts(split: &str, report: &ArtefactReport) -> Result<()> {
    let title = format!("artefacts of {split}");
    let mut rows = vec![vec!["majority".to_owned(), cell(&report.majority)]];
    for baseline in &report.baselines {
        let mut row = [called(&baseline.name, FIXED), cell(&baseline.score), cell(&baseline.gain)].to_vec();
        row.extend(baseline.explains.then(|| "explains the label in part".to_owned()));
        rows.push(row);
    }
    say_table([&title, "weighted F1", "above majority"], rows)?;
    if report.majority.interval.is_none() {
        say(format_args!("({})", report.majority.method))?;
    }
    say("(tuned: C chosen in the probe's folds; C = 1: the same whatever the probe's settings)")?;
    for (what, duplicates) in [("question", &report.questions), ("response", &report.responses)] {
        let Duplicates { n_tested, found, n_same_label } = duplicates;
        if !found.is_empty() {
            say(format_args!(
                "{} of {n_tested} rows have a {what} that also occurs in the training rows, {n_same_label} with the same label",
                found.len()
            ))?;
        }
    }
    let Duplicates { n_tested, found, n_same_label } = &report.related;
    if found.len() > report.questions.found.len() {
        say(format_args!(
            "{} of {n_tested} rows have an equal or nearly equal question or prompt in the training rows, {n_same_label} with the same label: \
             they may be known by heart",
            found.len()
        ))?;
    }
    for source in &report.source_counts {
        let labels: Vec<String> = source.labels.iter().map(|(label, n)| format!("{label}: {n}")).collect();
        say(format_args!("rows of each label from {}: {}", source.source, labels.join(", ")))?;
    }
    Ok(())
}

/// Nothing if nothing looks slipped.
fn slips(shifts: &[Shift]) -> Result<()> {
    for shift in shifts.iter().filter(|shift| shift.p_value <= SLIPPED) {
        let neighbour = match shift.neighbour {
            Neighbour::Before => "before",
            Neighbour::After => "after",
        };
        say(format_args!(
            "{} responses are closer to the question {neighbour} their own (p = {:.3}): check whether rows have slipped",
            shift.closer.len(),
            shift.p_value
        ))?;
    }
    Ok(())
}

fn cell(score: &Reported) -> String {
    match score.interval {
        Some(interval) => format!("{:.3} [{:.3}, {:.3}]", score.estimate, interval.low, interval.high),
        None => format!("{:.3}", score.estimate),
    }
}

/// A baseline's name for people.
fn called(name: &str, names: &[(&str, &str)]) -> String {
    names.iter().find(|(known, _)| *known == name).map_or(name, |(_, called)| called).to_owned()
}
