//! A file is judged so that a kill costs nothing: the next start judges the rows that are missing, to the same bytes.
//!
//! `cargo run --release --example resume [OUTPUT [INPUT [MODEL]]]`

use std::{env, error::Error, ops::ControlFlow, process};

use judge_core::{
    Prompt, PromptTemplate, Scale,
    lager::{LagerJudge, LagerSettings},
};
use judge_data::{Job, Program};
use judge_models::{LoadOptions, Model};

const INPUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows/test.jsonl");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");
const PROMPT: &str = "Question: {instruction}\nAnswer: {response}\nScore from 1 (bad) to 5 (very good).";

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let scratch = env::temp_dir().join(format!("scores-{}.jsonl", process::id()));
    let output = args.next().map_or(scratch, Into::into);
    let input = args.next().unwrap_or(INPUT.into());
    let model = Model::open(&args.next().unwrap_or(MODEL.into()), &LoadOptions::default())?;

    let template = PromptTemplate::new(Prompt::user(PROMPT))?;
    let settings = LagerSettings::prompt_end(Scale::integers(1, 5)?);
    let judge = LagerJudge::new(LagerSettings { template, opening: String::new(), ..settings }, &model)?;

    // Ended after 100 rows, as by a signal; a kill that leaves half a row behind is no worse. The second run judges the others,
    // and the third finds the output complete, made by the same judge of the same rows.
    let job = Job::open(&input, &output, Program::new("resume", env!("CARGO_PKG_VERSION")))?;
    for stop_after in [Some(100), None, None] {
        let mut judged = 0;
        let counts = job.judge(&model, &judge, |_, _| {
            judged += 1;
            if Some(judged) == stop_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        println!("{judged} more rows judged; {} scored, {} not", counts.scored, counts.rows() - counts.scored);
    }
    Ok(())
}
