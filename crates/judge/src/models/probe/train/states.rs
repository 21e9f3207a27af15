//! The signals of an aspect's prompts, states and attention entropies: read once, kept in files, reread by memory map.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use judge_cli::prompts::{self, Kept};
use judge_core::{
    Backbone, ItemId, Layer, Lens, Reason, Unscored, Want,
    request::{LabelRead, ReadAt, Signal, TokenId},
};
use judge_data::{Error, Sharding, StatesFile, StatesSpec, StatesWriter, Unread, WriteOptions};
use judge_probe::Matrix;
use judge_probe::training::{GradedRow, ProbeTraining, RowSignals};

use super::baseline::Tuned;
use super::rows::Written;

/// The name of the logits of the labels.
const LABELS: &str = "labels";

/// The tables that a training may keep of an aspect, before it is known which layers the model has.
pub fn paths(folder: &Path, aspect: &str, training: &ProbeTraining) -> Vec<PathBuf> {
    let any_layer = ProbeTraining { layers: vec![Layer(1)], ..training.clone() };
    let names = any_layer.all_signals().into_iter().map(|(_, signal)| signal.as_str());
    names.chain([LABELS]).map(|name| path(folder, aspect, name)).collect()
}

fn path(folder: &Path, aspect: &str, name: &str) -> PathBuf {
    folder.join(format!("{aspect}.{name}.safetensors"))
}

/// What is read of each prompt.
pub struct Reading<'a> {
    signals: Vec<(Layer, Signal)>,
    /// The grades as tokens, for the model's own score, where they are tokens and all blocks are run anyway.
    labels: Option<&'a [TokenId]>,
    /// What is written again, where its states are read.
    written: Option<&'a Written>,
}

impl<'a> Reading<'a> {
    pub fn new(training: &ProbeTraining, labels: Option<&'a [TokenId]>, written: Option<&'a Written>) -> Self {
        let signals = training.all_signals();
        let reads_reply = signals.iter().any(|(_, signal)| signal.is_of_reply());
        Self { signals, labels, written: written.filter(|_| reads_reply) }
    }

    fn signals(&self) -> BTreeSet<Signal> {
        self.signals.iter().map(|&(_, signal)| signal).collect()
    }

    /// A signal of a row, or why it cannot be learnt from: the row's text came out otherwise, or it lacks the signal.
    fn signal(
        &self,
        row: usize,
        signal: Signal,
        reading: &judge_core::Reading,
    ) -> Result<Result<Vec<f32>, Unscored>, Error> {
        if let (Some(written), Signal::Reply(_)) = (self.written, signal) {
            if reading.text()? != written.texts[row] {
                let detail = "the judge wrote another text this time than the verdict is of";
                return Ok(Err(Unscored::new(Reason::OtherText, detail)));
            }
            if !self.layers_of(signal).all(|layer| reading.signal(layer, signal).is_some()) {
                let detail = format!("the judge's text has no {}", signal.as_str());
                return Ok(Err(Unscored::new(Reason::NoMarker, detail)));
            }
        }
        prompts::signals(reading, self.layers_of(signal), signal).map(Ok)
    }

    fn layers_of(&self, signal: Signal) -> impl Iterator<Item = Layer> {
        self.signals.iter().filter(move |&&(_, known)| known == signal).map(|&(layer, _)| layer)
    }
}

/// What to do with states of other rows or settings; other faults of a file say themselves what they are.
fn of_others(error: judge_data::Error) -> anyhow::Error {
    let is_of_others =
        matches!(error, judge_data::Error::SettingsDiffer { .. } | judge_data::Error::OutputExists { .. });
    let error = anyhow::Error::from(error);
    if is_of_others {
        error.context("cannot resume these states: remove them, or name another --states folder")
    } else {
        error
    }
}

/// Signals in files, a set for each kind, and the logits of the labels at the prompt's end.
pub struct States<'a> {
    files: Vec<(Signal, StatesFile)>,
    labels: Option<StatesFile>,
    /// Of rows that are 0 or 1, what the judge's own probability of 1 is, in the place of logits.
    pub own: Option<&'a [f64]>,
    /// A model that is tuned when it is asked for.
    pub tuned: Option<&'a Tuned<'a>>,
}

