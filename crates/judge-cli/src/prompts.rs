//! The prompts of a file, passed through a model.

use std::collections::BTreeMap;

use anyhow::Result;
use judge_core::request::{LabelRead, Pooling, Signal};
use judge_core::{Backbone, ItemId, Layer, ModelInfo, Outcome, Prompt, Reading, TextModel, Unscored, Want};
use judge_data::{
    Counts, Error, OutputProblem, PromptInput, Record, Resolved, RunPlan, RunRecord, StatesWriter, ids_path, read_rows,
    record_path, save,
};

use crate::args::model_args::ModelArgs;
use crate::terminal::pace::Watch;

/// The prompt of a record as the options of the model want it, with the opening of the reply, or why it has none.
///
/// # Errors
/// Why the record could not be read.
pub fn prompt(record: &Record, args: &ModelArgs, prefill: &str) -> Result<Prompt, Unscored> {
    let input = match record {
        Record::Prompt(record) => &record.input,
        Record::Unread(record) => return Err(record.why.clone()),
        _ => &PromptInput::Messages(Vec::new()), // the format is given: there are no other records
    };
    let prompt = if args.raw_prompt { input.to_raw() } else { args.dress(input.to_chat()) };
    // What asks nothing stays empty: a prefill must not make a prompt of it.
    Ok(if prompt.is_empty() { prompt } else { prompt.with_prefill(prefill) })
}

/// Most bytes of one file of what is read.
pub const SHARD_BYTES: u64 = 1 << 30;

/// What states and logits in a file depend on, so that others are not taken for them: the program, its prompts by their hash, the model,
/// and how it is run.
#[must_use]
pub fn read_by(program: &str, prompts_blake3: String, model: &ModelInfo, args: &ModelArgs) -> BTreeMap<String, String> {
    let settings = [
        ("program", program.to_owned()),
        ("prompts_blake3", prompts_blake3),
        ("model", model.name.clone()),
        ("model_fingerprint", model.fingerprint.clone()),
        ("dtype", model.dtype.clone()),
        ("device", model.device.clone()),
        ("date", args.date.to_string()),
    ];
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What a file gets of a row that was read, or why the row has nothing for it.
pub type OfRow<'a> = dyn Fn(usize, &Reading) -> Result<Result<Vec<f32>, Unscored>, Error> + 'a;

/// A file of numbers that are read of prompts.
pub struct Kept<'a> {
    /// The file.
    pub writer: StatesWriter,
    /// What goes into it.
    pub of: Box<OfRow<'a>>,
}

impl<'a> Kept<'a> {
    /// A signal of each of these layers, one behind the other.
    #[must_use]
    pub fn of_signal(writer: StatesWriter, layers: Vec<Layer>, signal: Signal) -> Self {
        Self { writer, of: Box::new(move |_, reading| signals(reading, layers.iter().copied(), signal).map(Ok)) }
    }

    /// The logits of these labels at the end of the prompt.
    #[must_use]
    pub fn of_labels(writer: StatesWriter, labels: &'a LabelRead) -> Self {
        Self { writer, of: Box::new(move |_, reading| Ok(Ok(reading.labels(labels)?.prompt_end()?.logits.clone()))) }
    }
}

