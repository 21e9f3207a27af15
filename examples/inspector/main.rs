//! INSPECTOR: a probe on the model's hidden states, trained on graded answers, then a judge of answers that it has not seen.
//!
//! `cargo run --release --example inspector [TRAIN TEST [MODEL]]`

use std::{collections::BTreeMap, env, error::Error, sync::Arc};

use judge_core::{
    Backbone, Layer, Prompt, PromptTemplate,
    inspector::{InspectorJudge, InspectorSettings},
    request::Pooling,
    runner::ReadOnly,
};
use judge_core::{Runner, Want, request::Signal};
use judge_data::{Dataset, DatasetOptions, Record};
use judge_metrics::correlation::spearman;
use judge_models::{LoadOptions, Model};
use judge_probe::{Estimator, IntoProbe, LogisticRegression, Matrix, Pipeline, StandardScaler};
use judge_probe::{ProbeOrigin, SavedProbe};

const TRAIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows/train.jsonl");
const TEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows/test.jsonl");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");
const PROMPT: &str = "Question: {instruction}\nAnswer: {response}\nScore from 1 (bad) to 5 (very good).";

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let mut argument = |default: &str| args.next().unwrap_or(default.into());
    let (train, test, model) = (argument(TRAIN), argument(TEST), argument(MODEL));
    let model = Model::open(&model, &LoadOptions::default())?;
    let template = PromptTemplate::new(Prompt::user(PROMPT))?;

    // 1. The state of the prompt's last token, two thirds up the model, for every row that people graded.
    let layer = Layer(2 * model.info().n_layers / 3);
    let signals = vec![(layer, Signal::State(Pooling::Last))];
    let mut prompts = Vec::new();
    for record in records(&train)? {
        let grade = record.human().ok_or("a row without human scores")?;
        prompts.push((record.id().clone(), (grade, template.fill(&record)?)));
    }
    let (mut states, mut grades) = (Vec::new(), Vec::new());
    let read = ReadOnly::new(Want::of_signals(&signals));
    for result in Runner::new(&model, vec![&read]).collect(prompts)? {
        let rounds = result.rounds(0);
        let state = rounds.only()?.pooled(layer, Pooling::Last).ok_or("no state")?;
        states.push(state.to_vec());
        grades.push(result.item.0.round() as i64);
    }

    // 2. A probe: which of the five grades do these states stand for?
    let estimator = LogisticRegression { c: 0.01, ..LogisticRegression::default() };
    let settings = Pipeline { transformer: StandardScaler::default(), estimator };
    let probe = settings.fit(&Matrix::from_f32_rows(&states)?, &grades)?.into_probe()?;
    let notes = BTreeMap::from([("template".into(), template.id().into())]);
    let origin = ProbeOrigin { model: model.info().into(), signals, validation: None, data_hash: None, notes };
    let probe = SavedProbe::new(probe, origin)?; // `to_bytes` and `from_bytes` are its file
    println!("trained on {} rows, {layer} of {}", grades.len(), model.info().n_layers);

    // 3. A judge that reads the same states of other answers. No block above the layer is run.
    let settings = InspectorSettings { aspect: "quality".into(), template, probe: Arc::new(probe) };
    let judge = InspectorJudge::new(settings, model.info())?;
    let items = records(&test)?.into_iter().map(|record| (record.id().clone(), record));
    let (mut scores, mut human, mut right) = (Vec::new(), Vec::new(), 0);
    for result in Runner::new(&model, vec![&judge]).collect(items)? {
        let score = result.verdicts[0].score().ok_or("no score")?;
        let people = result.item.human().ok_or("a row without human scores")?;
        right += usize::from(score.value == people.round());
        scores.push(score.distribution.as_ref().ok_or("no probabilities")?.expected());
        human.push(people);
    }
    println!("accuracy of the grade on {} rows: {:.3}", scores.len(), right as f64 / scores.len() as f64);
    println!("Spearman of the expected grade: {:.3}", spearman(&scores, &human)?.estimate);
    Ok(())
}

fn records(path: &str) -> Result<Vec<Record>, judge_data::Error> {
    Dataset::open(path, &DatasetOptions::default())?.collect()
}
