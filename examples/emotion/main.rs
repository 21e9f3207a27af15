//! How strongly does a character of a dialogue feel an emotion, from 1 to 9? LAGER's experiment on another task.
//!
//! `cargo run --release --example emotion [INPUT [MODEL]]`

use std::{env, error::Error};

use judge_core::{
    Prompt, PromptTemplate, Runner, Scale,
    lager::{LagerJudge, LagerSettings, Variant},
};
use judge_data::{Dataset, DatasetOptions, Record};
use judge_metrics::{correlation::spearman, prediction::bias};
use judge_models::{LoadOptions, Model};

const INPUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/emotion/dialogues.jsonl");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");
const PROMPT: &str = "Read this dialogue.\n\n{dialogue}\n\n\
    How strongly does {human} feel this emotion at its end: {emotion}? Answer with a number from 1 (not at all) to 9 (overwhelmingly).";

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let input = args.next().unwrap_or(INPUT.into());
    let model = Model::open(&args.next().unwrap_or(MODEL.into()), &LoadOptions::default())?;

    // Both read the same logits, so they share each pass: the last layer, and the mean of all.
    let judge = |variant| -> Result<LagerJudge, Box<dyn Error>> {
        let template = PromptTemplate::new(Prompt::user(PROMPT))?;
        let settings = LagerSettings::prompt_end(Scale::integers(1, 9)?);
        Ok(LagerJudge::new(LagerSettings { template, variant: Some(variant), ..settings }, &model)?)
    };
    let (last, mean) = (judge(Variant::LastExpected)?, judge(Variant::MeanExpected)?);

    let records = Dataset::open(input, &DatasetOptions::default())?.collect::<Result<Vec<Record>, _>>()?;
    let items = records.into_iter().map(|record| (record.id().clone(), record));
    let results = Runner::new(&model, vec![&last, &mean]).collect(items)?;

    for result in results.iter().take(4) {
        let (Record::Emotion(item), Some(score)) = (&result.item, result.verdicts[0].value()) else { continue };
        let people = result.item.human().map_or_else(|| "nothing".to_owned(), |human| human.to_string());
        println!("{}, {}: {score:.2}, people say {people}", item.character, item.emotion);
    }
    for (index, judge) in [&last, &mean].into_iter().enumerate() {
        let scored = results.iter().filter_map(|r| Some((r.verdicts[index].value()?, r.item.human()?)));
        let (scores, human): (Vec<f64>, Vec<f64>) = scored.unzip();
        let (rho, above) = (spearman(&scores, &human)?, bias(&human, &scores)?);
        let sure = rho.interval(0.95)?;
        let name = judge.variant().as_str();
        println!("{name:<9} Spearman {:.3} [{:.3}, {:.3}]", rho.estimate, sure.low, sure.high);
        println!("{name:<9} mean score {:+.2} from the mean of people's", above.estimate);
    }
    Ok(())
}
