//! A panel: three judges with a rubric each, asked about the same answers, and one score of the three.
//!
//! `cargo run --release --example panel [INPUT [MODEL]]`

use std::{env, error::Error};

use judge_core::{
    Prompt, PromptTemplate, Runner, Scale,
    combine::{Panel, PanelRule},
    lager::{LagerJudge, LagerSettings},
    runner::RunEvent,
};
use judge_data::{Dataset, DatasetOptions, Record};
use judge_metrics::correlation::spearman;
use judge_models::{LoadOptions, Model};

const INPUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows/test.jsonl");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");
const RUBRICS: [&str; 3] = [
    "From 1 to 5, is the answer correct, to the point and well written?",
    "Is it right and well put? Use 5 for a perfect answer, 1 for a bad one.",
    "Give a number from 1 to 5, where 5 is the best.",
];

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let input = args.next().unwrap_or(INPUT.into());
    let model = Model::open(&args.next().unwrap_or(MODEL.into()), &LoadOptions::default())?;

    let member = |rubric: &str| -> Result<LagerJudge, Box<dyn Error>> {
        let prompt = format!("Question: {{instruction}}\nAnswer: {{response}}\n{rubric}");
        let template = PromptTemplate::new(Prompt::user(prompt))?;
        let settings = LagerSettings::prompt_end(Scale::integers(1, 5)?);
        Ok(LagerJudge::new(LagerSettings { template, opening: String::new(), ..settings }, &model)?)
    };
    let members = RUBRICS.iter().map(|rubric| member(rubric)).collect::<Result<Vec<_>, _>>()?;
    let panel = Panel::new("three rubrics", members, PanelRule::Mean)?;

    // The rubric comes last in each prompt, so that the three share the work for all that is before it.
    let records = Dataset::open(input, &DatasetOptions::default())?.collect::<Result<Vec<Record>, _>>()?;
    let items = records.into_iter().map(|record| (record.id().clone(), record));
    let (mut scores, mut members, mut human) = (Vec::new(), vec![Vec::new(); RUBRICS.len()], Vec::new());
    Runner::new(&model, vec![&panel]).run(items, |event| {
        let RunEvent::Item(result) = event else { return };
        let (Some(score), Some(people)) = (result.verdicts[0].score(), result.item.human()) else { return };
        scores.push(score.value);
        human.push(people);
        for (scores, part) in members.iter_mut().zip(&score.parts) {
            scores.extend(part.verdict.value());
        }
    })?;
    for (rubric, scores) in RUBRICS.iter().zip(&members) {
        println!("{:.3}  {rubric}", spearman(scores, &human)?.estimate);
    }
    println!("{:.3}  their mean (Spearman with people on {} rows)", spearman(&scores, &human)?.estimate, scores.len());
    Ok(())
}
