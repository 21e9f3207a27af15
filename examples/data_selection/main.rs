//! The best of a set of instruction data: each example is graded on seven aspects, and the highest means are kept.
//!
//! `cargo run --release --example data_selection [INPUT [SHARE [MODEL]]]`

use std::{env, error::Error, fs};

use judge_core::{
    Prompt, PromptTemplate, Runner, Scale,
    combine::{Panel, PanelRule},
    lager::{LagerJudge, LagerSettings},
};
use judge_data::{Dataset, DatasetOptions, Record};
use judge_models::{LoadOptions, Model};
use serde_json::Value;

const INPUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data_selection/examples.jsonl");
const RUBRICS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/judge/src/rows/select/rubrics.json");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let input = args.next().unwrap_or(INPUT.into());
    let share: f64 = args.next().as_deref().unwrap_or("0.25").parse()?;
    let model = Model::open(&args.next().unwrap_or(MODEL.into()), &LoadOptions::default())?;

    // One judge for each aspect. The rubric is the end of the prompt: what comes before it is read once for all seven.
    let mut aspects = Vec::new();
    for rubric in serde_json::from_str::<Vec<Value>>(&fs::read_to_string(RUBRICS)?)? {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let levels = rubric["levels"].as_array().ok_or("a rubric without levels")?;
        let levels = levels.iter().enumerate().map(|(index, level)| format!("\n{}: {}", index + 1, text(level)));
        let rubric = text(&rubric["question"]) + &levels.collect::<String>();
        let prompt = format!("Request: {{instruction}}\nResponse: {{response}}\n\n{rubric}\nThe number alone:");
        let template = PromptTemplate::new(Prompt::user(prompt))?;
        let settings = LagerSettings::prompt_end(Scale::integers(1, 9)?);
        aspects.push(LagerJudge::new(LagerSettings { template, opening: String::new(), ..settings }, &model)?);
    }
    let panel = Panel::new("seven aspects", aspects, PanelRule::Mean)?;

    let records = Dataset::open(input, &DatasetOptions::default())?.collect::<Result<Vec<Record>, _>>()?;
    let items = records.into_iter().map(|record| (record.id().clone(), record));
    let results = Runner::new(&model, vec![&panel]).collect(items)?;

    // A row without a score, such as one beyond the model's context, is never chosen.
    let mut scored: Vec<_> = results.iter().filter_map(|r| Some((r.verdicts[0].value()?, &r.id))).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mean = |rows: &[(f64, _)]| rows.iter().map(|(score, _)| score).sum::<f64>() / rows.len() as f64;
    let chosen = &scored[..(scored.len() as f64 * share).ceil() as usize];
    println!("{} of {} rows chosen, {} without a score", chosen.len(), results.len(), results.len() - scored.len());
    println!("mean score: {:.3} of the chosen, {:.3} of all", mean(chosen), mean(&scored));
    for (score, id) in chosen {
        println!("{id}: {score:.3}");
    }
    Ok(())
}
