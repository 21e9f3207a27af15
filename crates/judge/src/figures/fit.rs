//! Fits layer weights on a validation file and compares the score variants on a data file.
//!
//! `judge fit --valid valid.jsonl --data test.jsonl`

mod cli;
mod curve;
mod pairs;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use judge_cli::args::files::program;
use judge_cli::args::lager::layer_weights;
use judge_cli::groups::OtherFields;
use judge_cli::layer_agreement;
use judge_cli::report::{Compared, say_compared, write_json_if, write_marked};
use judge_cli::terminal::console::{say, tell, usage};
use judge_cli::terminal::options::quoted;
use judge_cli::terminal::svg::{name_of, short};
use judge_core::{
    ItemId,
    fit::{Graded, LayerWeightFit, TargetRule},
    lager::{LayerWeights, States, Variant},
    scale::ScoreDistribution,
};
use judge_data::{Input, InputFile, Outputs, Program, Rows, ScoreFormat, ScoreTable, save_new};
use judge_probe::RowGroups;
use serde::Serialize;
use serde_json::json;

use self::cli::LayerChoice;
use self::pairs::Worth;

pub(crate) use self::cli::Cli;

/// Fewer validation items than this make weights that hardly mean anything.
const FEW: usize = 100;

#[derive(Serialize)]
struct Results {
    program: Program,
    inputs: Vec<InputFile>,
    weights: Option<LayerWeights>,
    n: usize,
    unscored: usize,
    unscored_by_reason: BTreeMap<String, usize>,
    without_human: usize,
    variants: BTreeMap<&'static str, Compared>,
}

pub(crate) fn run(cli: &Cli) -> Result<()> {
    let inputs = [cli.input.as_ref(), cli.valid.as_ref(), cli.weights.as_ref()];
    let outputs = Outputs::new(inputs.into_iter().flatten()).documents::<LayerWeights>(&cli.weights_out);
    let reports = [&cli.json, &cli.plot, &cli.learning_plot].into_iter().flatten();
    outputs.reports("lager_evaluate", reports).overwrite(cli.write.overwrite).check()?;
    let variants = cli.variants()?;
    let Some(input) = &cli.input else {
        let (Some(valid), Some(out)) = (&cli.valid, &cli.weights_out) else {
            return Err(usage("--input FILE is needed, or --valid FILE and --weights-out FILE to fit weights alone"));
        };
        return fit_alone(cli, &read_valid(cli, valid)?, out);
    };
    let data = ScoreTable::read(input)?;
    tell_no_grades(&data);
    if data.format == ScoreFormat::Pairs {
        return Err(usage(format!(
            "--input: {} has pairs; fit weights on pairs with --valid and --weights-out alone, and measure them with `judge compare --weights` and `judge bench`",
            input.display()
        )));
    }
    note_about_questions(&data)?;
    let weights = weights(cli, &data, &variants)?;
    let states = cli.states.or(weights.as_ref().map(LayerWeights::states)).unwrap_or_default();
    if let Some(weights) = &weights {
        ensure!(states == weights.states(), "--states {states}, but the weights are for {}", weights.states());
        for note in data.check_weights(weights)? {
            tell(format_args!("note: {note}"));
        }
    }
    let reasons = data.unscored.iter().map(|(reason, count)| (reason.to_string(), *count)).collect();
    let read = [Some(input), cli.valid.as_ref(), cli.weights.as_ref()];
    let mut results = Results {
        program: program("lager_evaluate"),
        inputs: read.into_iter().flatten().map(Input::identify).collect::<Result<_, _>>()?,
        n: data.graded.len(),
        unscored: data.unscored.values().sum(),
        unscored_by_reason: reasons,
        without_human: data.without_human,
        variants: BTreeMap::new(),
        weights,
    };
    let human = data.human();
    for variant in &variants {
        let scores = data.scores(*variant, states, results.weights.as_ref());
        let scores = scores.with_context(|| format!("{}: variant {variant}", input.display()))?;
        results.variants.insert(variant.as_str(), Compared::new(&scores, &human)?);
    }
    write_json_if(cli.json.as_deref(), "lager_evaluate", || Ok(&results))?;
    print(input, &variants, &results)?;
    // What cannot be drawn costs no figures.
    if let Some(path) = &cli.plot {
        write_marked(path, "lager_evaluate", &of_layers(&data, results.weights.as_ref())?)?;
    }
    if let (Some(path), Some(valid)) = (&cli.learning_plot, &cli.valid) {
        let valid = ScoreTable::read(valid)?;
        write_marked(path, "lager_evaluate", &curve::of(&data, &valid, &settings(cli, &valid))?)?;
    }
    Ok(())
}

/// Each layer's agreement with people, as a picture.
fn of_layers(data: &ScoreTable, weights: Option<&LayerWeights>) -> Result<String> {
    let expected = |logits: &[f64]| Ok::<_, anyhow::Error>(ScoreDistribution::softmax(&data.scale, logits)?.expected());
    let of_row = |item: &Graded| item.table.rows().map(expected).collect::<Result<Vec<f64>>>();
    let scores = data.graded.iter().map(of_row).collect::<Result<Vec<_>>>()?;
    let numbers: Vec<usize> = (0..=data.n_layers).collect();
    let found = layer_agreement::agreement(&numbers, &scores, &data.human(), weights.map(LayerWeights::weights))?;
    layer_agreement::svg(
        &found,
        layer_agreement::SPEARMAN,
        &format!("{}, n = {}, 95 % intervals", short(&name_of(&data.path), 30), data.graded.len()),
    )
}

