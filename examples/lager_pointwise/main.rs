//! Scores a data file with LAGER: one score and the table of layer logits per item.
//!
//! `cargo run --release --example lager_pointwise -- --input graded.jsonl --output scores.jsonl`

mod cli;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use judge_core::{Backbone, LagerJudge, LagerSettings};
use judge_data::{
    DatasetFormat, HumanScores, Input, LagerResult, LagerScores, Numbered, ORIGIN, Opened, Resolved, Rows,
    ScoreOutcome, ScoreRow, judge_rows, score_row, split_label, write_lager_results,
};
use judge_examples::console::{check_scored, say, start, tell};
use judge_examples::pace::Watch;

use cli::Cli;

fn main() -> ExitCode {
    start(run)
}

fn run(cli: &Cli) -> Result<()> {
    cli.check()?;
    let input = cli.input.open()?;
    let format = cli.input.records(&input, cli.format, Some(1))?.format();
    let settings = cli.lager.lager_settings(format, &cli.model)?;
    let rows = check_data(cli, &input, format, &settings)?;

    let plan = cli.output.plan("lager_pointwise", &input, rows, &cli.input, &cli.model, cli.settings(&settings)?)?;
    let start = match plan.open()? {
        Opened::Complete(record) => {
            return say(format_args!(
                "{} is complete: {} of {rows} items scored; nothing to do",
                cli.output.output.display(),
                record.counts.scored
            ));
        }
        Opened::Ready(start) => start,
    };
    let model = cli.model.load()?;
    let judge = LagerJudge::new(settings, &model)?;
    for note in judge.weight_notes() {
        tell(format_args!("note: {note}"));
    }
    let labels: Vec<String> = judge.settings().scale.labels().map(str::to_owned).collect();
    if judge.settings().condition.generation().is_none()
        && let Some(record) = cli.input.records(&input, Some(format), Some(1))?.next().transpose()?
        && let Ok(prompt) = judge.template().fill(&record)
        && let Some((label, found)) = split_label(&model, &prompt, &labels)?
    {
        tell(format_args!(
            "note: after the first prompt the tokenizer would write label {label:?} as {:?}, not as {:?}; --prefill may end the prompt better",
            found.together, found.apart
        ));
    }

    let mut resolved = Resolved { model: Some(model.info().clone()), ..Resolved::default() };
    resolved.template = Some(judge.template().id().to_owned());
    resolved.settings.insert(ORIGIN.to_owned(), serde_json::to_value(judge.origin())?);
    let mut output = start.begin(resolved)?;
    let before = output.resumed().rows;
    if before > 0 && !cli.model.quiet {
        tell(format_args!("resuming: {before} of {rows} rows are done"));
    }
    let mut watch = Watch::new("judging", before, rows, cli.model.quiet)?;
    let records = cli.input.records(&input, Some(format), cli.model.limit)?;
    let summary = judge_rows(
        &mut output,
        &model,
        vec![&judge],
        records,
        |result| score_row(&judge, result, &cli.carry),
        |result| watch.see(result),
    )?;
    watch.finish(summary.cancelled, "rows")?;
    if let Some(mass) = summary.judges[0].mean_label_mass().filter(|mass| *mass < 0.5) {
        tell(format_args!(
            "note: on average {:.1} % of the model's probability lies on the labels; the prompt may not lead it to a label (see --prefill and --template)",
            100.0 * mass
        ));
    }
    let counts = output.finish()?.counts;
    if let Some(path) = &cli.lager_json {
        write_lager(cli, path, format)?;
    }
    say(format_args!(
        "{} of {rows} items scored ({}), {} with a human score -> {}",
        counts.scored,
        judge.variant(),
        counts.graded,
        cli.output.output.display()
    ))?;
    for (reason, count) in &counts.unscored {
        say(format_args!("unscored, {reason}: {count}"))?;
    }
    check_scored(counts.scored, counts.unscored)
}

/// Reads the whole input and fills every prompt once, so that whatever is wrong is said before any model work. Returns the number of rows.
fn check_data(cli: &Cli, input: &Input, format: DatasetFormat, settings: &LagerSettings) -> Result<usize> {
    let template = settings.template.clone().with_prefill(&settings.opening);
    let (mut rows, mut missing, mut first_missing, mut people) = (0, 0, None, HumanScores::default());
    let (range, mut off_scale, mut first_off) = (settings.scale.range(), 0, None);
    for record in cli.input.records(input, Some(format), cli.model.limit)? {
        let record = record?;
        if cli.lager_json.is_some() && record.human().is_none() {
            bail!("--lager-json: item {} of {} has no human score", record.id(), input.path().display());
        }
        people.see(&record);
        if let Some(grade) = record.human().filter(|grade| !(range.0..=range.1).contains(grade)) {
            off_scale += 1;
            first_off.get_or_insert((record.id().clone(), grade));
        }
        cli.carry.of(record.extra().clone()).with_context(|| format!("{}", input.path().display()))?;
        let item = Numbered { row: rows, record };
        if let Err(error) = template.fill(&item) {
            missing += 1;
            first_missing.get_or_insert((item.record.id().clone(), error));
        }
        rows += 1;
    }
    if let Some((id, error)) = first_missing {
        let file = input.path().display();
        if missing == rows {
            bail!("{file}, item {id}: {error}\n{}", cli.lager.template_hint(format));
        }
        tell(format_args!(
            "note: {missing} of {rows} rows lack a field of the template and get no score; the first is {id}: {error}"
        ));
    }
    if !cli.model.quiet {
        tell(format_args!(
            "{}: {rows} items of the format `{format}`, {} with a human score",
            input.path().display(),
            people.graded()
        ));
    }
    if let Some((id, grade)) = first_off {
        let (low, high) = range;
        tell(format_args!(
            "note: {off_scale} human scores are off the scale {low} to {high}, the first is {grade} of item {id}; layer weights cannot be fitted on them"
        ));
    }
    if let Some(note) = people.note() {
        tell(format_args!("note: {note}"));
    }
    Ok(rows)
}

/// The finished output as the reference program's result file.
fn write_lager(cli: &Cli, path: &std::path::Path, format: DatasetFormat) -> Result<()> {
    let reasoning = cli.lager.is_reasoning();
    let records = cli.input.records(&cli.input.open()?, Some(format), cli.model.limit)?;
    let results = Rows::open(&cli.output.output)?.zip(records).enumerate().map(|(row, (scored, record))| {
        let (scored, record) = (ScoreRow::from_row(scored?)?, record?);
        let scores = match &scored.outcome {
            ScoreOutcome::Read(read, _) => Some(LagerScores::from_table(&read.table)?),
            ScoreOutcome::Unscored(_) => None,
        };
        let prompt = if reasoning { "user_prompt_feedback" } else { "user_prompt" };
        let text = ["prompt", prompt, "response", "dialogue"]
            .iter()
            .find_map(|name| judge_core::Fields::field(&record, name).map(|text| text.into_owned()));
        let human_score = scored.human_mean().unwrap_or_default(); // `check_data` has seen that there is one
        Ok(LagerResult { idx: row as u64, prompt: text.unwrap_or_default(), human_score, scores })
    });
    write_lager_results(path, results).with_context(|| format!("cannot write {}", path.display()))
}
