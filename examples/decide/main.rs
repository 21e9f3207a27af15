//! Typed questions about a text, with a probability for every option: answered by the last layer, and by all layers with weights that
//! are fitted on what people answered.
//!
//! `cargo run --release --example decide [TRAIN TEST [MODEL]]`

use std::{env, error::Error, sync::Arc};

use judge_core::decision::{
    Answer, DecisionFit, DecisionForm, DecisionItem, DecisionJudge, DecisionSettings, Labelled, Questions, Readout,
};
use judge_core::{ItemResult, Runner};
use judge_data::{Dataset, DatasetOptions, Record};
use judge_metrics::{
    comparison::{ComparedDecision, DecisionComparison},
    resampling::Bootstrap,
};
use judge_models::{LoadOptions, Model, TurnPrompt};
use serde_json::json;

const TRAIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows/train.jsonl");
const TEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows/test.jsonl");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");
/// A row's answers of the judge, and the share of people who chose each level.
type Decided = Vec<(ItemResult<DecisionItem>, Vec<f64>)>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let [train, test] = [TRAIN, TEST].map(|file| args.next().unwrap_or(file.into()));
    let model = Model::open(&args.next().unwrap_or(MODEL.into()), &LoadOptions::default())?;

    // One question with five levels; a chat model would need no prompt of its own, and no labels but `A` to `E`.
    let asked = Questions::from_json(&json!({"grade": {
        "type": "score", "instructions": "Score from 1 (bad) to 5 (very good).",
        "criteria": ["bad", "weak", "fair", "good", "very good"],
    }}))?;
    let turn = "Question: {{ state.question }}\nAnswer: {{ state.answer }}\n{{ question.instructions }}";
    let mut form = DecisionForm::default();
    form.labels.score = ["1", "2", "3", "4", "5"].map(str::to_owned).into();
    let prompt = Arc::new(TurnPrompt::new(turn)?);
    let plain = DecisionSettings { prompt, form, every_layer: true, ..DecisionSettings::default() };
    let judge = DecisionJudge::new(plain.clone(), &model)?;

    let mut labelled = Vec::new();
    for (result, target) in decide(&judge, &model, &asked, &train)? {
        let table = judge.tables(&asked, &result.rounds(0))?.remove(0);
        labelled.push(Labelled { kind: table.kind, table: table.table, target });
    }
    let weights = DecisionFit::default().fit(&labelled, &judge.origin())?;
    let fitted = DecisionSettings { readout: Readout::Weights(Box::new(weights)), ..plain };
    let fitted = DecisionJudge::new(fitted, &model)?;

    for (name, judge) in [("last layer", judge), ("all layers, fitted", fitted)] {
        let (mut compared, mut first) = (Vec::new(), None);
        for (group, (result, observed)) in decide(&judge, &model, &asked, &test)?.into_iter().enumerate() {
            let answered = asked.answers(&result.verdicts[0])?.remove(0).answer?;
            let Answer::Score { probabilities, .. } = &answered else { return Err("no score".into()) };
            let predicted = probabilities.values().filter_map(|p| p.as_f64()).collect();
            compared.push(ComparedDecision { observed, predicted, group, question: 0 });
            first.get_or_insert(answered);
        }
        let found = DecisionComparison::new(&compared, &Bootstrap::default())?;
        println!("{name}: accuracy {}, KL {}, ECE {}", found.accuracy, found.kl, found.ece);
        println!("  the commonest grade, always: accuracy {}", found.majority_share);
        println!("  the first row: {}", json!(first));
    }
    Ok(())
}

fn decide(judge: &DecisionJudge, model: &Model, asked: &Questions, rows: &str) -> Result<Decided, Box<dyn Error>> {
    let (mut items, mut people) = (Vec::new(), Vec::new());
    for record in Dataset::open(rows, &DatasetOptions::default())? {
        let Record::Graded(row) = record? else { return Err("a graded row was expected".into()) };
        let grades: Vec<f64> = row.scores.iter().flatten().copied().collect();
        let count = |level: usize| grades.iter().filter(|&&grade| grade == (level + 1) as f64).count() as f64;
        people.push((0..5).map(|level| count(level) / grades.len() as f64).collect());
        let state = json!({"question": row.instruction, "answer": row.response});
        items.push((row.id, DecisionItem { state, questions: asked.clone() }));
    }
    Ok(Runner::new(model, vec![judge]).collect(items)?.into_iter().zip(people).collect())
}
