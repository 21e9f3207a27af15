//! The model that ships with the repository grades held-out answers from its inner layers, beside baselines that read no model.
//!
//! `cargo run --release --example quickstart [-- --json FILE]`

use std::{env, error::Error, fs};

use judge_core::fit::{Graded, LayerWeightFit};
use judge_core::lager::{LagerJudge, LagerSettings, LayerTable, Variant};
use judge_core::{Backbone, Layer, Runner, Scale, settings::settings_from_json};
use judge_data::{Dataset, DatasetOptions, Record, write_atomic};
use judge_metrics::{comparison::rank_agreement, resampling::Bootstrap};
use judge_models::{LoadOptions, Model};
use judge_probe::{Estimator, FittedEstimator, Matrix, Pipeline, Ridge, StandardScaler, surface_features};
use serde_json::{Value, json};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");
const ROWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows");
const VARIANTS: [(&str, Variant); 4] = [
    ("direct", Variant::LastMode), // the likeliest grade of the last layer, as a model that writes it
    ("expected", Variant::LastExpected), // the expected grade of the last layer
    ("lager_wo", Variant::MeanExpected), // the same of the mean of all layers
    ("lager_w", Variant::WeightedExpected), // the same of all layers with fitted weights
];

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
    let scale = &judge.settings().scale;

    let (_, graded, features) = read(&model, &judge, "validation")?;
    let human: Vec<f64> = graded.iter().map(|row| row.human).collect();
    let weights = LayerWeightFit { epochs: 5, ..LayerWeightFit::paper() }.fit(&graded, judge.origin())?;
    let surface = Pipeline { transformer: StandardScaler::default(), estimator: Ridge::default() };
    let surface = surface.fit(&features, &human)?;
    let by_layer = weights.weights().iter().enumerate();
    let by_layer: Value = by_layer.map(|(layer, weight)| json!({"layer": layer, "weight": weight})).collect();
    let mut figures = json!({"model": model.info(), "layer_weights": by_layer});
    for split in ["test", "shifted"] {
        let (unscored, graded, features) = read(&model, &judge, split)?;
        let human: Vec<f64> = graded.iter().map(|row| row.human).collect();
        let scores = |score: &dyn Fn(&LayerTable) -> Result<f64, judge_core::Error>| {
            graded.iter().map(|row| score(&row.table)).collect::<Result<Vec<f64>, _>>()
        };
        let agreement =
            |scores: &[f64]| rank_agreement(scores, &human, &Bootstrap { resamples: 1_000, ..Bootstrap::default() });
        let mut named = Vec::new();
        for (name, variant) in VARIANTS {
            named.push(("variants", name, scores(&|table| Ok(weights.score(variant, table, scale)?.score))?));
        }
        for (name, feature) in [("length", 1), ("word_overlap", 7)] {
            named.push(("baselines", name, features.rows().map(|row| row[feature]).collect()));
        }
        named.push(("baselines", "surface_ridge", surface.predict(&features)?));

        println!("\n{split}: {} rows, {unscored} unscored; Spearman with people [95 %]", graded.len());
        let mut found = json!({"n": graded.len() + unscored, "unscored": unscored});
        for (group, name, scores) in named {
            let agreement = agreement(&scores)?;
            println!("  {name:<14} {:#}", agreement.spearman);
            found[group][name] = json!(agreement);
        }
        let mut per_layer = Vec::new();
        for layer in (0..=weights.origin().n_layers).map(Layer) {
            let direct = agreement(&scores(&|table| Ok(table.distribution(layer, scale)?.mode().value))?)?;
            let expected = agreement(&scores(&|table| Ok(table.distribution(layer, scale)?.expected()))?)?;
            per_layer.push(json!({"layer": layer, "direct": direct, "expected": expected}));
        }
        found["per_layer"] = json!(per_layer);
        figures["splits"][split] = found;
    }
    println!("\nfitted layer weights: {:.3?}", weights.weights());
    println!("With rows and a model of your own: cargo run --release --example lager VALIDATION TEST MODEL");
    if let Some(file) = json_file {
        write_atomic(file, &serde_json::to_vec_pretty(&figures)?)?;
    }
    Ok(())
}

/// How many rows of a split could not be scored; of the others the label logits beside what people say, and what their texts look like.
fn read(model: &Model, judge: &LagerJudge, split: &str) -> Result<(usize, Vec<Graded>, Matrix), Box<dyn Error>> {
    let rows = Dataset::open(format!("{ROWS}/{split}.jsonl"), &DatasetOptions::default())?;
    let rows = rows.collect::<Result<Vec<Record>, _>>()?.into_iter();
    let results = Runner::new(model, vec![judge]).collect(rows.map(|row| (row.id().clone(), row)))?;
    let (mut graded, mut questions, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    for result in &results {
        if let (Record::Graded(row), Ok(table)) = (&result.item, judge.table(&result.rounds(0))) {
            graded.push(Graded { table, human: row.human().ok_or("a row without human scores")? });
            questions.push(&row.instruction);
            answers.push(&row.response);
        }
    }
    Ok((results.len() - graded.len(), graded, surface_features(&questions, &answers)?))
}
