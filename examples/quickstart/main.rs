//! The model that ships with the repository grades held-out answers from its inner layers, beside baselines that read no model.
//!
//! `cargo run --release --example quickstart [-- --json FILE]`

use std::{env, error::Error, fs};

use judge_core::fit::{Graded, LayerWeightFit};
use judge_core::lager::{LagerJudge, LagerSettings, LayerTable, LayerWeights, Variant};
use judge_core::{Backbone, Layer, Runner, Scale, settings::settings_from_json};
use judge_data::{Dataset, DatasetOptions, Record, write_atomic};
use judge_metrics::{comparison::rank_agreement, resampling::Bootstrap, resampling::BootstrapMethod};
use judge_models::{LoadOptions, Model};
use judge_probe::{Estimator, FittedEstimator, Pipeline, Ridge, StandardScaler, surface_features};
use serde_json::{Map, Value, json};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");
const ROWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows");
const BOOTSTRAP: Bootstrap = Bootstrap { resamples: 1_000, level: 0.95, seed: 0, method: BootstrapMethod::Percentile };
const VARIANTS: [(&str, Variant); 4] = [
    ("direct", Variant::LastMode), // the likeliest grade of the last layer, as a model that writes it
    ("expected", Variant::LastExpected), // the expected grade of the last layer
    ("lager_wo", Variant::MeanExpected), // the same of the mean of all layers
    ("lager_w", Variant::WeightedExpected), // the same of all layers with fitted weights
];

/// The rows of a split that could be scored: texts, what people say, and the label logits of every layer.
#[derive(Default)]
struct Split {
    questions: Vec<String>,
    answers: Vec<String>,
    human: Vec<f64>,
    tables: Vec<LayerTable>,
    unscored: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let json_file = match &env::args().skip(1).collect::<Vec<_>>()[..] {
        [] => None,
        [flag, file] if flag == "--json" => Some(file.clone()),
        _ => return Err("usage: quickstart [--json FILE]".into()),
    };
    let model = Model::load(MODEL, &LoadOptions::default())?;
    let template = settings_from_json(&fs::read_to_string(format!("{MODEL}/judge_template.json"))?)?;
    let settings = LagerSettings::prompt_end(Scale::integers(1, 5)?); // this model's reply is the grade, nothing opens it
    let judge = LagerJudge::new(LagerSettings { template, opening: String::new(), ..settings }, &model)?;

    let validation = read(&model, &judge, "validation")?;
    let pairs = validation.tables.iter().zip(&validation.human);
    let graded: Vec<Graded> = pairs.map(|(table, &human)| Graded { table: table.clone(), human }).collect();
    let weights = LayerWeightFit { epochs: 5, ..LayerWeightFit::paper() }.fit(&graded, judge.origin())?;
    let surface = Pipeline { transformer: StandardScaler::default(), estimator: Ridge::default() }
        .fit(&surface_features(&validation.questions, &validation.answers)?, &validation.human)?;
    let mut splits = Map::new();
    for name in ["test", "shifted"] {
        let split = read(&model, &judge, name)?;
        let features = surface_features(&split.questions, &split.answers)?;
        let column = |index: usize| features.rows().map(|row| row[index]).collect();
        let baselines: [(&str, Vec<f64>); 3] =
            [("length", column(1)), ("word_overlap", column(7)), ("surface_ridge", surface.predict(&features)?)];
        println!("\n{name}: {} rows, {} unscored; Spearman with people [95 %]", split.tables.len(), split.unscored);
        splits.insert(name.into(), evaluate(&split, &baselines, &weights)?);
    }
    let by_layer = weights.weights().iter().enumerate();
    let layer_weights: Vec<Value> = by_layer.map(|(layer, weight)| json!({"layer": layer, "weight": weight})).collect();
    println!("\nfitted layer weights: {:.3?}", weights.weights());
    println!("With rows and a model of your own: cargo run --release --example lager VALIDATION TEST MODEL");
    if let Some(file) = json_file {
        let results = json!({"model": model.info(), "layer_weights": layer_weights, "splits": splits});
        write_atomic(file, &serde_json::to_vec_pretty(&results)?)?;
    }
    Ok(())
}

/// Reads the label logits of every row of a split; what cannot be scored is counted.
fn read(model: &Model, judge: &LagerJudge, split: &str) -> Result<Split, Box<dyn Error>> {
    let rows = Dataset::open(format!("{ROWS}/{split}.jsonl"), &DatasetOptions::default())?;
    let records = rows.collect::<Result<Vec<Record>, _>>()?.into_iter();
    let mut found = Split::default();
    for result in Runner::new(model, vec![judge]).collect(records.map(|record| (record.id().clone(), record)))? {
        let (Record::Graded(row), Ok(table)) = (&result.item, judge.table(&result.rounds(0))) else {
            found.unscored += 1;
            continue;
        };
        found.human.push(row.human().ok_or("a row without human scores")?);
        found.questions.push(row.instruction.clone());
        found.answers.push(row.response.clone());
        found.tables.push(table);
    }
    Ok(found)
}

/// How the scores of a split, the baselines and each layer alone agree with people.
fn evaluate(split: &Split, baselines: &[(&str, Vec<f64>)], weights: &LayerWeights) -> Result<Value, Box<dyn Error>> {
    let agreement = |scores: &[f64]| rank_agreement(scores, &split.human, &BOOTSTRAP);
    let said = |name: &str, scores: &[f64]| -> Result<Value, Box<dyn Error>> {
        let found = agreement(scores)?;
        println!("  {name:<14} {:#}", found.spearman);
        Ok(json!(found))
    };
    let (mut variants, mut others, mut per_layer) = (Map::new(), Map::new(), Vec::new());
    let scale = &weights.origin().scale;
    for (name, variant) in VARIANTS {
        let scores = split.tables.iter().map(|table| Ok(weights.score(variant, table, scale)?.score));
        variants.insert(name.into(), said(name, &scores.collect::<Result<Vec<_>, Box<dyn Error>>>()?)?);
    }
    for (name, scores) in baselines {
        others.insert((*name).into(), said(name, scores)?);
    }
    for layer in (0..=weights.origin().n_layers).map(Layer) {
        let distributions = split.tables.iter().map(|table| table.distribution(layer, scale));
        let distributions = distributions.collect::<Result<Vec<_>, _>>()?;
        let direct: Vec<f64> = distributions.iter().map(|grades| grades.mode().value).collect();
        let expected: Vec<f64> = distributions.iter().map(|grades| grades.expected()).collect();
        per_layer.push(json!({"layer": layer, "direct": agreement(&direct)?, "expected": agreement(&expected)?}));
    }
    let n = split.tables.len() + split.unscored;
    Ok(json!({"n": n, "unscored": split.unscored, "variants": variants, "baselines": others, "per_layer": per_layer}))
}
