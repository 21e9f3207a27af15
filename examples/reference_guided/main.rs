//! Grades with a right answer at hand: the judge compares each answer with the row's `reference`.
//!
//! `cargo run --release --example reference_guided [MODEL]`

use std::{env, error::Error};

use judge_core::{
    Prompt, PromptTemplate, Runner, Scale, Verdict,
    lager::{LagerJudge, LagerSettings},
};
use judge_models::{LoadOptions, Model};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");
const PROMPT: &str =
    "Question: {instruction}\nA right answer: {reference}\nAnswer: {response}\nScore from 1 (bad) to 5 (very good).";

fn main() -> Result<(), Box<dyn Error>> {
    let model = env::args().nth(1).unwrap_or(MODEL.into());
    let model = Model::open(&model, &LoadOptions::default())?;

    // `PromptFamily::built_in("single-reference")` is a prompt of this kind for models that follow instructions.
    let template = PromptTemplate::new(Prompt::user(PROMPT))?;
    let settings = LagerSettings::prompt_end(Scale::integers(1, 5)?);
    let judge = LagerJudge::new(LagerSettings { template, opening: String::new(), ..settings }, &model)?;

    let question = "Udo has 9 rolls and drops 6 on the way. How many come home?";
    let reference = "9 - 6 = 3. There are 3 left.";
    let answer = |text| vec![("instruction", question), ("reference", reference), ("response", text)];
    let items = [
        ("right", answer("At first there are 9, then 6 go. 9 - 6 = 3. There are 3 left.")),
        ("wrong", answer("At first there are 9, then 6 go. 9 - 6 = 7. There are 7 left.")),
        ("no reference", vec![("instruction", question), ("response", "There are 3 left.")]),
    ];
    let results = Runner::new(&model, vec![&judge]).collect(items.map(|(name, item)| (name.into(), item)))?;
    for result in results {
        match &result.verdicts[0] {
            Verdict::Scored(score) => println!("{}: {:.2}, likeliest {}", result.id, score.value, score.mode()),
            Verdict::Unscored(why) => println!("{}: no grade, {}", result.id, why.reason),
        }
    }
    Ok(())
}
