//! Scores a data file with LAGER: one score and the table of layer logits per item.
//!
//! `judge score --input graded.jsonl --output scores.jsonl`

mod cli;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use judge_core::Fields;
use judge_data::{Finished, LagerResult, LagerScores, Records, ScoreOutcome, ScoreRow, write_lager_results};

use judge_cli::lager_file::LagerFile;

pub(crate) use self::cli::Cli;

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.check()?;
    let file = LagerFile {
        program: "lager_pointwise",
        rows: "items",
        input: &cli.input,
        format: cli.format,
        output: &cli.output,
        carry: &cli.carry,
        layers: &cli.layers,
        lager: &cli.lager,
        model: &cli.model,
        check: &|record| {
            ensure!(cli.lager_json.is_none() || record.human().is_some(), "--lager-json: it has no human score");
            Ok(())
        },
        template: None,
        probe: None,
    };
    file.score(
        |_, _, _| Ok(()),
        |finished| cli.lager_json.as_ref().map_or(Ok(()), |path| write_lager(cli, path, finished)),
    )
}

/// The finished output as the reference program's result file.
fn write_lager(cli: &Cli, path: &Path, finished: &Finished<'_, Records>) -> Result<()> {
    let prompt = if cli.lager.is_reasoning() { "user_prompt_feedback" } else { "user_prompt" };
    let results = finished.rows()?.map(|row| {
        let (item, row) = row?;
        let scored = ScoreRow::from_row(row)?;
        let scores = match &scored.outcome {
            ScoreOutcome::Read(read, _) => Some(LagerScores::from_table(&read.table)?),
            ScoreOutcome::Unscored(_) => None,
        };
        let text = ["prompt", prompt, "response", "dialogue"].iter().find_map(|name| item.field(name));
        let prompt = text.unwrap_or_default().into_owned();
        let human_score = scored.human_mean().unwrap_or_default(); // the check has seen that there is one
        Ok(LagerResult { idx: item.row as u64, prompt, human_score, scores })
    });
    let written = write_lager_results(path, results, cli.output.write.overwrite);
    written.with_context(|| format!("cannot write {}", path.display()))
}
