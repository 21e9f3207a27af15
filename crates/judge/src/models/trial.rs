//! Which reading of a model to judge with: every one is tried on rows that people have graded.
//!
//! `judge try --input graded.jsonl --model FOLDER`

mod advice;
mod cli;
mod print;
mod rows;
mod tables;

use anyhow::Result;
use judge_cli::args::decisions::refuse_dressing;
use judge_cli::args::files::program;
use judge_cli::report::{BOOTSTRAP, write_json_if, write_marked};
use judge_cli::terminal::console::{say, tell};
use judge_core::decision::{Checklist, ChecklistJudge, Criterion, DecisionJudge, DecisionSettings};
use judge_core::lager::{Condition, LagerJudge, LayerTable, States, Variant};
use judge_core::scale::ScalePoint;
use judge_core::{Backbone, Fields, Judge, JudgeError, Layer, Scale};
use judge_data::Outputs;
use judge_metrics::resampling::Bootstrap;
use judge_models::Model;
use judge_probe::trial::{ReadAs, Reading, Trial};
use serde_json::json;

use self::advice::{Advice, By};
use self::rows::{Row, Rows};
use self::tables::Tables;

use self::cli::PROGRAM;

pub(crate) use self::cli::Cli;

/// The readings that need labels for yes and no.
const YES_LAST: &str = "P(yes), last layer";
const YES_BEST: &str = "P(yes), best layer";
/// The reading of the conversation.
const AFTER: &str = "probe after the response";

pub(crate) fn run(cli: &Cli) -> Result<()> {
    let folder = cli.folder()?;
    let inputs = [&cli.input.input].into_iter().chain(&cli.asked.template).chain(cli.decisions.inputs());
    let reports = cli.json.iter().chain(&cli.plot);
    advice::outputs(&folder, Outputs::new(inputs)).reports(PROGRAM, reports).overwrite(cli.write.overwrite).check()?;
    let input = cli.input.open()?;
    cli.model.admit(&input)?;
    let rows = Rows::read(cli, &input)?;
    let settings = cli.asked.settings(rows.format, &cli.model, Condition::PromptEnd)?;
    let criterion = Criterion { name: "1".to_owned(), criterion: cli.criterion.clone(), weight: 1.0, fatal: false };
    let checklist = Checklist::new(vec![criterion])?;
    let model = cli.model.load()?;
    let lager = LagerJudge::new(settings, &model)?;
    let questions = questions(cli, &model, &rows, &checklist)?;
    let asked = questions.as_ref().ok().map(|(judge, yes_column)| (judge, *yes_column));
    let conversation = rows.conversation().map(|template| cli.model.dress_template(template));
    let mut tables = Tables::read(cli, &folder, &model, &rows, &lager, asked, conversation.as_ref())?;
    let no_conversation = tables.drop_refused(rows.rows.len())?;
    if let Some(reason) = &no_conversation {
        tell(format_args!("note: the {AFTER} is not tried: {reason}"));
    }
    let (rows, places) = rows.read_by(|place| tables.lacks(place))?;
    advice::check_learnt(&folder, &rows, cli.write.overwrite)?;

    let (states, after) = tables.states(&places);
    let readings = readings(&tables, &places, &rows, &lager, model.info().layers(), (&states, after.as_ref()))?;
    let trial = Trial {
        groups: rows.groups.clone(),
        questions: rows.questions.clone(),
        folds: cli.folds,
        bootstrap: Bootstrap { seed: cli.seed.seed, resamples: cli.resamples, ..BOOTSTRAP },
        seed: cli.seed.seed,
        ..Trial::new(rows.grades())
    };
    if !cli.model.quiet {
        tell("comparing the readings, each by what it learns from other rows");
    }
    let (by, readings): (Vec<By>, Vec<_>) = readings.into_iter().unzip();
    let found = trial.compare(&readings)?;
    let kept = advice::keep(&trial, &readings, &found)?;
    if let Some(path) = &cli.plot {
        write_marked(path, PROGRAM, &print::plot(cli, &rows, &found)?)?;
    }
    print::tables(cli, &rows, &found, &kept)?;
    let advice = Advice {
        cli,
        folder: &folder,
        lager: &lager,
        checklist: &checklist,
        conversation: conversation.as_ref(),
        model: model.info(),
        rows: &rows,
    };
    let uses = advice.save(&by, kept)?;
    write_json_if(cli.json.as_deref(), PROGRAM, || {
        let mut figures = json!({
            "program": program(PROGRAM), "inputs": [input.identity()?], "model": model.info(),
            "n": rows.rows.len(), "ungraded": rows.ungraded, "unread": rows.unread.count(), "not_read_by_the_model": rows.lost,
            "groups": rows.n_groups(), "folds": cli.folds, "measure": found.measure, "level": found.level, "best_of": found.best_of,
            "readings": advice::json(&found, &uses)?, "best": found.best.map(|best| &found.readings[best].name),
            "recommended": found.recommended.map(|chosen| &found.readings[chosen].name),
        });
        let no_yes =
            questions.as_ref().err().into_iter().flat_map(|reason| [YES_LAST, YES_BEST].map(|name| (name, reason)));
        let not_tried = no_yes.chain(no_conversation.as_ref().map(|reason| (AFTER, reason)));
        let not_tried: Vec<_> = not_tried.map(|(name, reason)| json!({"name": name, "reason": reason})).collect();
        if !not_tried.is_empty() {
            figures["not_tried"] = json!(not_tried);
        }
        Ok(figures)
    })?;
    print::advise(&rows, &found, &uses)?;
    say(format_args!("-> {}", folder.display()))
}

