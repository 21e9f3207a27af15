//! LAGER: the label logits of every layer, combined by weights that are fitted on rows that people graded.
//!
//! `cargo run --release --example lager [VALIDATION TEST [MODEL]]`

use std::{env, error::Error, fs, path::Path};

use judge_core::settings::settings_from_json;
use judge_core::{
    Runner, Scale,
    fit::{Graded, LayerWeightFit},
    lager::{LagerJudge, LagerSettings, LayerTable, Variant},
};
use judge_data::{Dataset, DatasetOptions, Record};
use judge_metrics::correlation::spearman;
use judge_models::{LoadOptions, Model};

const VALIDATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows/validation.jsonl");
const TEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows/test.jsonl");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let mut argument = |default: &str| args.next().unwrap_or(default.into());
    let (validation, test, folder) = (argument(VALIDATION), argument(TEST), argument(MODEL));
    let model = Model::open(&folder, &LoadOptions::default())?;
    let judge = LagerJudge::new(settings(&folder)?, &model)?;

    let graded: Vec<Graded> =
        read(&model, &judge, &validation)?.into_iter().map(|(table, human)| Graded { table, human }).collect();
    // The paper's settings go through the rows once; a few hundred rows are too few for that.
    let weights = LayerWeightFit { epochs: 5, ..LayerWeightFit::paper() }.fit(&graded, judge.origin())?;
    println!("weights of layers 0 to {}: {:.3?}", weights.origin().n_layers, weights.weights());

    let (tables, human): (Vec<LayerTable>, Vec<f64>) = read(&model, &judge, &test)?.into_iter().unzip();
    println!("Spearman with people on {} rows:", human.len());
    for variant in [Variant::LastMode, Variant::LastExpected, Variant::MeanExpected, Variant::WeightedExpected] {
        let scores = tables.iter().map(|table| Ok(weights.score(variant, table, &judge.settings().scale)?.score));
        let scores = scores.collect::<Result<Vec<f64>, judge_core::Error>>()?;
        println!("{:<14} {:.3}", variant.as_str(), spearman(&scores, &human)?.estimate);
    }
    // From here on the weights are part of a judge, whose score is the weighted one.
    let fitted = LagerJudge::new(LagerSettings { weights: Some(weights), ..judge.settings().clone() }, &model)?;
    let item = [
        ("instruction", "Hugo has 3 rolls and gets 5 more. How many rolls does Hugo have now?"),
        ("response", "The numbers are 3 and 5. 3 + 5 = 8. It is 8 in all."),
    ];
    let results = Runner::new(&model, vec![&fitted]).collect([("rolls".into(), item)])?;
    println!("one answer more: {:.2}", results[0].verdicts[0].value().ok_or("no score")?);
    Ok(())
}

/// The prompt that lies beside a model, or the built-in one.
fn settings(folder: &str) -> Result<LagerSettings, Box<dyn Error>> {
    let settings = LagerSettings::prompt_end(Scale::integers(1, 5)?);
    let own = Path::new(folder).join("judge_template.json");
    if !own.exists() {
        return Ok(settings);
    }
    let template = settings_from_json(&fs::read_to_string(own)?)?;
    Ok(LagerSettings { template, opening: String::new(), ..settings })
}

/// The label logits `[layers, n_scores]` of each row that was read, beside the mean of what people gave it.
fn read(model: &Model, judge: &LagerJudge, rows: &str) -> Result<Vec<(LayerTable, f64)>, Box<dyn Error>> {
    let records = Dataset::open(rows, &DatasetOptions::default())?.collect::<Result<Vec<Record>, _>>()?;
    let items = records.into_iter().map(|record| (record.id().clone(), record));
    let mut found = Vec::new();
    for result in Runner::new(model, vec![judge]).collect(items)? {
        match (judge.table(&result.rounds(0)), result.item.human()) {
            (Ok(table), Some(human)) => found.push((table, human)),
            (Ok(_), None) => eprintln!("{}: no human score", result.id),
            (Err(why), _) => eprintln!("{}: {why}", result.id),
        }
    }
    Ok(found)
}
