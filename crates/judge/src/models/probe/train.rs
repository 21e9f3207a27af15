//! Probing judges from graded prompts: states, layer selection, probes, and the baselines that they have to beat.
//!
//! `judge probe train --output probes`

mod baseline;
mod cli;
mod figure;
mod groups;
mod print;
mod row_error;
mod rows;
mod sentences;
mod settings;
mod states;
mod verdicts;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use judge_cli::args::model_args::{is_template, read_template};
use judge_cli::missing_fields::tell_unread_that;
use judge_cli::probes::JUDGE_NOTE;
use judge_cli::report::{write_json, write_marked};
use judge_cli::terminal::console::{counted_that, say, tell, usage};
use judge_core::{Backbone, Layer, ModelInfo, PromptTemplate, request::TokenId};
use judge_data::{Outputs, check_new, write_atomic, write_new};
use judge_models::Model;
use judge_probe::ProbedModel;
use judge_probe::training::{GradedRow, Grading, ProbeTraining, TrainedProbe, TrainingOrigin};
use serde_json::json;

use self::baseline::Tuned;
use self::groups::keep_together;
use self::rows::{Data, Reading};
use self::settings::{Found, SETTINGS, Settings, figure_path, look, probe_path, report_path, template_path};
use self::states::States;
use self::verdicts::Judged;

pub(crate) use self::cli::Cli;

pub(crate) fn run(cli: &Cli) -> Result<()> {
    cli.check()?;
    let template = cli.template.as_deref().map(read_template).transpose()?;
    let input = cli.input.as_deref().map(judge_cli::args::files::open).transpose()?;
    input.as_ref().map_or(Ok(()), |input| cli.model.admit(input))?;
    let reading = Reading {
        aspects: &cli.aspect,
        group: cli.group.as_deref(),
        source: cli.source.as_deref(),
        columns: &cli.columns,
        template: template.as_ref(),
        scale: cli.scale,
        model: &cli.model,
    };
    let (mut data, judged) = match (&input, &cli.verdicts) {
        (Some(input), Some(verdicts)) => Judged::read(input, verdicts, cli.within, &reading)?,
        (Some(input), None) if cli.rag => Judged::of_sentences(input, &cli.decisions, &reading)?,
        (Some(input), None) => (Data::read(input, &reading)?, None),
        (None, _) => (Data::generated([2_000, 1_000, 1_000], cli.seed.seed, &cli.model), None),
    };
    let training = cli.training(&data)?;
    if data.ungraded > 0 {
        let ungraded = counted_that(data.ungraded, "row", ["has no grade and is", "have no grade and are"]);
        say(format_args!("{ungraded} skipped"))?;
    }
    tell_unread_that(&data.unread, "cannot be read and are skipped");
    let groups = match cli.group.is_none() && !cli.ungrouped && input.is_some() {
        true => keep_together(&mut data, &training)?,
        false => BTreeMap::new(),
    };
    let aspects: Vec<&String> = data.rows.keys().collect();
    for (aspect, rows) in &data.rows {
        training.check(rows).with_context(|| format!("aspect {aspect:?}"))?;
    }
    let mut settings = cli.settings(input.as_ref(), &data)?;
    if !groups.is_empty() {
        settings.insert("groups".to_owned(), serde_json::to_value(&groups)?);
    }
    check_files(cli, &aspects, &data.templates, &training)?;
    look(&cli.output, &aspects, &settings, cli.overwrite)?;
    check_templates(cli, &data.templates)?;

    let model = cli.model.load()?;
    judged.as_ref().map_or(Ok(()), |judged| judged.check_model(model.info()))?;
    settings.extend(cli.model_settings(model.info()));
    if look(&cli.output, &aspects, &settings, cli.overwrite)? == Found::Finished {
        return say(format_args!("{} is complete: the same rows, model and settings", cli.output.display()));
    }
    let training = ProbeTraining { layers: cli.layers.of_model(model.info().n_layers)?, ..training };
    if cli.attention_entropy && training.layers.iter().all(|layer| layer.0 == 0) {
        return Err(usage("--attention-entropy needs a layer above 0: the embeddings attend to nothing"));
    }
    if cli.tuned_baseline {
        baseline::check(cli, model.info().n_layers)?;
    }
    let mut tuned = BTreeMap::new();
    for (aspect, rows) in data.rows.iter().filter(|_| cli.tuned_baseline) {
        tuned.insert(aspect, Tuned::new(cli, &model, aspect, rows)?);
    }
    fs::create_dir_all(&cli.output).with_context(|| format!("cannot create the folder {}", cli.output.display()))?;

    let mut reports = BTreeMap::new();
    for (aspect, rows) in &data.rows {
        // A verdict is no grade that the prompt asks for.
        let is_graded = judged.is_none();
        let tokens = is_graded.then(|| grade_tokens(&model, rows, &training.layers)).flatten();
        let reading = states::Reading::new(&training, tokens.as_deref(), data.written.as_ref());
        let folder = cli.states_folder();
        let states_settings = cli.states_settings(model.info(), rows, data.written.as_ref())?;
        let mut states = States::read(&model, &folder, aspect, rows, &reading, &states_settings, cli.model.quiet)?;
        tell_unread_that(&states.unread()?, "could not be read and are left out");
        states.own = judged.as_ref().and_then(|judged| judged.own.as_deref());
        states.tuned = tuned.get(aspect);
        let template = data.templates.get(aspect);
        let origin = TrainingOrigin {
            model: ProbedModel::from(model.info()),
            aspect: aspect.clone(),
            template_id: template.map(|template| template.id().to_owned()),
            notes: notes(model.info(), &settings, judged.as_ref())?,
        };
        let TrainedProbe { probe, report } =
            training.train(rows, &states, &origin).with_context(|| format!("aspect {aspect:?}"))?;
        write_atomic(probe_path(&cli.output, aspect), &probe.to_bytes()?)?; // `look` has compared what was there
        let scored_by = print::scored_by(&report);
        let title = format!("{aspect}: {scored_by} by layer");
        let score = format!("{scored_by}, mean over {} folds", report.folds);
        if let Some(svg) = figure::svg(&title, &score, &report.selection)? {
            write_marked(&figure_path(&cli.output, aspect), cli::PROGRAM, &svg)?;
        }
        if let Some(template) = template {
            write_new(template_path(&cli.output, aspect), &serde_json::to_vec_pretty(template)?, cli.overwrite)?;
        }
        print::print(aspect, &report)?;
        states.tuned.map_or(Ok(()), Tuned::release)?;
        reports.insert(aspect, report);
    }
    let path = report_path(&cli.output);
    let binary = cli.binary;
    let report = json!({
        "model": model.info(), "binary": binary, SETTINGS: settings, "ungraded": data.ungraded,
        "unread": data.unread.count(), "groups": groups, "aspects": reports,
    });
    write_json(&path, cli::PROGRAM, &report)?;
    tuned.values().try_for_each(Tuned::finish)?;
    say(format_args!("-> {}", path.display()))
}

