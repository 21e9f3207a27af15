//! Which of two answers is better? A judge that compares them, asked in both orders, and one that grades each by itself.
//!
//! `cargo run --release --example pairwise [INPUT [MODEL]]`
//!
//! The model that ships here has learnt to grade and not to compare: expect half of the pairs of the first judge.

use std::{env, error::Error};

use judge_core::{
    Judge, Prompt, PromptTemplate,
    combine::{GradedPair, OrderPolicy},
    lager::{LagerJudge, LagerSettings},
    prompted::PromptFamily,
};
use judge_core::{
    Runner, Scale,
    combine::Swapped,
    prompted::{PromptedJudge, VerdictFrom},
};
use judge_data::{Dataset, DatasetOptions, Record};
use judge_metrics::Proportion;
use judge_models::{LoadOptions, Model};

const INPUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows/pairs.jsonl");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let input = args.next().unwrap_or(INPUT.into());
    let model = Model::open(&args.next().unwrap_or(MODEL.into()), &LoadOptions::default())?;

    // "[[A]]" or "[[B]]": their probabilities where the reply says which, averaged over both orders of the answers.
    let family = PromptFamily::built_in("pair-forced")?;
    let compared = PromptedJudge::new(family, VerdictFrom::Logits, None, &model)?;
    let compared = Swapped::new(compared, OrderPolicy::Average);

    // The chance that a grade drawn for A is above one drawn for B. Neither answer is seen beside the other.
    let prompt = "Question: {instruction}\nAnswer: {response}\nScore from 1 (bad) to 5 (very good).";
    let template = PromptTemplate::new(Prompt::user(prompt))?;
    let settings = LagerSettings::prompt_end(Scale::integers(1, 5)?);
    let graded = LagerJudge::new(LagerSettings { template, opening: String::new(), ..settings }, &model)?;
    let graded = GradedPair::new(graded);

    let records = Dataset::open(input, &DatasetOptions::default())?.collect::<Result<Vec<Record>, _>>()?;
    let items = records.into_iter().map(|record| (record.id().clone(), record));
    let judges: Vec<&dyn Judge<Record>> = vec![&compared, &graded];
    let results = Runner::new(&model, judges).collect(items)?; // one run, equal prompts read once

    for (judge, name) in ["compared in both orders", "graded one by one"].into_iter().enumerate() {
        let preferences = results.iter().filter_map(|r| Some((r.verdicts[judge].value()?, r.item.human()?)));
        let agrees: Vec<bool> = preferences.map(|(judge, human)| (judge > 0.5) == (human > 0.5)).collect();
        let (share, sure) = (Proportion::of(&agrees), Proportion::of(&agrees).wilson(0.95)?);
        println!("{name}: agrees with people on {:.2} [{:.2}, {:.2}]", share.estimate()?, sure.low, sure.high);
    }
    let first = &results[0];
    println!("the first pair, preference for A: {:.2}", first.verdicts[1].value().ok_or("no preference")?);
    Ok(())
}
