//! Scores on the human scale: a calibrator is fitted on graded rows, and each new score comes with an interval.
//!
//! `cargo run --release --example calibrated [VALIDATION TEST [MODEL]]`

use std::{env, error::Error};

use judge_core::{
    Judge, Prompt, PromptTemplate, Runner, Scale, Score,
    combine::Calibrated,
    lager::{LagerJudge, LagerSettings},
    verdict::Calibration,
};
use judge_data::{Dataset, DatasetOptions, Record};
use judge_metrics::{Proportion, calibration::Calibrator};
use judge_models::{LoadOptions, Model};

const VALIDATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows/validation.jsonl");
const TEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows/test.jsonl");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");
const PROMPT: &str = "Question: {instruction}\nAnswer: {response}\nScore from 1 (bad) to 5 (very good).";

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let mut argument = |default: &str| args.next().unwrap_or(default.into());
    let (validation, test, model) = (argument(VALIDATION), argument(TEST), argument(MODEL));
    let model = Model::open(&model, &LoadOptions::default())?;

    let template = PromptTemplate::new(Prompt::user(PROMPT))?;
    let settings = LagerSettings::prompt_end(Scale::integers(1, 5)?);
    let judge = LagerJudge::new(LagerSettings { template, opening: String::new(), ..settings }, &model)?;

    // What people say of answers with each score of this judge.
    let graded = scored(&model, &judge, &validation)?;
    let (scores, human): (Vec<f64>, Vec<f64>) = graded.iter().map(|(score, human)| (score.value, *human)).unzip();
    let fitted = Calibrator { range: Some([1.0, 5.0]), ..Calibrator::default() }.fit(&scores, &human)?;

    // The same judge, whose scores carry it.
    let judge = Calibrated::new(judge, |score: f64| {
        let found = fitted.calibrate(score)?;
        let (low, high, level) = (found.interval.low, found.interval.high, found.interval.level);
        Ok::<_, judge_metrics::Error>(Calibration { value: found.value, low, high, level })
    });
    let (mut inside, mut width) = (Vec::new(), 0.0);
    for (row, (score, human)) in scored(&model, &judge, &test)?.into_iter().enumerate() {
        let Calibration { value, low, high, .. } = score.calibrated.ok_or("not calibrated")?;
        if row == 0 {
            println!("score {:.2}: people say {value:.2}, between {low:.2} and {high:.2}", score.value);
        }
        inside.push((low..=high).contains(&human));
        width += high - low;
    }
    let (covered, rows) = (Proportion::of(&inside).estimate()?, inside.len());
    println!("{covered:.3} of {rows} human scores lie in their interval (aim {:.2})", fitted.level());
    println!("mean width: {:.2}", width / rows as f64);
    Ok(())
}

/// The score of each row that has one, and the mean of what people gave it.
fn scored(model: &Model, judge: &dyn Judge<Record>, rows: &str) -> Result<Vec<(Score, f64)>, Box<dyn Error>> {
    let records = Dataset::open(rows, &DatasetOptions::default())?.collect::<Result<Vec<Record>, _>>()?;
    let items = records.into_iter().map(|record| (record.id().clone(), record));
    let results = Runner::new(model, vec![judge]).collect(items)?;
    Ok(results.iter().filter_map(|r| Some((r.verdicts[0].score()?.clone(), r.item.human()?))).collect())
}