/// Refuses, before any work, to write where something else lies. Probes and the report are compared by [`look`].
fn check_files(
    cli: &Cli,
    aspects: &[&String],
    templates: &BTreeMap<String, PromptTemplate>,
    training: &ProbeTraining,
) -> Result<()> {
    let folder = cli.states_folder();
    let in_output = |path: &PathBuf| path.parent().is_some_and(Path::is_dir); // in a folder that is made later there is nothing yet
    let tables = aspects.iter().flat_map(|aspect| states::paths(&folder, aspect, training));
    let outputs = Outputs::new(cli.input.iter().chain(&cli.template).chain(&cli.verdicts));
    let outputs = outputs.states(tables.filter(in_output));
    let figures = aspects.iter().map(|aspect| figure_path(&cli.output, aspect)).filter(in_output);
    let paths = templates.keys().map(|aspect| template_path(&cli.output, aspect)).filter(in_output);
    let probes = aspects.iter().map(|aspect| probe_path(&cli.output, aspect)).filter(in_output);
    let report = Some(report_path(&cli.output)).filter(in_output);
    let outputs = outputs.reports(cli::PROGRAM, figures.chain(report)).made(paths, is_template);
    Ok(outputs.made(probes, super::import::is_probe).overwrite(cli.overwrite).check()?)
}

/// Refuses to write a template over another one. Where probes are, [`look`] has said what else differs.
fn check_templates(cli: &Cli, templates: &BTreeMap<String, PromptTemplate>) -> Result<()> {
    for (aspect, template) in templates.iter().filter(|_| cli.output.is_dir()) {
        let path = template_path(&cli.output, aspect);
        check_new(path, &serde_json::to_vec_pretty(template)?, cli.overwrite)?;
    }
    Ok(())
}

/// What a probe says of its own making.
fn notes(model: &ModelInfo, settings: &Settings, judged: Option<&Judged>) -> Result<BTreeMap<String, String>> {
    let mut notes = BTreeMap::from([
        ("program".to_owned(), cli::PROGRAM.to_owned()),
        ("dtype".to_owned(), model.dtype.clone()),
        (SETTINGS.to_owned(), serde_json::to_string(settings)?),
    ]);
    if let Some(judged) = judged {
        notes.insert(JUDGE_NOTE.to_owned(), serde_json::to_string(&judged.settings)?);
    }
    Ok(notes)
}

/// The grades that occur as tokens, for the model's own score: only if it is run to its end anyway, and has such tokens.
fn grade_tokens(model: &Model, rows: &[GradedRow], layers: &[Layer]) -> Option<Vec<TokenId>> {
    if layers.last() != Some(&Layer(model.info().n_layers)) {
        return None;
    }
    let grades: BTreeSet<i64> = rows.iter().map(|row| Grading::Whole.class(row.grade)).collect();
    let tokens: Result<Vec<TokenId>, _> = grades.iter().map(|grade| model.token(&grade.to_string())).collect();
    tokens.inspect_err(|error| tell(format_args!("note: no prompted score to compare with: {error}"))).ok()
}
