//! Any bytes are read or refused as a file of rows, and what is read is judged: one row out for each row in, with all that it carried, also
//! if the run stops on the way and goes on.
#![no_main]

use std::ops::ControlFlow;
use std::path::Path;

use judge_core::testing::ScriptedBackbone;
use judge_core::{
    Backbone, Judge,
    prompted::{PromptFamily, WrittenJudge},
    runner::RunEvent,
};
use judge_data::{
    Carry, Dataset, DatasetFormat, DatasetOptions, Error, Ids, MadeBy, Numbered, Opened, Program, Record, Resolved,
    Rows, RunPlan, SingleRow,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = judge_fuzz::folder(&[("rows.json", bytes)]);
    let formats = [None].into_iter().chain(DatasetFormat::ALL.map(Some));
    for (number, format) in formats.enumerate() {
        let options = DatasetOptions { format, ids: Ids::RowNumber, ..DatasetOptions::default() };
        let Ok(records) = Dataset::open(folder.join("rows.json"), &options) else { continue };
        let Ok(records) = records.collect::<Result<Vec<Record>, Error>>() else { continue };
        if Carry::All.of_row(carried(&records), SingleRow::KNOWN).is_err() {
            continue;
        }
        let whole = judged(&records, &folder.join(format!("{number}-whole.jsonl")), usize::MAX);
        // Stopped and resumed, it is the same.
        assert_eq!(judged(&records, &folder.join(format!("{number}-parts.jsonl")), 1 + records.len() / 2), whole);
        let rows: Vec<_> = Rows::new(&whole[..], "whole.jsonl").unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), records.len());
        for (row, record) in rows.iter().zip(&records) {
            for (name, json) in record.extra().iter() {
                assert_eq!(row.value(name).unwrap_or("null"), json, "{name}");
            }
        }
    }
});

/// The fields that the records carry, each once.
fn carried(records: &[Record]) -> judge_data::Extra {
    let mut all = judge_data::Extra::new();
    for (name, _) in records.iter().flat_map(|record| record.extra().iter()) {
        all.set(name, &0).unwrap();
    }
    all
}

/// The rows of a run that stops after so many results, and goes on if it was not over.
fn judged(records: &[Record], output: &Path, until: usize) -> Vec<u8> {
    let model = ScriptedBackbone::new(1).with_reply(|_| "Rating: [[5]]".to_owned());
    let judge = WrittenJudge::new(PromptFamily::built_in("single").unwrap());
    let judges: Vec<&dyn Judge<Numbered>> = vec![&judge];
    let resolved = Resolved::of(model.info(), judges.iter().copied()).unwrap();
    for until in [until, usize::MAX] {
        let mut plan = RunPlan::new(output, records.len(), Program::new("fuzz", "1"));
        plan.made_by = MadeBy::Model(resolved.clone());
        let Opened::Ready(start) = plan.open().unwrap() else { break };
        let mut seen = 0;
        let mut stop = |_: &RunEvent<Numbered>| {
            seen += 1;
            if seen >= until { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let row = |result| SingleRow::new(result, &Carry::All);
        let items = Numbered::all(records.iter().cloned().map(Ok::<_, judge_data::Error>));
        start.judge(resolved.clone(), &model, &judges, items, row, &mut stop).unwrap();
    }
    std::fs::read(output).unwrap()
}
