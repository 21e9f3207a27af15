//! Conversations: the last answer of each is graded in the light of all turns before it.
//!
//! `cargo run --release --example multi_turn [INPUT [MODEL]]`, with `messages` or ShareGPT's `conversations` in each row

use std::{env, error::Error};

use judge_core::{
    Fields, Runner, Verdict,
    prompted::{PromptFamily, PromptedJudge, VerdictFrom},
};
use judge_data::{Dataset, DatasetOptions, Record};
use judge_models::{LoadOptions, Model};

const INPUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data_selection/conversations.jsonl");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let input = args.next().unwrap_or(INPUT.into());
    let model = Model::open(&args.next().unwrap_or(MODEL.into()), &LoadOptions::default())?;

    let family = PromptFamily::built_in_on("single-multi-turn", Some(5))?;
    let judge = PromptedJudge::new(family, VerdictFrom::Logits, None, &model)?;

    // A record has the turns before the last as `conversation`, the last question as `instruction` and its answer as `response`.
    let records = Dataset::open(input, &DatasetOptions::default())?.collect::<Result<Vec<Record>, _>>()?;
    let items = records.into_iter().map(|record| (record.id().clone(), record));
    for result in Runner::new(&model, vec![&judge]).collect(items)? {
        let turns = result.item.field("conversation").map_or(0, |text| text.split("\n\n").count());
        match &result.verdicts[0] {
            Verdict::Scored(score) => println!("{}, {turns} turns before: {:.2}", result.id, score.value),
            Verdict::Unscored(why) => println!("{}: no grade, {}", result.id, why.reason),
        }
    }
    Ok(())
}