/// The weights that the variants need, saved or fitted; `None` if they need none and none are given.
fn weights(cli: &Cli, data: &ScoreTable, variants: &[Variant]) -> Result<Option<LayerWeights>> {
    let path = match (&cli.weights, &cli.valid) {
        (Some(path), _) => return layer_weights(path).map(Some),
        (None, Some(path)) => path,
        (None, None) if !variants.iter().any(|variant| variant.needs_weights()) => return Ok(None),
        (None, None) => {
            return Err(usage(
                "--valid FILE or --weights FILE is needed; only variants without weights (e.g. --variants e_score,direct_score) do without",
            ));
        }
    };
    let valid = read_valid(cli, path)?;
    note_about_items(data, &valid)?;
    Ok(Some(fitted(cli, &valid, None)?))
}

/// Says in which items what people gave is no grade.
fn tell_no_grades(table: &ScoreTable) {
    for note in table.unread.notes("are left out") {
        tell(format_args!("note: {}: {note}", table.path.display()));
    }
}

fn read_valid(cli: &Cli, path: &Path) -> Result<ScoreTable> {
    let valid = ScoreTable::read(path).map_err(|error| match &error {
        judge_data::Error::WrongType { column, .. } if column == "orders" => {
            anyhow!("{error}\n  `judge compare` leaves them with --verdict layers and without --apart")
        }
        _ => error.into(),
    })?;
    tell_no_grades(&valid);
    if cli.weights_out.is_some() && valid.origin.is_none() {
        let file = path.display();
        return Err(usage(format!(
            "--weights-out: {file} has no run record beside it, so nothing says which model the weights belong to"
        )));
    }
    let learnt = match cli.layer {
        None => Some(format!("for {} weights", valid.n_layers + 1)),
        Some(LayerChoice::Best) => Some("to choose a layer by".to_owned()),
        Some(LayerChoice::Number(_)) => None,
    };
    if let Some(learnt) = learnt.filter(|_| valid.graded.len() < FEW) {
        let n = valid.graded.len();
        tell(format_args!("note: {n} validation items are few {learnt}; a few hundred are advised"));
    }
    Ok(valid)
}

/// Fits weights without comparing variants; of pairs also says what they are worth.
fn fit_alone(cli: &Cli, valid: &ScoreTable, out: &Path) -> Result<()> {
    let is_of_pairs = valid.format == ScoreFormat::Pairs;
    if cli.variants != "all" || (cli.json.is_some() && !is_of_pairs) {
        return Err(usage("--json and --variants compare variants, which needs --input FILE"));
    }
    if cli.cluster.is_some() && !is_of_pairs {
        return Err(usage("--cluster is for pairs"));
    }
    let worth = is_of_pairs.then(|| Worth::of(valid, &settings(cli, valid), cli.cluster.as_deref())).transpose()?;
    let weights = fitted(cli, valid, worth.as_ref())?;
    print_weights(&weights)?;
    say(format_args!("-> {}", out.display()))?;
    let Some(worth) = worth else { return Ok(()) };
    worth.print()?;
    write_json_if(cli.json.as_deref(), "lager_evaluate", || {
        Ok(json!({
            "program": program("lager_evaluate"), "inputs": [Input::identify(&valid.path)?], "n": valid.graded.len(),
            "weights": weights, "orders": worth.orders(), "readings": worth.json(),
        }))
    })
}

fn settings(cli: &Cli, valid: &ScoreTable) -> LayerWeightFit {
    let settings = cli.settings();
    match valid.format {
        ScoreFormat::Pairs => LayerWeightFit { targets: TargetRule::Shared, ..settings }, // exchanged responses must teach the same
        _ => settings,
    }
}

/// The weights, saved where that is wished. Of pairs it is known which layer is the best.
fn fitted(cli: &Cli, valid: &ScoreTable, worth: Option<&Worth>) -> Result<LayerWeights> {
    let of_layer =
        |layer| Ok::<_, anyhow::Error>(LayerWeights::of_layer(layer, valid.graded.len(), valid.origin_or_file()?)?);
    if let (Some(_), Some(states)) = (cli.layer, cli.states)
        && states != States::All
    {
        return Err(usage("--layer puts weights on all layers: leave --states out"));
    }
    let weights = match (cli.layer, worth) {
        (None, _) => valid.fit(&settings(cli, valid)).map_err(anyhow::Error::from),
        (Some(LayerChoice::Number(layer)), _) => of_layer(layer),
        (Some(LayerChoice::Best), Some(worth)) => of_layer(worth.chosen),
        (Some(LayerChoice::Best), None) => {
            return Err(usage("--layer best is for pairs; of grades give a layer's number"));
        }
    };
    let weights = weights.with_context(|| format!("cannot fit layer weights on {}", valid.path.display()))?;
    if cli.layer.is_none() && is_on_one_layer(&weights) {
        tell(
            "note: the fit diverged: expected weights on several layers, found 1 on one layer and 0 on the others; give a lower --lr",
        );
    }
    if let Some(out) = &cli.weights_out {
        save_new(out, &weights, cli.write.overwrite)?;
    }
    Ok(weights)
}

