//! Typed questions about a state, with a probability for every option.
//!
//! `judge decide --model FOLDER --input states.jsonl --questions questions.json --output answers.jsonl`

mod cli;
mod figures;
mod rows;
mod service;

use std::collections::BTreeSet;

use anyhow::Result;
use judge_cli::args::bars;
use judge_cli::args::decisions::{NO_ANSWER, questions, refuse_dressing, tell_without_weights};
use judge_cli::args::model_args::ModelArgs;
use judge_cli::report::write_json_if;
use judge_cli::row_job::{Pending, RowJob, Words, resolved};
use judge_cli::terminal::console::{end_of_rows, tell_label_mass};
use judge_core::ItemResult;
use judge_core::decision::{DecisionJudge, DecisionOrigin, DecisionSettings, DecisionWeights, Questions};
use judge_data::{DecisionRecord, DecisionRecords, Outputs, RunResult, Settings};
use judge_models::ApiSettings;

use self::cli::PROGRAM;
use self::figures::{Measured, NAMES, question_of};
use self::rows::{check, row};

pub(crate) use self::cli::Cli;

const WORDS: Words = Words { doing: "deciding", rows: "rows", done: "answered" };

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.bars.gate(PROGRAM, || decided(cli))
}

fn decided(cli: &Cli) -> Result<bars::Measured> {
    refuse_dressing(&cli.model)?;
    cli.decisions.check(cli.fitting.fit.is_some())?;
    let inputs = [&cli.input.input].into_iter().chain(&cli.questions).chain(cli.decisions.inputs());
    let outputs =
        Outputs::new(inputs).rows([&cli.output.output]).reports(PROGRAM, cli.json.iter().chain(cli.bars.reports()));
    let outputs = outputs.documents::<DecisionWeights>(&cli.fitting.fit);
    outputs.overwrite(cli.output.write.overwrite).check()?;
    let of_questions = NAMES.map(|name| format!("{name}:"));
    cli.bars.check_names(&NAMES.into_iter().chain(of_questions.iter().map(String::as_str)).collect::<Vec<_>>())?;
    let columns = cli.input.columns.clone().unwrap_or_default();
    let source = DecisionRecords { input: cli.input.open()?, columns, max_rows: cli.model.limit };
    let asked = cli.questions.as_deref().map(questions).transpose()?;
    let job = RowJob::new(PROGRAM, WORDS, source, &cli.output, &cli.carry, cli.model.quiet);
    let named: BTreeSet<&str> = cli.bars.statistics().filter_map(question_of).collect();
    let (checked, kinds) = check(&job, asked.as_ref(), &named)?;
    let (decider, job) = match cli.service.named() {
        Some(named) => {
            let job = cli.service.plan(&named, job, asked.as_ref())?;
            (Decider::Service(named), job)
        }
        None => {
            let fits = cli.fitting.fit.is_some();
            let (settings, model) = cli.decisions.settings(&cli.model, asked.clone(), fits)?;
            tell_without_weights(&settings, kinds);
            let job = job.with_settings([("decision".to_owned(), settings.to_json())]).with_model(&model, None)?;
            (Decider::Model(Box::new(settings), Box::new(model)), job)
        }
    };
    let mut origin = None;
    let finished = job.run(&checked, |pending| match &decider {
        Decider::Service(named) => cli.service.ask(named, cli, pending, asked.as_ref()),
        Decider::Model(settings, model) => {
            let (result, of_judge) = read(cli, pending, (**settings).clone(), model, asked.as_ref())?;
            origin = Some(of_judge);
            Ok(result)
        }
    })?;
    end_of_rows(&finished.counts)?;
    let measured = Measured::of(&finished, asked.as_ref(), named.into_iter().map(str::to_owned))?;
    if let Decider::Model(settings, model) = &decider {
        let of_judge = || Ok(DecisionJudge::new((**settings).clone(), &model.load()?)?.origin());
        cli.fitting.learn(&measured.labelled, origin, of_judge, cli.output.write.overwrite)?;
    }
    write_json_if(cli.json.as_deref(), PROGRAM, || Ok(&measured.figures))?;
    measured.print()?;
    Ok(measured.for_bars())
}

/// Who answers.
enum Decider {
    /// A model on this machine, asked in this way.
    Model(Box<DecisionSettings>, Box<ModelArgs>),
    /// A service.
    Service(ApiSettings),
}

/// Has a model on this machine read what is not answered yet; also what weights belong to that are fitted on it.
fn read(
    cli: &Cli,
    pending: Pending<'_, DecisionRecords>,
    settings: DecisionSettings,
    model: &ModelArgs,
    asked: Option<&Questions>,
) -> Result<(RunResult, DecisionOrigin)> {
    let model = model.load()?;
    let judge = DecisionJudge::new(settings, &model)?;
    let row = |result: ItemResult<DecisionRecord>| {
        let tables = |questions: &Questions| match judge.settings().every_layer {
            true => judge.tables(questions, &result.rounds(0)).map_err(|error| anyhow::anyhow!("{error}")),
            false => Ok(Vec::new()),
        };
        row(&result, asked, &cli.carry.fields(), tables)
    };
    let result = pending.judge(resolved(&model, None, Settings::new()), &model, &[&judge], row)?;
    tell_label_mass(&result.summary, "the labels of the options", NO_ANSWER);
    Ok((result, judge.origin()))
}
