//! A judge tuned on grades of your own: a low-rank adapter (LoRA) beside a frozen model, measured on rows that it has not seen.
//!
//! `cargo run --release -p tune [ROWS [MODEL [ADAPTER]]]`
//!
//! The grades here stand for those of a desk that wants short answers, which the embedded model was not made for.

use std::{env, error::Error, ops::ControlFlow, path::Path};

use judge_core::{
    Backbone, Fields, Prompt, PromptTemplate, Runner, Scale,
    lager::{LagerJudge, LagerSettings},
};
use judge_data::{Dataset, DatasetOptions, Record};
use judge_metrics::correlation::spearman;
use judge_models::train::{
    Blocks, Labels, Lora, Mark, MarkExample, ReadFrom, Run, Schedule, TrainSettings, Trainer, Tuning,
};
use judge_models::{LoadOptions, Model};

const ROWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/rows/validation.jsonl");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/tiny-judge");
const PROMPT: &str = "Question: {instruction}\nAnswer: {response}\nScore from 1 (bad) to 5 (very good).";

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let mut argument = |default: &str| args.next().unwrap_or(default.into());
    let (rows, folder, adapter) = (argument(ROWS), argument(MODEL), argument("adapter"));
    let rows = Dataset::open(rows, &DatasetOptions::default())?.collect::<Result<Vec<Record>, _>>()?;
    let (learned, held_out) = rows.split_at(rows.len() * 2 / 3);
    let model = Model::load(Path::new(&folder), &LoadOptions::default())?;
    let template = PromptTemplate::new(Prompt::user(PROMPT))?;
    let scale = Scale::integers(1, 5)?;
    println!("frozen: Spearman with the desk {:.2}", agreement(&model, &template, &scale, held_out)?);

    // Each grade is a probability of 1 for its label, where the judge reads: at the prompt's end.
    let examples = learned.iter().map(|row| {
        let prompt = model.tokens(&template.fill(row)?)?;
        let target = scale.values().map(|value| if value == grade(row) { 1.0 } else { 0.0 }).collect();
        Ok(MarkExample { prompt, target })
    });
    let examples = examples.collect::<Result<Vec<_>, Box<dyn Error>>>()?;
    let tokens = scale.labels().map(|label| model.label_token(label)).collect::<Result<_, _>>()?;
    let labels = Labels { tokens, values: scale.values().collect(), from: ReadFrom::default() };
    let batches: Vec<_> = examples.chunks(8).collect();
    let settings = TrainSettings {
        tuning: Tuning::Lora(Lora { blocks: Blocks::Last(2), ..Lora::default() }),
        schedule: Schedule { peak: 2e-3, warmup: 2, steps: 2 * batches.len() as u64, ..Schedule::default() },
        ..TrainSettings::default()
    };
    let mut trainer = Trainer::new(Path::new(&folder), Mark { labels, alpha: 1.0 }, settings)?;
    // With `checkpoint` and `states` a run that is killed resumes, and lower blocks run once.
    let run = Run { checkpoint: None, every: batches.len() as u64 };
    let batch = |step: u64| Ok::<_, Box<dyn Error>>(batches[step as usize % batches.len()].to_vec());
    trainer.run(&run, batch, |_, _| Ok(ControlFlow::Continue(())))?;
    trainer.write(Path::new(&adapter), None)?;

    // The adapter's folder is PEFT's; the judge that reads the tuned model is the one from before.
    let options = LoadOptions { adapters: vec![adapter.into()], ..LoadOptions::default() };
    let tuned = Model::load(Path::new(&folder), &options)?;
    let (n, found) = (examples.len(), agreement(&tuned, &template, &scale, held_out)?);
    println!("tuned on {n} grades: {found:.2}, on {} other rows", held_out.len());
    Ok(())
}

/// The desk's grade: 5 for an answer of a few words, 1 for a long one.
fn grade(row: &Record) -> f64 {
    let words = row.field("response").map_or(0, |text| text.split_whitespace().count());
    (6.0 - (words as f64 / 4.0).ceil()).clamp(1.0, 5.0)
}

/// Spearman's correlation of the expected grades with the desk's.
fn agreement(model: &Model, template: &PromptTemplate, scale: &Scale, rows: &[Record]) -> Result<f64, Box<dyn Error>> {
    let settings = LagerSettings::prompt_end(scale.clone());
    let settings = LagerSettings { template: template.clone(), opening: String::new(), ..settings };
    let judge = LagerJudge::new(settings, model)?;
    let results = Runner::new(model, vec![&judge]).collect(rows.iter().map(|row| (row.id().clone(), row.clone())))?;
    let judged = results.iter().filter_map(|result| Some((result.verdicts[0].score()?.value, grade(&result.item))));
    let (scores, grades): (Vec<f64>, Vec<f64>) = judged.unzip();
    Ok(spearman(&scores, &grades)?.estimate)
}
