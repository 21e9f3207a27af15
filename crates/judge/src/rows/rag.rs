//! Answers from retrieved contexts, measured by yes-or-no decisions of a local model.
//!
//! `judge rag --model FOLDER --input answers.csv --output measured.jsonl`

mod cli;
mod figures;

use anyhow::Result;
use judge_cli::args::bars;
use judge_cli::args::decisions::{NO_ANSWER, refuse_dressing};
use judge_cli::judged_probe::JudgedProbe;
use judge_cli::missing_fields::tell_unread_that;
use judge_cli::report::write_json_if;
use judge_cli::row_job::{RowJob, Words, refuse_unusable, resolved};
use judge_cli::terminal::console::{end_of_rows, tell_label_mass, usage};
use judge_core::decision::{DecisionJudge, DecisionWeights};
use judge_core::rag::{RagJudge, sentence_prompt_settings};
use judge_core::{Backbone, ItemResult};
use judge_data::{Carry, Fate, Outputs, RagRecord, RagRecords, RagRow, Settings, Unread};
use serde_json::json;

use self::cli::PROGRAM;
use self::figures::Figures;

pub(crate) use self::cli::Cli;

const WORDS: Words = Words { doing: "measuring", rows: "answers", done: "measured" };

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.bars.gate(PROGRAM, || measured(cli))
}

fn measured(cli: &Cli) -> Result<bars::Measured> {
    refuse_dressing(&cli.model)?;
    cli.decisions.check(cli.fitting.fit.is_some())?;
    let inputs = [&cli.input.input].into_iter().chain(&cli.probe).chain(cli.decisions.inputs());
    let outputs =
        Outputs::new(inputs).rows([&cli.output.output]).reports(PROGRAM, cli.json.iter().chain(cli.bars.reports()));
    let outputs = outputs.documents::<DecisionWeights>(&cli.fitting.fit);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let columns = cli.input.columns.clone().unwrap_or_default();
    let measures = cli.measures()?;
    let names = figures::names(&measures, cli.group.is_some());
    cli.bars.check_names(&names.iter().map(String::as_str).collect::<Vec<_>>())?;
    let source = RagRecords { input: cli.input.open()?, columns, max_rows: cli.model.limit };
    let job = RowJob::new(PROGRAM, WORDS, source, &cli.output, &cli.carry, cli.model.quiet);
    let (mut no_grades, mut in_part) = (Unread::default(), Unread::default());
    let mut has_group = cli.group.is_none();
    let checked = job.check(RagRow::KNOWN, |record| {
        has_group |= cli.group.as_deref().is_some_and(|field| record.text(field).is_some());
        no_grades.note(&record.id, record.no_grade.clone());
        let why: Vec<String> = measures.iter().filter_map(|measure| measure.lacks(&record.rag)).collect();
        let nothing = why.first().filter(|_| why.len() == measures.len()).cloned();
        let some = record.rag.unread.first().map(|(field, why)| format!("{field}: {why}"));
        in_part.note(&record.id, some.filter(|_| nothing.is_none()));
        Ok(nothing)
    })?;
    if let (Some(field), false) = (&cli.group, has_group) {
        return Err(usage(format!("--group: no row has the field {field:?}")));
    }
    let hint = "name the columns with --columns question=…,contexts=…,response=…,reference=…";
    refuse_unusable(&job.job.source, &checked, "can be measured", Some(hint.to_owned()))?;
    tell_unread_that(&in_part, "have a field that cannot be read, and get no measure that needs it");
    tell_unread_that(&no_grades, "have grades that cannot be read and are left out");
    let settings = cli.settings(measures);
    let (decisions, model) = cli.decisions.settings(&cli.model, None, cli.fitting.fit.is_some())?;
    let of_sentences = Settings::from([("sentences".to_owned(), sentence_prompt_settings(&decisions))]);
    let probe =
        cli.probe.as_deref().map(|path| JudgedProbe::read("--probe", path, "judge probe train --rag")).transpose()?;
    probe.as_ref().map_or(Ok(()), |probe| probe.check_judge(&of_sentences))?;
    let job = job
        .with_settings([
            ("probe_blake3".to_owned(), json!(probe.as_ref().map(|probe| &probe.file))),
            ("decision".to_owned(), decisions.to_json()),
            ("measures".to_owned(), json!(settings.measures)),
            ("claims_only".to_owned(), json!(settings.claims_only)),
            ("by_context".to_owned(), json!(settings.by_context)),
        ])
        .with_model(&model, None)?;
    let mut origin = None;
    let finished = job.run(&checked, |pending| {
        let model = model.load()?;
        let mut judge = RagJudge::new(settings.clone(), DecisionJudge::new(decisions.clone(), &model)?)?;
        if let Some(probe) = &probe {
            probe.check_model(model.info())?;
            judge = judge.with_probe(probe.probe.clone(), model.info())?;
        }
        origin = Some(judge.decisions().origin());
        let row = |result| row(&judge, result, &cli.carry.fields());
        let result = pending.judge(resolved(&model, None, Settings::new()), &model, &[&judge], row)?;
        if !cli.asks_probe_alone() {
            tell_label_mass(&result.summary, "yes and no", NO_ANSWER);
        }
        Ok(result)
    })?;
    end_of_rows(&finished.counts)?;
    let bars: Vec<&str> = cli.bars.statistics().collect();
    let figures = Figures::of(&finished, &settings.measures, cli.group.as_deref(), &bars)?;
    let of_judge = || Ok(DecisionJudge::new(decisions, &model.load()?)?.origin());
    cli.fitting.learn(&figures.labelled, origin, of_judge, cli.output.write.overwrite)?;
    write_json_if(cli.json.as_deref(), PROGRAM, || Ok(&figures))?;
    figures.print()?;
    Ok(figures.for_bars())
}

fn row(judge: &RagJudge, result: ItemResult<RagRecord>, carry: &Carry) -> Result<(RagRow, Fate)> {
    let rounds = result.rounds(0);
    let findings = judge.findings(&result.item, &rounds).map_err(|error| anyhow::anyhow!("{error}"))?;
    let input_tokens = rounds.prompt_tokens();
    Ok(RagRow::new(result.item, findings, input_tokens, carry)?)
}
