//! Documents in the order of their relevance to a query.
//!
//! `judge rerank --model FOLDER --input queries.jsonl --output ranked.jsonl`

mod cli;
mod figures;

use anyhow::Result;
use judge_cli::args::bars;
use judge_cli::args::decisions::refuse_dressing;
use judge_cli::args::rerank::readout;
use judge_cli::missing_fields::tell_unread_that;
use judge_cli::rankings;
use judge_cli::report::write_json_if;
use judge_cli::row_job::{Pending, RowJob, Words, refuse_unusable, resolved};
use judge_cli::terminal::console::{end_of_rows, tell_label_mass, usage};
use judge_core::ItemResult;
use judge_core::decision::{DecisionOrigin, DecisionWeights};
use judge_core::rerank::{RankedDocument, RerankJudge, RerankReadout, RerankSettings, ranked};
use judge_data::{
    Carry, Fate, Outputs, RerankRecord, RerankRecords, RerankRow, Reranked, RunResult, Settings, Unread, WrittenResult,
};
use judge_models::{Model, RerankForm};
use serde_json::json;

use self::cli::PROGRAM;

pub(crate) use self::cli::Cli;

const WORDS: Words = Words { doing: "reranking", rows: "queries", done: "reranked" };

/// What little probability on the labels means, and what to do.
const NO_ANSWER: &str = "; what the model considers so little says little: the prompt may not lead it to one of them (see --rerank-template)";

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.bars.gate(PROGRAM, || reranked(cli))
}

fn reranked(cli: &Cli) -> Result<bars::Measured> {
    refuse_dressing(&cli.model)?;
    let inputs = [&cli.input.input].into_iter().chain(cli.rerank.inputs()).chain(&cli.weights);
    let outputs =
        Outputs::new(inputs).rows([&cli.output.output]).reports(PROGRAM, cli.json.iter().chain(cli.bars.reports()));
    let outputs = outputs.documents::<DecisionWeights>(&cli.fitting.fit);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    cli.bars.check_names(&rankings::NAMES)?;
    let columns = cli.input.columns.clone().unwrap_or_default();
    let source = RerankRecords { input: cli.input.open()?, columns, max_rows: cli.model.limit };
    let job = RowJob::new(PROGRAM, WORDS, source, &cli.output, &cli.carry, cli.model.quiet);
    let (mut odd, mut no_relevance, mut judged) =
        (Unread::default(), Unread::default(), figures::JudgedPairs::default());
    let checked = job.job.check(RerankRow::KNOWN, |record| {
        judged.extend(figures::judged_pair(record));
        no_relevance.note(&record.id, record.no_relevance.clone());
        let unread = record.item.documents.iter().find_map(|document| document.as_ref().err());
        odd.note(&record.id, unread.map(|unread| unread.detail.clone()));
        anyhow::Ok(None)
    })?;
    let hint = "if they are in other columns: --columns query=…,documents=…";
    refuse_unusable(&job.job.source, &checked, "can be reranked", Some(hint.to_owned()))?;
    tell_unread_that(&checked.unread, "cannot be reranked and are written as unscored");
    tell_unread_that(&odd, "have a document that cannot be read");
    tell_unread_that(&no_relevance, "have relevance that cannot be read and is left out");
    cli.model.admit(&job.job.source.input)?;
    let readout = readout(cli.layer, cli.weights.as_deref())?;
    let form = cli.rerank.form(&cli.model, readout.clone())?;
    if form.reads_head() && cli.fitting.fit.is_some() {
        return Err(usage("the model scores by a head of labels: --fit is of label logits (--labels)"));
    }
    let weights = match &readout {
        RerankReadout::Weights(weights) => json!(weights),
        _ => json!(null),
    };
    let job = job
        .with_settings([
            ("rerank".to_owned(), form.to_json()),
            ("layer".to_owned(), json!(cli.layer)),
            ("weights".to_owned(), weights),
            ("every_layer".to_owned(), json!(cli.fitting.fit.is_some())),
            ("top".to_owned(), json!(cli.top)),
        ])
        .with_model(&cli.model, None)?;
    let mut origin = None;
    let finished = job.run(&checked, |pending| {
        let (result, of_judge) = read(cli, pending, &form)?;
        origin = Some(of_judge);
        Ok(result)
    })?;
    end_of_rows(&finished.counts)?;
    let figures = figures::queries(&finished, judged, cli.k)?.figures(cli.k);
    if cli.fitting.fit.is_some() {
        let of_judge = || Ok(judge(cli, &cli.model.load()?, &form)?.origin());
        cli.fitting.learn(&figures::labelled(&finished)?, origin, of_judge, cli.output.write.overwrite)?;
    }
    write_json_if(cli.json.as_deref(), PROGRAM, || Ok(&figures))?;
    figures.print(None)?;
    Ok(figures.into())
}

fn judge(cli: &Cli, model: &Model, form: &RerankForm) -> Result<RerankJudge> {
    let every_layer = cli.fitting.fit.is_some();
    let settings = RerankSettings { every_layer, ..form.settings(model)? };
    Ok(RerankJudge::new(settings, model)?)
}

/// Has the model read what is not scored yet; also what weights belong to that are fitted on it.
fn read(cli: &Cli, pending: Pending<'_, RerankRecords>, form: &RerankForm) -> Result<(RunResult, DecisionOrigin)> {
    let model = cli.model.load()?;
    let judge = judge(cli, &model, form)?;
    let row = |result: ItemResult<RerankRecord>| row(&judge, &result, cli.top, &cli.carry.fields());
    let result = pending.judge(resolved(&model, None, Settings::new()), &model, &[&judge], row)?;
    tell_label_mass(&result.summary, "the labels", NO_ANSWER);
    Ok((result, judge.origin()))
}

/// The row of a result.
fn row(
    judge: &RerankJudge,
    result: &ItemResult<RerankRecord>,
    top: Option<usize>,
    carry: &Carry,
) -> Result<(RerankRow, Fate)> {
    let verdict = &result.verdicts[0];
    let mut reranked = Reranked { unscored: verdict.unscored().cloned(), ..Reranked::default() };
    if let Some(score) = verdict.score() {
        let rounds = result.rounds(0);
        let failed = |error| anyhow::anyhow!("{error}");
        let readings = judge.readings(&result.item, &rounds).map_err(failed)?;
        let cut = |index: usize| readings.get(index).copied().flatten().map_or(0, |reading| reading.cut_tokens);
        let all = ranked(verdict).into_iter().take(top.unwrap_or(usize::MAX));
        let written = |document: RankedDocument| {
            let (id, cut) = (result.item.document_ids.get(document.index).cloned().flatten(), cut(document.index));
            WrittenResult::new(document, id, cut)
        };
        reranked.results = all.map(written).collect();
        reranked.label_mass = score.label_mass;
        reranked.input_tokens = rounds.prompt_tokens();
        if judge.settings().every_layer {
            reranked.tables = judge.tables(&result.item, &rounds).map_err(failed)?;
        }
    }
    Ok(RerankRow::new(result.item.clone(), reranked, carry)?)
}
