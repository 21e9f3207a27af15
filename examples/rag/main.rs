//! Answers from retrieved contexts: which sentences are supported, and what that comes to.
//!
//! `cargo run --release --example rag [ANSWERS [MODEL]]`

use std::{env, error::Error, sync::Arc};

use judge_core::Runner;
use judge_core::decision::{DecisionJudge, DecisionSettings};
use judge_core::rag::{RagJudge, RagSettings};
use judge_data::{Columns, Input, RagRecord};
use judge_metrics::means::clustered_mean;
use judge_models::{LoadOptions, Model, TurnPrompt};

const ANSWERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/rag/answers.csv");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let answers = args.next().unwrap_or(ANSWERS.into());
    let model = args.next();

    // A chat model answers `Yes` and `No`. The embedded one knows grades from 1 to 5 alone, and nothing of contexts: its numbers say nothing.
    let mut decisions = DecisionSettings::default();
    if model.is_none() {
        let turn = "{{ state }}\n{{ question.instructions }}\nScore from 1 (no) to 5 (yes).";
        decisions.prompt = Arc::new(TurnPrompt::new(turn)?);
        decisions.form.labels.noul = ["5", "1"].map(str::to_owned).into();
    }
    let model = Model::open(&model.unwrap_or(MODEL.into()), &LoadOptions::default())?;
    let judge = RagJudge::new(RagSettings::default(), DecisionJudge::new(decisions, &model)?)?;

    let mut items = Vec::new();
    for record in RagRecord::all(&Input::open(&answers)?, None, &Columns::default())? {
        let record = record?;
        items.push((record.id, record.rag));
    }
    let (mut faithful, mut questions) = (Vec::new(), Vec::new());
    for result in Runner::new(&model, vec![&judge]).collect(items)? {
        let found = judge.findings(&result.item, &result.rounds(0))?;
        println!("{}: {}", result.id, result.item.question.as_deref().unwrap_or_default());
        for judged in &found.sentences {
            println!(
                "  {} {}",
                judged.supported.map_or("unread".to_owned(), |p| format!("{p:.3}")),
                judged.sentence.text
            );
        }
        for (measure, value) in &found.measures {
            match value {
                Ok(value) => println!("  {measure:<18} {:.3} (share at 0.5: {:.3})", value.mean, value.share),
                Err(why) => println!("  {measure:<18} {}", why.detail),
            }
        }
        if let Some(Ok(value)) = found.measures.get(&judge_core::rag::RagMeasure::Faithfulness) {
            faithful.push(value.mean);
            questions.push(result.item.question);
        }
    }
    let mean = clustered_mean(&faithful, &questions)?.within([0.0, 1.0]);
    println!("faithfulness {:.3}, 95 % interval {:?}", mean.estimate, mean.interval(0.95)?);
    Ok(())
}
