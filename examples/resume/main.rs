//! A file is judged so that a kill costs nothing: the next start judges the rows that are missing, to the same bytes.
//!
//! `cargo run --release --example resume [OUTPUT [INPUT [MODEL]]]`

use std::{env, error::Error, ops::ControlFlow, path::Path, process};

use judge_core::{
    Backbone, Judge, Prompt, PromptTemplate, Scale,
    lager::{LagerJudge, LagerSettings},
    runner::RunEvent,
};
use judge_data::{Carry, Dataset, DatasetOptions, InputFile, MadeBy, Numbered, Opened, Program};
use judge_data::{Resolved, RunPlan, judge_rows, score_row};
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

    // Ended after 100 rows, as by a signal; a kill that leaves half a row behind is no worse.
    judge_file(&model, &judge, &input, &output, Some(100))?;
    // The same command again: these rows are not judged twice.
    judge_file(&model, &judge, &input, &output, None)?;
    // And again: the output is complete, and made by the same judge of the same rows.
    judge_file(&model, &judge, &input, &output, None)
}

fn judge_file(
    model: &Model,
    judge: &LagerJudge,
    input: &str,
    output: &Path,
    stop_after: Option<usize>,
) -> Result<(), Box<dyn Error>> {
    let records = || Dataset::open(input, &DatasetOptions::default());
    let rows = records()?.count();
    let made_by = Resolved::of(model.info(), [judge as &dyn Judge<Numbered>])?;
    let mut plan = RunPlan::new(output, rows, Program::new("resume", env!("CARGO_PKG_VERSION")));
    plan.inputs = vec![InputFile::of(input)?.with_rows(rows)];
    plan.made_by = MadeBy::Model(made_by.clone());

    // Takes the output's lock. Rows of another judge, model or input are refused.
    let start = match plan.open()? {
        Opened::Ready(start) => start,
        Opened::Complete(record) => {
            println!("complete: {} rows scored", record.counts.scored);
            return Ok(());
        }
    };
    let mut run = start.begin(made_by)?;
    println!("{} of {rows} rows are there", run.resumed().rows);

    let mut judged = 0;
    let row = |result| score_row(judge, result, &Carry::All);
    let summary = judge_rows(&mut run, model, vec![judge], records()?, row, |event| {
        judged += usize::from(matches!(event, RunEvent::Item(_)));
        if Some(judged) == stop_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if summary.cancelled {
        println!("stopped after {judged} more");
        return Ok(());
    }
    let record = run.finish()?; // the rows in input order, and beside them how they were made
    println!(
        "{judged} more, {} scored, {} unscored",
        record.counts.scored,
        record.counts.unscored.values().sum::<usize>()
    );
    Ok(())
}
