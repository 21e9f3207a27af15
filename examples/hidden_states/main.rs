//! Hidden states: the mean state of every layer for every prompt, in a safetensors file that any program reads.
//!
//! `cargo run --release --example hidden_states [OUTPUT [INPUT [MODEL]]]`

use std::{env, error::Error};

use judge_core::{
    Backbone, Layer, Prompt, PromptTemplate, Runner, Want,
    request::Pooling,
    runner::{ReadOnly, RunEvent},
};
use judge_data::{Dataset, DatasetOptions, Record, StatesFile, StatesSpec, StatesWriter, WriteOptions};
use judge_models::{LoadOptions, Model};

const INPUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/rows/test.jsonl");
const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tiny-judge");

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let output = args.next().map_or_else(|| env::temp_dir().join("hidden_states.safetensors"), Into::into);
    let input = args.next().unwrap_or(INPUT.into());
    let model = Model::open(&args.next().unwrap_or(MODEL.into()), &LoadOptions::default())?;

    let template = PromptTemplate::new(Prompt::user("Question: {instruction}\nAnswer: {response}"))?;
    let records = Dataset::open(&input, &DatasetOptions::default())?.collect::<Result<Vec<Record>, _>>()?;
    let layers: Vec<Layer> = model.info().layers();

    // The file is filled as states come. If it is interrupted, the same command writes what is missing.
    let metadata = [("input", &input), ("model", &model.info().fingerprint)].map(|(k, v)| (k.to_owned(), v.clone()));
    let spec = StatesSpec {
        rows: records.len(),
        layers: layers.clone(),
        d_model: model.info().d_model,
        metadata: metadata.into(),
        ..StatesSpec::default()
    };
    let mut table = StatesWriter::open(&output, &spec, WriteOptions { overwrite: true, ..WriteOptions::default() })?;

    let mut prompts = Vec::new();
    for (row, record) in records.iter().enumerate().filter(|(row, _)| !table.is_done(*row)) {
        prompts.push((record.id().clone(), (row, template.fill(record)?)));
    }
    let want = Want { pooled: layers.iter().map(|&layer| (layer, Pooling::Mean)).collect(), ..Want::default() };
    let read = ReadOnly::new(want);
    Runner::new(&model, vec![&read]).run(prompts, |event| -> Result<(), judge_data::Error> {
        let RunEvent::Item(result) = event else { return Ok(()) };
        let rounds = result.rounds(0);
        match rounds.outcomes().next().map(|outcome| outcome.reading()) {
            Some(Ok(reading)) => {
                let states: Vec<f32> = reading.pooled.iter().flat_map(|state| state.values.clone()).collect();
                table.write(result.item.0, &result.id, &states)
            }
            Some(Err(why)) => table.write_unscored(result.item.0, &result.id, &why),
            None => Ok(()),
        }
    })?;
    table.finish()?;

    let file = StatesFile::open(&output)?;
    println!("{} rows, {} layers, {} numbers each", file.rows(), file.layers().len(), file.d_model());
    for (index, layer) in file.layers().iter().enumerate() {
        let mut norms = Vec::new();
        for states in file.iter() {
            let state = states?.map(|states| states[index * file.d_model()..][..file.d_model()].to_vec());
            norms.extend(state.map(|state| state.iter().map(|x| x * x).sum::<f32>().sqrt()));
        }
        println!("{layer}: mean norm {:.3}", norms.iter().sum::<f32>() / norms.len() as f32);
    }
    Ok(())
}