/// The judge that asks whether the statement is true, and which of its labels says yes; or why the model cannot be asked so.
fn questions(
    cli: &Cli,
    model: &Model,
    rows: &Rows,
    checklist: &Checklist,
) -> Result<Result<(ChecklistJudge, usize), String>> {
    let (settings, of_folder) = cli.decisions.settings(&cli.model)?;
    let yes_column = usize::from(settings.form.false_first);
    let settings = DecisionSettings { every_layer: true, lens: cli.asked.lens(), ..settings };
    // A head reads the last layer alone, and an adapter belongs to the folder's own questions.
    let is_own = of_folder.head().is_some() || of_folder.adapter().is_some();
    let has_list = |row: &Row| row.record.json("checklist").is_some() || row.record.field("checklist").is_some();
    let refused = match (is_own, refuse_dressing(&cli.model)) {
        (true, _) => "the model has a head or an adapter of its own for questions".to_owned(),
        (_, Err(error)) => error.to_string(),
        _ if rows.rows.iter().any(has_list) => "rows have checklists of their own".to_owned(),
        (false, Ok(())) => {
            let judge = DecisionJudge::new(settings, model);
            match judge.and_then(|judge| ChecklistJudge::new(judge, Some(checklist.clone()))) {
                Err(error) => error.to_string(),
                Ok(judge) => match rows.rows.first().map(|row| judge.ask(&row.record)) {
                    Some(Err(JudgeError::Unscored(why))) => why.to_string(),
                    Some(Ok(asked)) if asked.is_empty() => "its tokenizer has no labels for yes and no".to_owned(),
                    _ => return Ok(Ok((judge, yes_column))),
                },
            }
        }
    };
    tell(format_args!("note: P(yes) is not tried: {refused}"));
    Ok(Err(refused))
}

/// All readings, from the simplest on.
fn readings<'s, S>(
    tables: &Tables,
    places: &[usize],
    rows: &Rows,
    lager: &LagerJudge,
    layers: Vec<Layer>,
    (states, after): (&'s S, Option<&'s S>),
) -> Result<Vec<(By, Reading<'s, S>)>> {
    let scale = &lager.settings().scale;
    let (score, yes) = (tables.score(places)?, tables.yes(places)?);
    let point = |value: f64, label: &str| ScalePoint { value, label: label.to_owned() };
    let of_yes = Scale::new(vec![point(0.0, "no"), point(1.0, "yes")])?;
    let by_layer = |tables: &[LayerTable], scale: &Scale| -> Result<Vec<Vec<f64>>> {
        let expected = |layer: &Layer| {
            let of_row = |table: &LayerTable| Ok(table.distribution(*layer, scale)?.expected());
            tables.iter().map(of_row).collect()
        };
        layers.iter().map(expected).collect()
    };
    let (scores, p_yes) = (by_layer(&score, scale)?, yes.map(|yes| by_layer(&yes, &of_yes)).transpose()?);
    let mean = |table: &LayerTable| Ok(Variant::MeanExpected.score(table, scale, States::All)?.score);
    let mean: Vec<f64> = score.iter().map(mean).collect::<Result<_>>()?;
    let last = |layers: &[Vec<f64>]| ReadAs::Plain(layers.last().cloned().unwrap_or_default());
    let mut found = vec![(By::Score, Reading::new("score, last layer", last(&scores)))];
    if let Some(p_yes) = &p_yes {
        found.push((By::Yes, Reading::new(YES_LAST, last(p_yes))));
    }
    found.push((By::MeanOfLayers, Reading::new("score, mean of layers", ReadAs::Plain(mean))));
    let best = Reading::new("score, best layer", ReadAs::ChosenLayer(scores));
    found.push((By::ScoreLayer, best));
    if let Some(p_yes) = p_yes {
        found.push((By::Yes, Reading::new(YES_BEST, ReadAs::ChosenLayer(p_yes))));
    }
    let (origin, targets) = (Box::new(lager.origin().clone()), rows.on_scale(scale.range()));
    let weights = ReadAs::Weights { tables: score, origin, targets };
    found.push((By::Weights, Reading::new("score, weights of layers", weights)));
    let probe = |signals| ReadAs::Probe { layers: layers.clone(), signals };
    found.push((By::Probe, Reading::new("probe where the score is read", probe(states))));
    if let Some(after) = after {
        found.push((By::ProbeAfter, Reading::new(AFTER, probe(after))));
    }
    if let Some(lengths) = rows.lengths() {
        found.push((By::Nothing, Reading::new("length of the response", ReadAs::Baseline(lengths))));
    }
    Ok(found)
}