impl States<'_> {
    /// Reads what is not in the files of `folder` yet, all of it in one pass per prompt. It resumes if interrupted; files of other settings
    /// are refused.
    pub fn read(
        model: &dyn Backbone,
        folder: &Path,
        aspect: &str,
        rows: &[GradedRow],
        reading: &Reading<'_>,
        settings: &BTreeMap<String, String>,
        quiet: bool,
    ) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let open = |name: &str, layers: Vec<Layer>, d_model, more: Option<(&str, String)>| {
            let mut metadata = settings.clone();
            metadata.extend(more.map(|(key, value)| (key.to_owned(), value)));
            metadata.insert("read".into(), name.to_owned());
            let sharding = Sharding::Bytes(prompts::SHARD_BYTES);
            let spec = StatesSpec { rows: rows.len(), layers, d_model, metadata, sharding };
            StatesWriter::open(path(folder, aspect, name), &spec, WriteOptions::default()).map_err(of_others)
        };
        let labels = reading.labels.map(|tokens| {
            let layers = vec![Layer(model.info().n_layers)];
            LabelRead { tokens: tokens.to_vec(), layers, lens: Lens::Raw, at: ReadAt::PromptEnd, label_mass: false }
        });
        let mut kept = Vec::new();
        for signal in reading.signals() {
            let writer = open(signal.as_str(), reading.layers_of(signal).collect(), model.info().width(signal), None)?;
            kept.push(Kept { writer, of: Box::new(move |row, read| reading.signal(row, signal, read)) });
        }
        if let Some(labels) = &labels {
            let tokens = ("tokens", serde_json::to_string(&labels.tokens)?);
            let writer = open(LABELS, labels.layers.clone(), labels.tokens.len(), Some(tokens))?;
            kept.push(Kept::of_labels(writer, labels));
        }
        let generate = reading.written.map(|written| written.generation.clone());
        let want = Want { labels: labels.iter().cloned().collect(), generate, ..Want::of_signals(&reading.signals) };
        let asked = rows.iter().enumerate().map(|(index, row)| Ok((row.id.clone(), index, Ok(row.prompt.clone()))));
        prompts::keep(model, want, quiet, rows.len(), asked, &mut kept)?;
        for file in kept {
            file.writer.finish()?;
        }
        let file = |name: &str| StatesFile::open(path(folder, aspect, name));
        let files = reading.signals().into_iter().map(|signal| Ok((signal, file(signal.as_str())?)));
        let (files, labels) = (files.collect::<Result<_>>()?, reading.labels.map(|_| file(LABELS)).transpose()?);
        Ok(Self { files, labels, own: None, tuned: None })
    }

    /// The rows of which a signal could not be read, and why.
    pub fn unread(&self) -> Result<Unread> {
        let mut rows: Vec<(ItemId, Option<Unscored>)> = Vec::new();
        for (_, file) in &self.files {
            for (index, row) in file.ids().enumerate() {
                let row = row?;
                match rows.get_mut(index) {
                    Some((_, why)) => *why = why.take().or(row.unscored),
                    None => rows.push((row.id, row.unscored)),
                }
            }
        }
        let mut unread = Unread::default();
        rows.into_iter().for_each(|(id, why)| unread.note(id, why.map(|why| why.to_string())));
        Ok(unread)
    }

    fn file(&self, signal: Signal, layer: Layer) -> Result<&StatesFile> {
        let file = self.files.iter().find(|&&(known, _)| known == signal).map(|(_, file)| file);
        file.with_context(|| format!("there is no {signal:?} of {layer}"))
    }
}

impl RowSignals for States<'_> {
    type Error = anyhow::Error;

    fn is_read(&self, row: usize) -> bool {
        self.files.iter().all(|(_, file)| file.is_scored(row))
    }

    fn matrix(&self, rows: &[usize], layer: Layer, signals: &[Signal]) -> Result<Matrix> {
        let widths = signals.iter().map(|&signal| self.file(signal, layer).map(StatesFile::d_model));
        let width = widths.sum::<Result<usize>>()?;
        let mut values = Vec::with_capacity(rows.len() * width);
        for &row in rows {
            for &signal in signals {
                let state = self.file(signal, layer)?.state(row, layer)?;
                let state = state.with_context(|| format!("row {row} has no {signal:?} of {layer}"))?;
                values.extend(state.into_iter().map(f64::from));
            }
        }
        Ok(Matrix::new(values, width)?)
    }

    fn grade_logits(&self, row: usize) -> Result<Option<Vec<f64>>> {
        if let Some(p) = self.own.and_then(|own| own.get(row)) {
            return Ok(Some([1.0 - p, *p].map(|p| p.max(f64::MIN_POSITIVE).ln()).to_vec()));
        }
        let logits = self.labels.as_ref().map(|file| file.row(row)).transpose()?.flatten();
        Ok(logits.map(|logits| logits.into_iter().map(f64::from).collect()))
    }

    fn tuned_grade_logits(&self, train: &[usize], tested: &[usize]) -> Result<Option<Vec<Vec<f64>>>> {
        self.tuned.map(|tuned| tuned.logits(train, tested)).transpose()
    }
}