/// What makes the comparison worth less than it looks.
fn note_about_items(data: &ScoreTable, valid: &ScoreTable) -> Result<()> {
    let seen: HashMap<&ItemId, &Graded> = valid.ids.iter().zip(&valid.graded).collect();
    // A number may be the row's own, which this project gave: it is the same item only where the rest is the same too.
    let is_seen = |(id, item): &(&ItemId, &Graded)| match id {
        ItemId::Integer(_) => seen.get(id) == Some(item),
        ItemId::Text(_) => seen.contains_key(id),
    };
    let both = data.ids.iter().zip(&data.graded).filter(is_seen).count();
    if both > 0 {
        tell(format_args!(
            "note: {both} of {} items are in both files; weights that were fitted on an item flatter its score",
            data.ids.len()
        ));
    } else if let Some((field, shared)) = shared_questions(data, valid)? {
        tell(format_args!(
            "note: {shared} of {} items have the {field:?} of an item that weights were fitted on, which flatters their score: keep the items \
             of one question in the same file",
            data.ids.len()
        ));
    }
    Ok(())
}

/// Says that items share questions, if a field looks like it: intervals take them as independent.
fn note_about_questions(data: &ScoreTable) -> Result<()> {
    let mut others = OtherFields::default();
    see_fields(data, &mut others)?;
    if let Some((field, sentence)) = others.repeated() {
        tell(format_args!("note: {sentence}; `judge agree --cluster {}` allows for it", quoted(&field)));
    }
    Ok(())
}

/// Takes note of the other fields of graded items, and how many these are; of none in files that have no fields but their own.
fn see_fields(table: &ScoreTable, others: &mut OtherFields) -> Result<usize> {
    if table.format != ScoreFormat::Rows {
        return Ok(0);
    }
    let graded: HashSet<&ItemId> = table.ids.iter().collect();
    for row in Rows::open(&table.path)? {
        let row = row?;
        if graded.contains(&row.required::<ItemId>("id", "a string or a whole number")?) {
            others.see(row.into_extra(&["id", "human"]).iter());
        }
    }
    Ok(graded.len())
}

/// How many items are about a question that the other file has too, and the field that says so; `None` if no field does, or none are.
fn shared_questions(data: &ScoreTable, valid: &ScoreTable) -> Result<Option<(String, usize)>> {
    let (mut others, mut rows) = (OtherFields::default(), Vec::new());
    for (table, is_test) in [(valid, false), (data, true)] {
        let seen = see_fields(table, &mut others)?;
        rows.extend(std::iter::repeat_n(is_test, seen));
        if seen == 0 {
            return Ok(None);
        }
    }
    // Where fields contradict each other, or nothing is about a question, there is nothing to say.
    let Ok(together) = others.together(RowGroups::alone(rows.len()), true) else { return Ok(None) };
    let groups = together.groups.group_of_row();
    let learnt: HashSet<usize> =
        groups.iter().zip(&rows).filter(|(_, is_test)| !**is_test).map(|(group, _)| *group).collect();
    let shared = groups.iter().zip(&rows).filter(|(group, is_test)| **is_test && learnt.contains(group)).count();
    Ok(together.by.into_iter().next().filter(|_| shared > 0).map(|field| (field, shared)))
}

fn print(input: &Path, variants: &[Variant], results: &Results) -> Result<()> {
    say(format_args!("{}: {} items scored and graded", input.display(), results.n))?;
    if results.unscored > 0 {
        let reasons: Vec<String> =
            results.unscored_by_reason.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        say(format_args!("unscored: {}", reasons.join(", ")))?;
    }
    if results.without_human > 0 {
        say(format_args!("scored but without a human score: {}", results.without_human))?;
    }
    let named = |variant: &Variant| (variant.as_str(), None, &results.variants[variant.as_str()]);
    say_compared("variant", &variants.iter().map(named).collect::<Vec<_>>())?;
    say("")?;
    results.weights.as_ref().map_or(Ok(()), print_weights)
}

/// Whether all others are 0.
fn is_on_one_layer(weights: &LayerWeights) -> bool {
    weights.weights().contains(&1.0) && weights.weights().len() > 1
}

fn print_weights(weights: &LayerWeights) -> Result<()> {
    let cells = weights.weights().iter().enumerate().map(|(layer, weight)| format!("{layer}: {weight:.3}"));
    let cells: Vec<String> = cells.collect();
    let (states, n) = (weights.states(), weights.n_items());
    let made = match is_on_one_layer(weights) && weights.losses().is_empty() {
        true => "put on one layer".to_owned(), // as --layer does
        false => format!("fitted on {n} items"),
    };
    say(format_args!("layer weights ({states}, {made}): {}", cells.join("  ")))
}
