//! Scores a data file with LAGER: one score and the table of layer logits per item.
//!
//! `judge score --input graded.jsonl --output scores.jsonl`

mod cli;

use anyhow::{Context, Result, ensure};
use judge_data::{DatasetFormat, LagerResult, LagerScores, Rows, ScoreOutcome, ScoreRow, write_lager_results};

use crate::lager_file::{LagerFile, ScoredFile};
use crate::terminal::console::{end_of_rows, say};

pub(crate) use self::cli::Cli;

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.check()?;
    let file = LagerFile {
        program: "lager_pointwise",
        input: &cli.input,
        format: cli.format,
        output: &cli.output,
        carry: &cli.carry,
        lager: &cli.lager,
        model: &cli.model,
        check: &|record| {
            ensure!(cli.lager_json.is_none() || record.human().is_some(), "--lager-json: it has no human score");
            Ok(())
        },
        template: None,
        probe: None,
    };
    let ScoredFile { format, rows, counts, variant } = file.score(|_, _, _| Ok(()))?;
    let output = cli.output.output.display();
    if let Some(path) = &cli.lager_json {
        write_lager(cli, path, format)?;
    }
    match variant {
        None => say(format_args!("{output} is complete: {} of {rows} items scored; nothing to do", counts.scored))?,
        Some(variant) => say(format_args!(
            "{} of {rows} items scored ({variant}), {} with a human score -> {output}",
            counts.scored, counts.graded
        ))?,
    }
    end_of_rows(&counts)
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
    let written = write_lager_results(path, results, cli.output.write.overwrite);
    written.with_context(|| format!("cannot write {}", path.display()))
}
