//! Does a model know what it knows? It says how answerable a question is, and its scores are compared with what is true.
//!
//! `cargo run --release --example self_knowledge [INPUT [MODEL]]`, with `question` and `answerable` in each row

use std::{env, error::Error};

use judge_core::{
    Prompt, PromptTemplate, Runner, Scale,
    lager::{LagerJudge, LagerSettings},
};
use judge_data::{Dataset, DatasetOptions, Record};
use judge_metrics::prediction::{area_under_risk_coverage, auroc, best_f1_threshold};
use judge_models::{LoadOptions, Model};

const INPUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/self_knowledge/questions.jsonl");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");
const PROMPT: &str = "Could you answer this question, and be right? Do not answer it.\n\n{question}\n\n\
    Say how answerable it is, from 1 (nobody can know) to 5 (there is one answer and I know it).";

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let input = args.next().unwrap_or(INPUT.into());
    let model = Model::open(&args.next().unwrap_or(MODEL.into()), &LoadOptions::default())?;

    let template = PromptTemplate::new(Prompt::user(PROMPT))?;
    let settings = LagerSettings { template, ..LagerSettings::prompt_end(Scale::integers(1, 5)?) };
    let judge = LagerJudge::new(settings, &model)?;

    let options = DatasetOptions { columns: "prompt=question".parse()?, ..DatasetOptions::default() };
    let records = Dataset::open(input, &options)?.collect::<Result<Vec<Record>, _>>()?;
    let items = records.into_iter().map(|record| (record.id().clone(), record));
    let (mut scores, mut answerable) = (Vec::new(), Vec::new());
    for result in Runner::new(&model, vec![&judge]).collect(items)? {
        match (result.verdicts[0].value(), result.item.extra().text("answerable")) {
            (Some(score), Some(truth @ ("true" | "false"))) => {
                scores.push(score);
                answerable.push(truth == "true");
            }
            _ => eprintln!("{}: no score, or nobody knows whether it is answerable", result.id),
        }
    }

    let area = auroc(&answerable, &scores)?;
    let sure = area.interval(0.95)?;
    println!("{} questions, AUROC {:.3} [{:.3}, {:.3}]", scores.len(), area.estimate, sure.low, sure.high);
    // To decline below a threshold: the unanswerable ones are what is looked for, and a low score is their sign.
    let unanswerable: Vec<bool> = answerable.iter().map(|known| !known).collect();
    let doubts: Vec<f64> = scores.iter().map(|score| -score).collect();
    let best = best_f1_threshold(&unanswerable, &doubts)?;
    println!(
        "declining at {:.2} and below: precision {:.3}, recall {:.3}",
        -best.threshold, best.precision, best.recall
    );
    // To answer the surest first: how often that is wrong, over all shares that could be answered.
    let losses: Vec<f64> = unanswerable.iter().map(|&loss| f64::from(u8::from(loss))).collect();
    println!("mean risk of the surest: {:.3} (0.5 by chance)", area_under_risk_coverage(&losses, &scores)?);
    Ok(())
}