/// Reads the prompts of the rows that one of these files lacks, of `rows` in all, and writes into each file what it lacks of them, with
/// progress.
///
/// # Errors
/// Of `prompts`, the model, or the files; [`Stopped`](crate::terminal::interrupt::Stopped) after a signal.
pub fn keep(
    model: &dyn TextModel,
    want: Want,
    quiet: bool,
    rows: usize,
    prompts: impl Iterator<Item = Result<(ItemId, usize, Result<Prompt, Unscored>), Error>>,
    kept: &mut [Kept<'_>],
) -> Result<()> {
    let is_open: Vec<bool> = (0..rows).map(|row| kept.iter().any(|file| !file.writer.is_done(row))).collect();
    let open = is_open.iter().filter(|&&open| open).count();
    if open == 0 {
        return Ok(());
    }
    let missing =
        prompts.filter(|prompt| prompt.as_ref().map_or(true, |&(_, row, _)| is_open.get(row) != Some(&false)));
    let mut watch = Watch::new("reading", "rows", quiet)?;
    watch.start(rows - open, rows);
    let summary = read_rows(model, want, missing, |id, row, outcome| {
        let flow = watch.read(outcome);
        for file in kept.iter_mut().filter(|file| !file.writer.is_done(row)) {
            let found = match outcome {
                Outcome::Read(reading) => (file.of)(row, reading)?,
                Outcome::Unscored(why) => Err(why.clone()),
            };
            match found {
                Ok(values) => file.writer.write(row, id, &values)?,
                Err(why) => file.writer.write_unscored(row, id, &why)?,
            }
        }
        Ok(flow)
    })?;
    watch.finish(summary.cancelled)
}

/// The record of states that are all there as planned; `None` where some may be missing.
///
/// # Errors
/// As [`RunPlan::finished`].
pub fn finished_states(plan: &RunPlan) -> Result<Option<RunRecord>, Error> {
    let ids = ids_path(&plan.output);
    let journal = || ids.with_extension("jsonl.partial").exists();
    match plan.finished() {
        // States are put in place before their ids, and these before their record. They say themselves how they were made, and are compared
        // when they are opened.
        Err(Error::OutputExists { differences, .. }) if differences.is_empty() && ids.exists() => Ok(None),
        Err(Error::Output { problem: OutputProblem::Foreign, .. }) if journal() => Ok(None),
        found => found,
    }
}

/// Reads the pooled states that a file lacks, as [`keep`], and puts the record of a run as planned beside them.
///
/// # Errors
/// As [`keep`]; if the record cannot be written.
pub fn keep_states(
    plan: &RunPlan,
    model: &dyn Backbone,
    writer: StatesWriter,
    layers: Vec<Layer>,
    pooling: Pooling,
    quiet: bool,
    prompts: impl Iterator<Item = Result<(ItemId, usize, Result<Prompt, Unscored>), Error>>,
) -> Result<Counts> {
    let want = Want { pooled: layers.iter().map(|&layer| (layer, pooling)).collect(), ..Want::default() };
    let mut kept = [Kept::of_signal(writer, layers, Signal::State(pooling))];
    keep(model, want, quiet, plan.rows, prompts, &mut kept)?;
    let [Kept { writer, .. }] = kept;
    let written = writer.finish()?;
    let resolved = Resolved { model: Some(model.info().clone()), ..Resolved::default() };
    save(record_path(&plan.output), &plan.record(resolved, written.counts.clone(), written.outputs))?;
    Ok(written.counts)
}

/// A signal of each of these layers, one behind the other.
///
/// # Errors
/// [`judge_core::Error::NotRead`] for one that is not there.
pub fn signals(reading: &Reading, layers: impl IntoIterator<Item = Layer>, signal: Signal) -> Result<Vec<f32>, Error> {
    let what = "signal of a layer that was asked for";
    let of_layer = |layer| reading.signal(layer, signal).ok_or(judge_core::Error::NotRead { what });
    Ok(layers.into_iter().map(of_layer).collect::<Result<Vec<_>, _>>()?.concat())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use judge_core::Reason;
    use judge_core::testing::ScriptedBackbone;
    use judge_data::{Program, StatesFile, StatesSpec, WriteOptions};

    use super::*;

    /// A kill between the two leaves a row in one alone, be it one that could not be read.
    #[test]
    fn a_row_that_one_of_two_files_has_is_read_for_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["one.safetensors", "two.safetensors"].map(|name| folder.path().join(name));
        let layer = Layer(1);
        let spec = StatesSpec { rows: 2, layers: vec![layer], d_model: 4, ..StatesSpec::default() };
        let open = |path: &PathBuf| StatesWriter::open(path, &spec, WriteOptions::default()).unwrap();
        let why = Unscored::new(Reason::TooLong, "too long");
        open(&paths[0]).write_unscored(0, &ItemId::from(0_u64), &why).unwrap();

        let mut kept =
            paths.each_ref().map(|path| Kept::of_signal(open(path), vec![layer], Signal::State(Pooling::Last)));
        let rows = [Err(why.clone()), Ok(Prompt::user("Why?"))].into_iter().enumerate();
        let prompts = rows.map(|(row, prompt)| Ok((ItemId::from(row as u64), row, prompt)));
        let want = Want { pooled: vec![(layer, Pooling::Last)], ..Want::default() };
        keep(&ScriptedBackbone::new(2), want, true, 2, prompts, &mut kept).unwrap();
        for (file, path) in kept.into_iter().zip(&paths) {
            file.writer.finish().unwrap();
            let found: Vec<_> =
                StatesFile::open(path).unwrap().ids().map(|row| row.map(|row| row.unscored).unwrap()).collect();
            assert_eq!(found, [Some(why.clone()), None]);
        }
    }

    /// A kill may come before their record is there, and before their ids are.
    #[test]
    fn states_in_place_are_completed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.safetensors");
        let spec = StatesSpec { rows: 1, layers: vec![Layer(1)], d_model: 4, ..StatesSpec::default() };
        let mut writer = StatesWriter::open(&path, &spec, WriteOptions::default()).unwrap();
        writer.write(0, &ItemId::from(0_u64), &[0.5; 4]).unwrap();
        writer.finish().unwrap();
        let plan = RunPlan::new(&path, 1, Program::new("test", "1"));
        assert!(finished_states(&plan).unwrap().is_none());
        let ids = ids_path(&path);
        let journal = ids.with_extension("jsonl.partial");
        std::fs::rename(&ids, &journal).unwrap();
        assert!(finished_states(&plan).unwrap().is_none());
        std::fs::remove_file(&journal).unwrap();
        assert!(matches!(finished_states(&plan), Err(Error::Output { .. })));
    }
}
